// The reader of regular expressions: recursive descent into a tree that still has anchors, which
// are then taken off its ends.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "src/grammar/pattern/pattern.h"
#include "src/grammar/pattern/pattern_class.h"
#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

constexpr int kMostNesting = 60;
constexpr int kMostRepeats = 10'000;

enum class Anchor : uint8_t { kNone, kBegin, kEnd };

// A pattern in which a node may be an anchor.
struct Draft {
  Pattern::Kind kind = Pattern::Kind::kSequence;
  Anchor anchor = Anchor::kNone;  // of an empty sequence
  CharSet chars;
  std::vector<Draft> parts;
  int least = 0;
  int most = Pattern::kNoEnd;
};

class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : reader_(text) {}

  Result<Draft> Parse() {
    LATTE_ASSIGN_OR_RETURN(Draft out, Choice(0));
    if (!reader_.AtEnd()) return reader_.Wrong("')' closes no group");
    return out;
  }

 private:
  Result<Draft> Choice(int depth);
  Result<Draft> Sequence(int depth);
  Result<Draft> Atom(int depth);
  Result<Draft> Group(int depth);
  Result<Draft> Quantified(Draft atom);
  Result<std::optional<std::pair<int, int>>> Bounds();
  Result<int> Count();

  PatternReader reader_;
};

Result<Draft> PatternParser::Choice(int depth) {
  if (depth > kMostNesting) return reader_.CannotDo("groups that nest so deep");
  Draft out;
  out.kind = Pattern::Kind::kChoice;
  do {
    LATTE_ASSIGN_OR_RETURN(Draft part, Sequence(depth));
    out.parts.push_back(std::move(part));
  } while (reader_.Take('|'));
  if (out.parts.size() == 1) return Draft(std::move(out.parts.front()));
  return out;
}

Result<Draft> PatternParser::Sequence(int depth) {
  Draft out;
  while (!reader_.AtEnd() && !reader_.Sees('|') && !reader_.Sees(')')) {
    LATTE_ASSIGN_OR_RETURN(Draft atom, Atom(depth));
    LATTE_ASSIGN_OR_RETURN(Draft part, Quantified(std::move(atom)));
    out.parts.push_back(std::move(part));
  }
  if (out.parts.size() == 1) return Draft(std::move(out.parts.front()));
  return out;
}

Result<Draft> PatternParser::Atom(int depth) {
  Draft out;
  if (reader_.Take('(')) return Group(depth);
  if (reader_.Take('^')) {
    out.anchor = Anchor::kBegin;
    return out;
  }
  if (reader_.Take('$')) {
    out.anchor = Anchor::kEnd;
    return out;
  }
  for (const char c : {'*', '+', '?'})
    if (reader_.Sees(c)) return reader_.Wrong("nothing stands before the quantifier");
  out.kind = Pattern::Kind::kChars;
  LATTE_ASSIGN_OR_RETURN(out.chars, reader_.TakeChars());
  return out;
}

Result<Draft> PatternParser::Group(int depth) {
  if (reader_.Take('?')) {
    if (reader_.Sees('=') || reader_.Sees('!')) return reader_.CannotDo("a lookahead");
    if (reader_.Take('<')) {
      if (reader_.Sees('=') || reader_.Sees('!')) return reader_.CannotDo("a lookbehind");
      while (!reader_.AtEnd() && !reader_.Sees('>')) reader_.Next();
      if (!reader_.Take('>')) return reader_.Wrong("the name of a group does not end");
    } else if (!reader_.Take(':')) {
      return reader_.CannotDo("a group with flags");
    }
  }
  LATTE_ASSIGN_OR_RETURN(Draft out, Choice(depth + 1));
  if (!reader_.Take(')')) return reader_.Wrong("a group does not end");
  return out;
}

Result<int> PatternParser::Count() {
  int out = 0;
  while (reader_.SeesDigit()) {
    out = out * 10 + static_cast<int>(reader_.Next() - U'0');
    if (out > kMostRepeats) return reader_.CannotDo(fmt::format("a count above {}", kMostRepeats));
  }
  return out;
}

// {n}, {n,} and {n,m}; a brace that begins none of them stands for itself.
Result<std::optional<std::pair<int, int>>> PatternParser::Bounds() {
  if (!reader_.SeesBounds()) return std::optional<std::pair<int, int>>();
  reader_.Take('{');
  LATTE_ASSIGN_OR_RETURN(const int least, Count());
  int most = least;
  if (reader_.Take(',')) {
    most = Pattern::kNoEnd;
    if (reader_.SeesDigit()) {
      LATTE_ASSIGN_OR_RETURN(most, Count());
    }
  }
  reader_.Take('}');
  if (most != Pattern::kNoEnd && most < least)
    return reader_.Wrong("the bounds of a quantifier are out of order");
  return std::optional(std::pair(least, most));
}

