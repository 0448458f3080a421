// Upper, lower and title case of text, as Python's str has them. Requires: valid UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace latte {

// Each appends the changed text of one character.
void AppendLower(char32_t c, std::string* out);
void AppendUpper(char32_t c, std::string* out);
void AppendTitle(char32_t c, std::string* out);

// Whether one of the three changes the character. Python also counts a few that none changes.
bool HasCase(char32_t c);

}  // namespace latte
