// UTF-8 of text that may be any bytes: validation, replacement of what is invalid, and where an
// unfinished sequence begins. Invalid bytes are replaced as the WHATWG decoder does: each maximal
// part of a sequence that cannot go on becomes one U+FFFD. Knows no grapheme clusters and no
// normalisation forms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace latte {

// One step through bytes that may be invalid.
struct Utf8Step {
  char32_t code_point = 0;  // U+FFFD when !valid
  int bytes = 0;            // how many to go on by; 0 only for empty input
  bool valid = false;
  bool cut_off = false;  // the bytes end inside a sequence that was correct so far
};

// The code point, or the maximal invalid part, at the front of `bytes`.
Utf8Step DecodeUtf8(std::string_view bytes);

// Length of the longest valid prefix; bytes.size() when all of it is valid.
size_t ValidUtf8Prefix(std::string_view bytes);

// Appends `bytes` with every invalid part replaced by U+FFFD.
void AppendValidUtf8(std::string_view bytes, std::string* out);

// How many bytes at the end (0 to 3) begin a code point that more bytes could finish.
size_t UnfinishedUtf8Suffix(std::string_view bytes);

// Requires: a Unicode scalar value.
void AppendUtf8(char32_t code_point, std::string* out);

// Unicode White_Space.
bool IsWhiteSpace(char32_t code_point);

}  // namespace latte
