#include "src/grammar/pattern/pattern.h"

#include <algorithm>
#include <utility>

#include "src/text/unicode/unicode.h"

namespace latte {

Pattern Pattern::Chars(CharSet chars) {
  Pattern out;
  out.kind = Kind::kChars;
  out.chars = std::move(chars);
  return out;
}

Pattern Pattern::Text(std::string_view utf8) {
  std::vector<Pattern> parts;
  while (!utf8.empty()) {
    const Utf8Step step = DecodeUtf8(utf8);
    parts.push_back(Chars({{step.code_point, step.code_point}}));
    utf8.remove_prefix(static_cast<size_t>(step.bytes));
  }
  return Sequence(std::move(parts));
}

Pattern Pattern::Sequence(std::vector<Pattern> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  Pattern out;
  out.parts = std::move(parts);
  return out;
}

Pattern Pattern::Choice(std::vector<Pattern> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  Pattern out;
  out.kind = Kind::kChoice;
  out.parts = std::move(parts);
  return out;
}

// A part that matches nothing may be left out instead of repeated: that keeps loops of nothing
// away.
Pattern Pattern::Repeat(Pattern part, int least, int most) {
  Pattern out;
  out.kind = Kind::kRepeat;
  out.least = part.MatchesEmpty() ? 0 : least;
  out.most = most;
  out.parts.push_back(std::move(part));
  return out;
}

bool Pattern::MatchesEmpty() const {
  const auto empty = [](const Pattern& part) { return part.MatchesEmpty(); };
  switch (kind) {
    case Kind::kChars:
      return false;
    case Kind::kSequence:
      return std::ranges::all_of(parts, empty);
    case Kind::kChoice:
      return std::ranges::any_of(parts, empty);
    case Kind::kRepeat:
      break;
  }
  return least == 0 || parts.front().MatchesEmpty();
}

}  // namespace latte
