// Small operations on texts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace latte {

// Blanks and line ends of ASCII.
inline constexpr std::string_view kSpaces = " \t\r\n";

inline bool IsBlank(std::string_view text) { return text.find_first_not_of(kSpaces) == text.npos; }

// Without the characters of `spaces` at both ends.
inline std::string_view Trimmed(std::string_view text, std::string_view spaces = kSpaces) {
  const size_t begin = text.find_first_not_of(spaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(spaces) + 1 - begin);
}

// With small letters of ASCII.
inline std::string Lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// The value of a hexadecimal digit, or -1.
inline int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The length of the longest beginning of `mark`, shorter than `mark`, with which `text` ends.
inline size_t BeginningOf(std::string_view mark, std::string_view text) {
  for (size_t length = std::min(mark.size() - 1, text.size()); length > 0; --length)
    if (text.ends_with(mark.substr(0, length))) return length;
  return 0;
}

}  // namespace latte
