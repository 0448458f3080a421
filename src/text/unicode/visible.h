// Untrusted text in messages, tables and logs. A terminal obeys no character of it, hides none, and
// does not change the order of the text. Everything that Latte prints goes through this table,
// except the answers of models.
#pragma once

#include <string>
#include <string_view>

namespace latte {

// Controls (C0, C1, DEL), invisible characters, and those that change the order of what is shown
// (CVE-2021-42574).
bool IsHidden(char32_t code_point);

// Appends the escape of a hidden character in a JSON string: \u009b, or two of them beyond U+FFFF.
void AppendJsonEscape(char32_t code_point, std::string* out);

// `text` with hidden characters as \x1b (below U+0020) or \u009b, and bytes that are not UTF-8 as
// \x9b. Backslashes stay, so that text may pass twice. Of one JSON text, the result is the same
// JSON.
std::string VisibleLine(std::string_view text);

// The same for text of several lines: newlines and tabs stay.
std::string VisibleLines(std::string_view text);

}  // namespace latte
