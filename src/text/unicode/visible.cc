#include "src/text/unicode/visible.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

struct HiddenRange {
  char32_t first;
  char32_t last;
};

constexpr auto kHidden = std::to_array<HiddenRange>({
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

void AppendUtf16Unit(unsigned unit, std::string* out) {
  fmt::format_to(std::back_inserter(*out), "\\u{:04x}", unit);
}

void AppendByteEscapes(std::string_view bytes, std::string* out) {
  for (const char byte : bytes)
    fmt::format_to(std::back_inserter(*out), "\\x{:02x}", static_cast<unsigned char>(byte));
}

std::string VisibleBut(std::string_view kept, std::string_view text) {
  const auto is_plain = [&](char c) {
    return (c >= 0x20 && c < 0x7f) || kept.find(c) != std::string_view::npos;
  };
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto plain = std::find_if_not(text.begin(), text.end(), is_plain) - text.begin();
    out.append(text.substr(0, static_cast<size_t>(plain)));
    text.remove_prefix(static_cast<size_t>(plain));
    if (text.empty()) break;
    const Utf8Step step = DecodeUtf8(text);
    const std::string_view bytes = text.substr(0, static_cast<size_t>(step.bytes));
    if (!step.valid || step.code_point < 0x20)
      AppendByteEscapes(bytes, &out);
    else if (IsHidden(step.code_point))
      AppendJsonEscape(step.code_point, &out);
    else
      out.append(bytes);
    text.remove_prefix(bytes.size());
  }
  return out;
}

}  // namespace

bool IsHidden(char32_t code_point) {
  return std::any_of(kHidden.begin(), kHidden.end(), [code_point](const HiddenRange& range) {
    return code_point >= range.first && code_point <= range.last;
  });
}

void AppendJsonEscape(char32_t code_point, std::string* out) {
  if (code_point < 0x10000) return AppendUtf16Unit(code_point, out);
  AppendUtf16Unit(0xd800 + ((code_point - 0x10000) >> 10), out);
  AppendUtf16Unit(0xdc00 + ((code_point - 0x10000) & 0x3ff), out);
}

std::string VisibleLine(std::string_view text) { return VisibleBut("", text); }
std::string VisibleLines(std::string_view text) { return VisibleBut("\n\t", text); }

}  // namespace latte
