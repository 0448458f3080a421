#include "src/text/pretokenize.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "src/text/unicode/regex_onig_syntax.h"
#include "src/text/unicode/unicode.h"

namespace latte {

const std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

PreTokenizer::Scratch::Scratch(const PreTokenizer& pre_tokenizer) {
  size_t patterns = 0;
  for (const Step& step : pre_tokenizer.steps_) patterns += step.regex.size();
  // All patterns together may take the time that one may.
  RegexBudget share;
  share.seconds /= static_cast<double>(std::max<size_t>(patterns, 1));
  share.bytes_per_second *= static_cast<double>(std::max<size_t>(patterns, 1));
  for (const Step& step : pre_tokenizer.steps_)
    for (const Regex& regex : step.regex) matchers.emplace_back(regex, share);
  spaced.resize(pre_tokenizer.steps_.size());
}

Result<PreTokenizer> PreTokenizer::Create(const std::vector<PreTokenizeStep>& steps, bool jit) {
  PreTokenizer out;
  size_t matchers = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const PreTokenizeStep& step = steps[i];
    Step made{.kind = step.kind,
              .behavior = step.behavior,
              .invert = step.invert,
              .prefix = step.prefix,
              .cut = step.cut};
    if (step.kind == PreTokenizeStep::Kind::kRegex ||
        step.kind == PreTokenizeStep::Kind::kLiteral) {
      const bool literal = step.kind == PreTokenizeStep::Kind::kLiteral;
      Result<std::string> pattern = literal ? step.pattern : TranslatePattern(step.pattern);
      Result<Regex> regex = pattern.and_then([&](const std::string& translated) {
        return Regex::Compile(translated, {.literal = literal, .jit = jit});
      });
      if (!regex)
        return Fail(regex.error().code,
                    fmt::format("pre_tokenizer step {}: {}", i + 1, regex.error().message));
      made.regex.push_back(*std::move(regex));
      made.matcher = matchers++;
    }
    out.steps_.push_back(std::move(made));
  }
  return out;
}

namespace {

// A match in a piece, or the text between two of them.
struct PiecePart {
  std::string_view text;
  bool match = false;
};

std::string_view Span(std::string_view first, std::string_view last) {
  return {first.data(), static_cast<size_t>(last.data() + last.size() - first.data())};
}

// Calls `take`, which returns a Status, for the matches in one piece and the text between them. As
// in the `onig` package, an empty match directly after another match does not count.
template <class Take>
Status FindParts(std::string_view piece, bool invert, RegexMatcher* matcher, const Take& take) {
  size_t done = 0;       // everything before this offset is taken
  size_t from = 0;       // the next search starts here
  bool matched = false;  // whether a match ends at `done`
  while (from <= piece.size()) {
    LATTE_ASSIGN_OR_RETURN(const RegexMatch match, matcher->Find(piece, from));
    if (!match.found) break;
    if (match.end == match.begin && matched && match.end == done) {
      from += static_cast<size_t>(std::max(1, DecodeUtf8(piece.substr(from)).bytes));
      continue;
    }
    if (match.begin != done)
      LATTE_RETURN_IF_ERROR(take(PiecePart{piece.substr(done, match.begin - done), invert}));
    LATTE_RETURN_IF_ERROR(
        take(PiecePart{piece.substr(match.begin, match.end - match.begin), !invert}));
    done = from = match.end;
    matched = true;
  }
  if (done != piece.size()) return take(PiecePart{piece.substr(done), invert});
  return {};
}

}  // namespace

// Joins the parts of one piece as a step wants it, and gives each result to the next step.
class PreTokenizer::Joiner {
 public:
  using Next = std::function<Status(std::string_view piece)>;
  Joiner(SplitBehavior behavior, Next next) : behavior_(behavior), next_(std::move(next)) {}

