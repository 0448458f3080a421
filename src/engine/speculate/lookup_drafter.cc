#include "src/engine/speculate/lookup_drafter.h"

#include <algorithm>

namespace latte {
namespace {

constexpr int64_t kFewestTokens = 2;
constexpr int64_t kMostTokens = 4;

// How many of the tokens before `end` equal the last tokens of the text, up to kMostTokens.
int64_t EqualTokens(std::span<const int32_t> text, int64_t end) {
  int64_t equal = 0;
  const int64_t length = std::ssize(text);
  while (equal < std::min(kMostTokens, end) && text[static_cast<size_t>(end - 1 - equal)] ==
                                                   text[static_cast<size_t>(length - 1 - equal)])
    ++equal;
  return equal;
}

}  // namespace

std::vector<int32_t> LookUp(std::span<const int32_t> text, int64_t count) {
  const int64_t length = std::ssize(text);
  int64_t best = kFewestTokens - 1;
  int64_t found = length;
  for (int64_t end = length - 1; end >= kFewestTokens && best < kMostTokens; --end) {
    const int64_t equal = EqualTokens(text, end);
    if (equal <= best) continue;
    best = equal;
    found = end;
  }
  const auto from = text.subspan(static_cast<size_t>(found));
  const auto known = from.first(static_cast<size_t>(std::min(count, std::ssize(from))));
  return {known.begin(), known.end()};
}

void LookupDrafter::Propose(std::span<const DraftJob> jobs) {
  for (const DraftJob& job : jobs) {
    Sequence& s = job.output->sequence;
    if (job.count > 0) s.drafts = LookUp(s.tokens, job.count);
  }
}

}  // namespace latte
