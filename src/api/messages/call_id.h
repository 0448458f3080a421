// Ids of calls in Anthropic's API consist of letters, digits, _ and -. Models use other characters,
// as in Kimi's functions.NAME:0, and must see their own ids again.
#pragma once

#include <string>
#include <string_view>

namespace latte {

// Every other byte becomes -XX, its hexadecimal code: "functions-2Ef-3A0".
std::string EncodeCallId(std::string_view id);

// The reverse; an id that has no -XX stays as it is.
std::string DecodeCallId(std::string_view id);

}  // namespace latte
