// Makes text from a file safe for a one-line message.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace latte {

// `text` with control characters written as \x0a, cut after about `max_bytes` bytes. A tensor name
// may contain a newline or be a megabyte long.
inline std::string Printable(std::string_view text, size_t max_bytes = 200) {
  size_t end = text.size();
  if (end > max_bytes) {
    end = max_bytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;
  }
  std::string out;
  out.reserve(end);
  for (const char c : text.substr(0, end)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  if (end < text.size()) out += fmt::format("… ({} bytes)", text.size());
  return out;
}

}  // namespace latte
