// Makes text from a file safe for a one-line message.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "src/text/unicode/visible.h"

namespace latte {

// VisibleLine of `text`, cut after about `max_bytes` bytes. A tensor name may contain a newline or
// be a megabyte long.
inline std::string Printable(std::string_view text, size_t max_bytes = 200) {
  size_t end = text.size();
  if (end > max_bytes) {
    end = max_bytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;
  }
  std::string out = VisibleLine(text.substr(0, end));
  if (end < text.size()) out += fmt::format("… ({} bytes)", text.size());
  return out;
}

}  // namespace latte
