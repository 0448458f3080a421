// Small operations on texts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

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

// All functions below know the digits and letters of ASCII only.
inline constexpr std::string_view kDigits = "0123456789";

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }
inline bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
inline bool IsAlphanumeric(char c) { return IsDigit(c) || IsLetter(c); }

// Whether `text` is one digit or more, and nothing else.
inline bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of(kDigits) == text.npos;
}

inline char Lowered(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// With small letters.
inline std::string Lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = Lowered(c);
  return out;
}

// With capital letters.
inline std::string InCapitals(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

inline bool EqualNoCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lowered(x) == Lowered(y); });
}

inline bool StartsWithNoCase(std::string_view text, std::string_view beginning) {
  return EqualNoCase(text.substr(0, beginning.size()), beginning);
}

// The value of a hexadecimal digit, or -1.
inline int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Two hexadecimal digits, in small letters, for each byte.
inline std::string InHex(std::string_view bytes) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kHexDigits[byte / 16];
    out += kHexDigits[byte % 16];
  }
  return out;
}

// Removes the piece before the first separator from `text`, with the separator, and returns it.
inline std::string_view TakePiece(std::string_view* text, char separator) {
  const std::string_view piece = text->substr(0, text->find(separator));
  text->remove_prefix(std::min(text->size(), piece.size() + 1));
  return piece;
}

// The pieces between separators, empty ones too: one more than `text` has separators.
inline std::vector<std::string_view> Pieces(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (size_t begin = 0, end = 0; end < text.size() || out.empty(); begin = end + 1) {
    end = std::min(text.find(separator, begin), text.size());
    out.push_back(text.substr(begin, end - begin));
  }
  return out;
}

// The length of the longest beginning of `mark`, shorter than `mark`, with which `text` ends.
inline size_t BeginningOf(std::string_view mark, std::string_view text) {
  for (size_t length = std::min(mark.size() - 1, text.size()); length > 0; --length)
    if (text.ends_with(mark.substr(0, length))) return length;
  return 0;
}

}  // namespace latte
