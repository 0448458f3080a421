#include "src/api/common/json_text.h"

#include <iterator>

#include <fmt/format.h>

#include "src/base/json_out.h"
#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

void AppendEscaped(char c, std::string* out) {
  switch (c) {
    case '"':
      out->append("\\\"");
      return;
    case '\\':
      out->append("\\\\");
      return;
    case '\b':
      out->append("\\b");
      return;
    case '\f':
      out->append("\\f");
      return;
    case '\n':
      out->append("\\n");
      return;
    case '\r':
      out->append("\\r");
      return;
    case '\t':
      out->append("\\t");
      return;
    default:
      fmt::format_to(std::back_inserter(*out), "\\u{:04x}", static_cast<unsigned char>(c));
  }
}

bool NeedsNoEscape(char c) {
  return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
}

}  // namespace

void AppendJsonString(std::string_view text, std::string* out) {
  std::string repaired;
  if (ValidUtf8Prefix(text) != text.size()) {
    AppendValidUtf8(text, &repaired);
    text = repaired;
  }
  out->push_back('"');
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    while (end < text.size() && NeedsNoEscape(text[end])) ++end;
    out->append(text.substr(begin, end - begin));
    if (end < text.size()) AppendEscaped(text[end], out);
    begin = end + 1;
  }
  out->push_back('"');
}

std::string JsonString(std::string_view text) {
  std::string out;
  AppendJsonString(text, &out);
  return out;
}

void AppendJsonNumber(double value, std::string* out) { *out += Dump(JsonOut(value)); }

}  // namespace latte
