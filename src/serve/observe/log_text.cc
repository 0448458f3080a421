#include "src/serve/observe/log_text.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

struct CodePoints {
  char32_t first;
  char32_t last;
};

// Controls, invisible characters, and those that change the order of what is shown
// (CVE-2021-42574).
constexpr auto kHidden = std::to_array<CodePoints>({
    {0x00, 0x1f},
    {0x7f, 0x9f},
    {0xad, 0xad},
    {0x61c, 0x61c},
    {0x200b, 0x200f},
    {0x2028, 0x202e},
    {0x2060, 0x206f},
    {0xfeff, 0xfeff},
    {0xfff9, 0xfffb},
    {0xe0000, 0xe0fff},
});

bool IsHidden(char32_t c) {
  return std::any_of(kHidden.begin(), kHidden.end(),
                     [c](const CodePoints& range) { return c >= range.first && c <= range.last; });
}

bool IsPlain(char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

void AppendUnit(unsigned unit, std::string* out) {
  fmt::format_to(std::back_inserter(*out), "\\u{:04x}", unit);
}

void AppendEscape(char32_t c, std::string* out) {
  switch (c) {
    case '\n':
      *out += "\\n";
      return;
    case '\r':
      *out += "\\r";
      return;
    case '\t':
      *out += "\\t";
      return;
    default:
      break;
  }
  if (c < 0x10000) return AppendUnit(c, out);
  AppendUnit(0xd800 + ((c - 0x10000) >> 10), out);
  AppendUnit(0xdc00 + ((c - 0x10000) & 0x3ff), out);
}

}  // namespace

void AppendEscaped(std::string_view text, size_t most_bytes, std::string* out) {
  const size_t begin = out->size();
  while (!text.empty()) {
    // Most texts are plain to their end.
    const size_t left = most_bytes - (out->size() - begin);
    size_t plain = 0;
    while (plain < std::min(text.size(), left) && IsPlain(text[plain])) ++plain;
    out->append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return;
    const size_t before = out->size();
    const Utf8Step step = DecodeUtf8(text);
    if (IsHidden(step.code_point)) {
      AppendEscape(step.code_point, out);
    } else {
      if (step.code_point == '"' || step.code_point == '\\') out->push_back('\\');
      AppendUtf8(step.code_point, out);
    }
    if (out->size() - begin > most_bytes) {
      out->resize(before);
      *out += "…";
      return;
    }
    text.remove_prefix(static_cast<size_t>(step.bytes));
  }
}

}  // namespace latte
