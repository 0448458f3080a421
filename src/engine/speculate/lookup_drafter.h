// Drafts by looking up the last tokens earlier in the same text. This works well if an answer
// repeats its prompt, as in edits of code, summaries and translations of names. Needs no pass of a
// model.
#pragma once

#include <span>
#include <vector>

#include "src/engine/speculate/drafter.h"

namespace latte {

// What followed the latest earlier occurrence of the last tokens, up to `count` tokens: of as many
// last tokens as possible, at most 4, at least 2. Empty if there is none. Cost: linear in the text.
std::vector<int32_t> LookUp(std::span<const int32_t> text, int64_t count);

class LookupDrafter final : public Drafter {
 public:
  void Propose(std::span<const DraftJob> jobs) override;
};

}  // namespace latte
