#include "src/api/messages/call_id.h"

#include <iterator>

#include <fmt/format.h>

namespace latte {
namespace {

bool IsPlain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

// Ids are encoded with capital letters only, so that each has one form.
int CapitalHexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string EncodeCallId(std::string_view id) {
  std::string out;
  for (const char c : id) {
    if (IsPlain(c))
      out += c;
    else
      fmt::format_to(std::back_inserter(out), "-{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string DecodeCallId(std::string_view id) {
  std::string out;
  for (size_t i = 0; i < id.size(); ++i) {
    const bool is_code = id[i] == '-' && i + 2 < id.size() && CapitalHexDigit(id[i + 1]) >= 0 &&
                         CapitalHexDigit(id[i + 2]) >= 0;
    if (!is_code) {
      out += id[i];
      continue;
    }
    out += static_cast<char>(CapitalHexDigit(id[i + 1]) * 16 + CapitalHexDigit(id[i + 2]));
    i += 2;
  }
  return out;
}

}  // namespace latte