  Status Add(const PiecePart& part) {
    if (behavior_ == SplitBehavior::kRemoved && part.match) return {};
    const bool joins = held_ && Joins(part);
    held_match_ = part.match;
    if (joins) {
      *held_ = Span(*held_, part.text);
      return {};
    }
    LATTE_RETURN_IF_ERROR(End());
    held_ = part.text;
    return {};
  }

  Status End() {
    const std::optional<std::string_view> last = std::exchange(held_, std::nullopt);
    if (!last || last->empty()) return {};
    return next_(*last);
  }

 private:
  bool Joins(const PiecePart& part) const {
    switch (behavior_) {
      case SplitBehavior::kContiguous:
        return part.match == held_match_;
      case SplitBehavior::kMergedWithPrevious:
        return part.match && !held_match_;
      case SplitBehavior::kMergedWithNext:
        return !part.match && held_match_;
      case SplitBehavior::kIsolated:
      case SplitBehavior::kRemoved:
        break;
    }
    return false;
  }

  SplitBehavior behavior_;
  Next next_;
  std::optional<std::string_view> held_;
  bool held_match_ = false;  // of the last part of `held_`
};

Status PreTokenizer::Split(std::string_view text, Scratch* scratch, const TakePiece& take) const {
  if (text.empty()) return {};
  return SplitFrom(0, text, scratch, take);
}

Status PreTokenizer::SplitMetaspace(size_t step, std::string_view piece, Scratch* scratch,
                                    const TakePiece& take) const {
  using Prefix = PreTokenizeStep::Prefix;
  const Step& now = steps_[step];
  std::string& spaced = scratch->spaced[step];
  spaced.clear();
  const bool absent = piece.front() != ' ' && !piece.starts_with(kMetaspace);
  if (now.prefix == Prefix::kAlways || (now.prefix == Prefix::kIfAbsent && absent) ||
      (now.prefix == Prefix::kIfAbsentAtStart && absent && scratch->at_start))
    spaced += kMetaspace;
  for (const char c : piece) {
    if (c == ' ')
      spaced += kMetaspace;
    else
      spaced += c;
  }
  if (now.cut == PreTokenizeStep::Cut::kNowhere) return SplitFrom(step + 1, spaced, scratch, take);
  // A piece ends before the next "▁" that, if runs are kept together, follows something else.
  const bool runs = now.cut == PreTokenizeStep::Cut::kBeforeRuns;
  const std::string_view all = spaced;
  size_t begin = 0;
  for (size_t at = all.find(kMetaspace); at < all.size(); at = all.find(kMetaspace, at + 1)) {
    if (at == begin || (runs && all.substr(0, at).ends_with(kMetaspace))) continue;
    LATTE_RETURN_IF_ERROR(SplitFrom(step + 1, all.substr(begin, at - begin), scratch, take));
    begin = at;
  }
  if (begin < all.size()) return SplitFrom(step + 1, all.substr(begin), scratch, take);
  return {};
}

// Each piece passes all steps before the next one is looked for.
Status PreTokenizer::SplitFrom(size_t step, std::string_view piece, Scratch* scratch,
                               const TakePiece& take) const {
  if (step == steps_.size()) return take(piece);
  const Step& now = steps_[step];
  if (now.kind == PreTokenizeStep::Kind::kPrefixSpace) {
    if (piece.front() == ' ') return SplitFrom(step + 1, piece, scratch, take);
    std::string& spaced = scratch->spaced[step];
    spaced = ' ';
    spaced += piece;
    return SplitFrom(step + 1, spaced, scratch, take);
  }
  if (now.kind == PreTokenizeStep::Kind::kMetaspace)
    return SplitMetaspace(step, piece, scratch, take);
  Joiner joiner(now.behavior,
                [&](std::string_view part) { return SplitFrom(step + 1, part, scratch, take); });
  LATTE_RETURN_IF_ERROR(FindParts(piece, now.invert, &scratch->matchers[now.matcher],
                                  [&](const PiecePart& part) { return joiner.Add(part); }));
  return joiner.End();
}

}  // namespace latte
