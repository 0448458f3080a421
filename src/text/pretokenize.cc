#include "src/text/pretokenize.h"

#include <algorithm>
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
}

Result<PreTokenizer> PreTokenizer::Create(const std::vector<PreTokenizeStep>& steps, bool jit) {
  PreTokenizer out;
  for (size_t i = 0; i < steps.size(); ++i) {
    const PreTokenizeStep& step = steps[i];
    Step made{.kind = step.kind, .behavior = step.behavior, .invert = step.invert, .regex = {}};
    if (step.kind != PreTokenizeStep::Kind::kPrefixSpace) {
      const bool literal = step.kind == PreTokenizeStep::Kind::kLiteral;
      Result<std::string> pattern = literal ? step.pattern : TranslatePattern(step.pattern);
      Result<Regex> regex = pattern.and_then([&](const std::string& translated) {
        return Regex::Compile(translated, {.literal = literal, .jit = jit});
      });
      if (!regex)
        return Fail(regex.error().code,
                    fmt::format("pre_tokenizer step {}: {}", i + 1, regex.error().message));
      made.regex.push_back(*std::move(regex));
    }
    out.steps_.push_back(std::move(made));
  }
  return out;
}

// Finds the matches in one piece and the text between them. As in the `onig` package, an empty
// match directly after another match does not count.
Status PreTokenizer::FindParts(std::string_view piece, bool invert, RegexMatcher* matcher,
                               std::vector<Scratch::Part>* parts) {
  parts->clear();
  size_t done = 0;       // `parts` holds everything before this offset
  size_t from = 0;       // the next search starts here
  bool matched = false;  // whether a match ends at `done`
  while (from <= piece.size()) {
    LATTE_ASSIGN_OR_RETURN(const RegexMatch match, matcher->Find(piece, from));
    if (!match.found) break;
    if (match.end == match.begin && matched && match.end == done) {
      from += static_cast<size_t>(std::max(1, DecodeUtf8(piece.substr(from)).bytes));
      continue;
    }
    if (match.begin != done) parts->push_back({piece.substr(done, match.begin - done), invert});
    parts->push_back({piece.substr(match.begin, match.end - match.begin), !invert});
    done = from = match.end;
    matched = true;
  }
  if (done != piece.size()) parts->push_back({piece.substr(done), invert});
  return {};
}

namespace {

std::string_view Span(std::string_view first, std::string_view last) {
  return {first.data(), static_cast<size_t>(last.data() + last.size() - first.data())};
}

}  // namespace

void PreTokenizer::Join(SplitBehavior behavior, std::vector<Scratch::Part>* parts,
                        std::vector<std::string_view>* pieces) {
  const bool from_the_end = behavior == SplitBehavior::kMergedWithNext;
  if (from_the_end) std::reverse(parts->begin(), parts->end());
  const size_t begin = pieces->size();
  bool previous = false;
  for (const Scratch::Part& part : *parts) {
    if (behavior == SplitBehavior::kRemoved && part.match) continue;
    const bool join = behavior == SplitBehavior::kContiguous
                          ? part.match == previous
                          : (behavior == SplitBehavior::kMergedWithPrevious || from_the_end) &&
                                part.match && !previous;
    previous = part.match;
    if (!join || pieces->size() == begin) {
      pieces->push_back(part.text);
    } else {
      pieces->back() =
          from_the_end ? Span(part.text, pieces->back()) : Span(pieces->back(), part.text);
    }
  }
  const auto first = pieces->begin() + static_cast<std::ptrdiff_t>(begin);
  if (from_the_end) std::reverse(first, pieces->end());
  pieces->erase(std::remove_if(first, pieces->end(), [](std::string_view p) { return p.empty(); }),
                pieces->end());
}

void PreTokenizer::PrefixSpaces(Scratch* scratch) {
  size_t bytes = 0;
  for (const std::string_view piece : scratch->pieces) bytes += piece.size() + 1;
  std::string& text = scratch->spaced.emplace_back();
  text.reserve(bytes);  // the pieces below point into this string
  for (std::string_view& piece : scratch->pieces) {
    if (piece.front() == ' ') continue;
    const size_t begin = text.size();
    text.push_back(' ');
    text.append(piece);
    piece = std::string_view(text).substr(begin);
  }
}

Result<const std::vector<std::string_view>*> PreTokenizer::Split(std::string_view text,
                                                                 Scratch* scratch) const {
  scratch->spaced.clear();
  scratch->spaced.reserve(steps_.size());  // moving a string would invalidate the pieces that point
                                           // into it
  scratch->pieces.clear();
  if (!text.empty()) scratch->pieces.push_back(text);
  size_t matcher = 0;
  for (const Step& step : steps_) {
    if (step.kind == PreTokenizeStep::Kind::kPrefixSpace) {
      PrefixSpaces(scratch);
      continue;
    }
    scratch->next_pieces.clear();
    for (const std::string_view piece : scratch->pieces) {
      LATTE_RETURN_IF_ERROR(
          FindParts(piece, step.invert, &scratch->matchers[matcher], &scratch->parts));
      Join(step.behavior, &scratch->parts, &scratch->next_pieces);
    }
    std::swap(scratch->pieces, scratch->next_pieces);
    ++matcher;
  }
  return &scratch->pieces;
}

}  // namespace latte
