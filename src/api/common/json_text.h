// Writes JSON strings without building a document, for text that is written once per token.
#pragma once

#include <string>
#include <string_view>

namespace latte {

// Appends `text` as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD. The same bytes as
// Dump.
void AppendJsonString(std::string_view text, std::string* out);
std::string JsonString(std::string_view text);

// Appends a number as Dump writes it; null if it is not finite.
void AppendJsonNumber(double value, std::string* out);

}  // namespace latte
