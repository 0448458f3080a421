#include "src/api/messages/call_id.h"

#include <iterator>

#include <fmt/format.h>

#include "src/base/strings.h"

namespace latte {
namespace {

bool IsPlain(char c) { return IsAlphanumeric(c) || c == '_'; }

// Ids are encoded with capital letters only, so that each has one form.
int CapitalHexDigit(char c) { return c >= 'a' ? -1 : HexDigit(c); }

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
