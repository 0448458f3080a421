#include "src/text/unicode/case.h"

#include <algorithm>

#include "src/text/unicode/case_tables.h"
#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

bool IsAsciiLetter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Appends the changed text and returns true, if the table has the character.
bool AppendChanged(const CaseTable& table, char32_t c, std::string* out) {
  const auto longer = std::lower_bound(
      table.longer.begin(), table.longer.end(), c,
      [](const CaseLonger& entry, char32_t character) { return entry.from < character; });
  if (longer != table.longer.end() && longer->from == c) {
    for (const char32_t part : longer->to)
      if (part != 0) AppendUtf8(part, out);
    return true;
  }
  const auto run = std::lower_bound(
      table.runs.begin(), table.runs.end(), c,
      [](const CaseRun& entry, char32_t character) { return entry.last < character; });
  if (run == table.runs.end() || c < run->first || (c - run->first) % run->step != 0) return false;
  AppendUtf8(static_cast<char32_t>(static_cast<int32_t>(c) + run->delta), out);
  return true;
}

}  // namespace

void AppendLower(char32_t c, std::string* out) {
  if (c < 0x80) {
    *out += static_cast<char>(IsAsciiLetter(c) ? c | 0x20 : c);
    return;
  }
  if (!AppendChanged(kLowerCase, c, out)) AppendUtf8(c, out);
}

void AppendUpper(char32_t c, std::string* out) {
  if (c < 0x80) {
    *out += static_cast<char>(IsAsciiLetter(c) ? c & ~char32_t{0x20} : c);
    return;
  }
  if (!AppendChanged(kUpperCase, c, out)) AppendUtf8(c, out);
}

void AppendTitle(char32_t c, std::string* out) {
  if (c < 0x80 || !AppendChanged(kTitleCase, c, out)) AppendUpper(c, out);
}

bool HasCase(char32_t c) {
  if (c < 0x80) return IsAsciiLetter(c);
  std::string unused;
  return AppendChanged(kLowerCase, c, &unused) || AppendChanged(kUpperCase, c, &unused);
}

}  // namespace latte
