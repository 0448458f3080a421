// The values of `format`, as regular expressions.
#pragma once

#include <string>
#include <string_view>

namespace latte {

// Of whole values: what RFC 3339 and the others allow, or a part of it. Empty: unknown.
std::string TextFormatRegex(std::string_view format);
// All that TextFormatRegex knows: "date, time, …".
std::string TextFormatNames();

}  // namespace latte
