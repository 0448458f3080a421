#include "src/text/unicode/unicode.h"

#include <algorithm>
#include <cstring>

#include "src/base/check.h"

namespace latte {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

uint8_t Byte(std::string_view bytes, size_t i) { return static_cast<uint8_t>(bytes[i]); }

// For each first byte: the length of the sequence and the allowed second bytes (these bounds
// exclude overlong forms, surrogates and values above U+10FFFF). Length 0: not a first byte.
struct Lead {
  int length;
  uint8_t second_min, second_max;
};

Lead LeadOf(uint8_t first) {
  if (first < 0x80) return {1, 0x80, 0xBF};
  if (first < 0xC2) return {0, 0, 0};
  if (first < 0xE0) return {2, 0x80, 0xBF};
  if (first == 0xE0) return {3, 0xA0, 0xBF};
  if (first == 0xED) return {3, 0x80, 0x9F};
  if (first < 0xF0) return {3, 0x80, 0xBF};
  if (first == 0xF0) return {4, 0x90, 0xBF};
  if (first < 0xF4) return {4, 0x80, 0xBF};
  if (first == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// Length of the leading run of ASCII, eight bytes at a time.
size_t AsciiPrefix(std::string_view bytes) {
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    if ((word & 0x8080808080808080u) != 0) break;
  }
  while (i < bytes.size() && Byte(bytes, i) < 0x80) ++i;
  return i;
}

}  // namespace

Utf8Step DecodeUtf8(std::string_view bytes) {
  if (bytes.empty()) return {};
  const uint8_t first = Byte(bytes, 0);
  const Lead lead = LeadOf(first);
  if (lead.length == 0) return {.code_point = 0xFFFD, .bytes = 1};
  if (lead.length == 1) return {.code_point = first, .bytes = 1, .valid = true};
  char32_t code_point = first & (0x7Fu >> lead.length);
  for (int i = 1; i < lead.length; ++i) {
    const size_t at = static_cast<size_t>(i);
    if (at >= bytes.size()) return {.code_point = 0xFFFD, .bytes = i, .cut_off = true};
    const uint8_t next = Byte(bytes, at);
    const uint8_t low = i == 1 ? lead.second_min : 0x80;
    const uint8_t high = i == 1 ? lead.second_max : 0xBF;
    if (next < low || next > high) return {.code_point = 0xFFFD, .bytes = i};
    code_point = code_point << 6 | (next & 0x3Fu);
  }
  return {.code_point = code_point, .bytes = lead.length, .valid = true};
}

size_t ValidUtf8Prefix(std::string_view bytes) {
  size_t i = 0;
  while (i < bytes.size()) {
    i += AsciiPrefix(bytes.substr(i));
    if (i == bytes.size()) break;
    const Utf8Step step = DecodeUtf8(bytes.substr(i));
    if (!step.valid) break;
    i += static_cast<size_t>(step.bytes);
  }
  return i;
}

void AppendValidUtf8(std::string_view bytes, std::string* out) {
  while (!bytes.empty()) {
    const size_t valid = ValidUtf8Prefix(bytes);
    out->append(bytes.substr(0, valid));
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    out->append(kReplacement);
    bytes.remove_prefix(static_cast<size_t>(DecodeUtf8(bytes).bytes));
  }
}

size_t UnfinishedUtf8Suffix(std::string_view bytes) {
  for (size_t back = 1; back <= std::min<size_t>(3, bytes.size()); ++back) {
    const std::string_view suffix = bytes.substr(bytes.size() - back);
    if ((Byte(suffix, 0) & 0xC0) == 0x80) continue;  // a later byte of a sequence
    const Utf8Step step = DecodeUtf8(suffix);
    return step.cut_off ? back : 0;
  }
  return 0;
}

void AppendUtf8(char32_t code_point, std::string* out) {
  LATTE_CHECK(code_point < 0x110000 && (code_point < 0xD800 || code_point > 0xDFFF),
              "U+{:X} is no scalar value", static_cast<uint32_t>(code_point));
  const auto put = [out](char32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
    return;
  }
  if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
  } else {
    if (code_point < 0x10000) {
      put(0xE0 | code_point >> 12);
    } else {
      put(0xF0 | code_point >> 18);
      put(0x80 | (code_point >> 12 & 0x3F));
    }
    put(0x80 | (code_point >> 6 & 0x3F));
  }
  put(0x80 | (code_point & 0x3F));
}

bool IsWhiteSpace(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

}  // namespace latte
