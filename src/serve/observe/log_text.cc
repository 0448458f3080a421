#include "src/serve/observe/log_text.h"

#include <algorithm>

#include "src/text/unicode/unicode.h"
#include "src/text/unicode/visible.h"

namespace latte {
namespace {

bool IsPlain(char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

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
  AppendJsonEscape(c, out);
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
