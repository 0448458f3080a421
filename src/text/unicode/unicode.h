// UTF-8 of text that may be any bytes: validation, replacement of invalid parts, and detection of
// an unfinished sequence. Invalid bytes are replaced as the WHATWG decoder does: each maximal
// invalid part of a sequence becomes one U+FFFD. Knows no grapheme clusters and no normalisation
// forms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace latte {

// One step through bytes that may be invalid.
struct Utf8Step {
  char32_t code_point = 0;  // U+FFFD when !valid
  int bytes = 0;            // the number of bytes to advance; 0 only for empty input
  bool valid = false;
  bool cut_off = false;  // the bytes end inside a sequence that is correct so far
};

// The code point, or the maximal invalid part, at the front of `bytes`.
Utf8Step DecodeUtf8(std::string_view bytes);

// Length of the longest valid prefix; bytes.size() when all of it is valid.
size_t ValidUtf8Prefix(std::string_view bytes);

// Appends `bytes` with every invalid part replaced by U+FFFD.
void AppendValidUtf8(std::string_view bytes, std::string* out);

// The number of bytes at the end (0 to 3) that begin an incomplete code point.
size_t UnfinishedUtf8Suffix(std::string_view bytes);

// Requires: a Unicode scalar value.
void AppendUtf8(char32_t code_point, std::string* out);

// Unicode White_Space.
bool IsWhiteSpace(char32_t code_point);

}  // namespace latte