Result<Draft> PatternParser::Quantified(Draft atom) {
  std::pair<int, int> bounds;
  if (reader_.Take('*')) {
    bounds = {0, Pattern::kNoEnd};
  } else if (reader_.Take('+')) {
    bounds = {1, Pattern::kNoEnd};
  } else if (reader_.Take('?')) {
    bounds = {0, 1};
  } else {
    LATTE_ASSIGN_OR_RETURN(const auto found, Bounds());
    if (!found) return atom;
    bounds = *found;
  }
  reader_.Take('?');  // lazy: the same values match
  for (const char c : {'*', '+', '?'})
    if (reader_.Sees(c)) return reader_.Wrong("nothing stands before the quantifier");
  Draft out;
  out.kind = Pattern::Kind::kRepeat;
  out.least = bounds.first;
  out.most = bounds.second;
  out.parts.push_back(std::move(atom));
  return out;
}

bool HasAnchor(const Draft& draft, Anchor anchor) {
  return draft.anchor == anchor || std::ranges::any_of(draft.parts, [&](const Draft& part) {
           return HasAnchor(part, anchor);
         });
}

bool IsOnlyAnchors(const Draft& draft) {
  if (draft.anchor != Anchor::kNone) return true;
  return draft.kind != Pattern::Kind::kChars && draft.kind != Pattern::Kind::kRepeat &&
         std::ranges::all_of(draft.parts, IsOnlyAnchors);
}

// Whether every way through the draft begins (or ends) with the anchor.
bool IsAnchored(const Draft& draft, Anchor anchor) {
  if (draft.anchor != Anchor::kNone) return draft.anchor == anchor;
  if (draft.parts.empty() || draft.kind == Pattern::Kind::kRepeat) return false;
  if (draft.kind == Pattern::Kind::kChoice)
    return std::ranges::all_of(draft.parts,
                               [&](const Draft& part) { return IsAnchored(part, anchor); });
  return IsAnchored(anchor == Anchor::kBegin ? draft.parts.front() : draft.parts.back(), anchor);
}

tl::unexpected<Error> InnerAnchor() {
  return Unsupported("^ or $ inside of the pattern, where no grammar can express it");
}

// Takes anchors off the ends. at_begin, at_end: nothing can stand before, or after, the draft.
Result<Pattern> WithoutAnchors(const Draft& draft, bool at_begin, bool at_end) {
  if (draft.anchor != Anchor::kNone) {
    if (draft.anchor == Anchor::kBegin ? at_begin : at_end) return Pattern();
    return InnerAnchor();
  }
  if (draft.kind == Pattern::Kind::kChars) return Pattern::Chars(draft.chars);
  if (draft.kind == Pattern::Kind::kRepeat) {
    LATTE_ASSIGN_OR_RETURN(Pattern part, WithoutAnchors(draft.parts.front(), false, false));
    return Pattern::Repeat(std::move(part), draft.least, draft.most);
  }
  const bool is_choice = draft.kind == Pattern::Kind::kChoice;
  const auto first = std::ranges::find_if_not(draft.parts, IsOnlyAnchors);
  std::vector<Pattern> parts;
  for (auto part = draft.parts.begin(); part != draft.parts.end(); ++part) {
    const bool begins = is_choice || part <= first;
    const bool ends = is_choice || std::all_of(part + 1, draft.parts.end(), IsOnlyAnchors);
    LATTE_ASSIGN_OR_RETURN(Pattern made, WithoutAnchors(*part, at_begin && begins, at_end && ends));
    parts.push_back(std::move(made));
  }
  return is_choice ? Pattern::Choice(std::move(parts)) : Pattern::Sequence(std::move(parts));
}

// One of the choices at the top, with what may stand around it.
Result<Pattern> WithEnds(const Draft& draft, PatternEnds ends) {
  const bool begins = IsAnchored(draft, Anchor::kBegin);
  const bool ends_here = IsAnchored(draft, Anchor::kEnd);
  const bool is_empty = draft.kind == Pattern::Kind::kSequence && draft.parts.empty();
  const bool search = ends == PatternEnds::kSearch || begins != ends_here || is_empty;
  // Some of the ways through it have the anchor: text may stand before the others only.
  const bool begins_maybe = !begins && HasAnchor(draft, Anchor::kBegin);
  const bool ends_maybe = !ends_here && HasAnchor(draft, Anchor::kEnd);
  if (ends == PatternEnds::kSearch && (begins_maybe || ends_maybe)) return InnerAnchor();
  LATTE_ASSIGN_OR_RETURN(Pattern whole, WithoutAnchors(draft, true, true));
  std::vector<Pattern> parts;
  if (search && !begins && !begins_maybe) parts.push_back(Pattern::AnyText());
  parts.push_back(std::move(whole));
  if (search && !ends_here && !ends_maybe) parts.push_back(Pattern::AnyText());
  return Pattern::Sequence(std::move(parts));
}

}  // namespace

Result<Pattern> ParsePattern(std::string_view regex, PatternEnds ends) {
  LATTE_ASSIGN_OR_RETURN(const Draft draft, PatternParser(regex).Parse());
  if (draft.kind != Pattern::Kind::kChoice) return WithEnds(draft, ends);
  std::vector<Pattern> parts;
  for (const Draft& part : draft.parts) {
    LATTE_ASSIGN_OR_RETURN(Pattern made, WithEnds(part, ends));
    parts.push_back(std::move(made));
  }
  return Pattern::Choice(std::move(parts));
}

}  // namespace latte
