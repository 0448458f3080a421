// Groups of ranks with requests of their own, which compute calls of the model together: routed experts
// belong to all ranks, so every rank takes part in every layer that has them.
//
// Groups differ in what they have to do: one drafts, another prefills, a third has no request. Before each
// call the leaders of all groups meet. Each says the call that it wants; the first of them in the order
// drafts by layer, Forward, the end of the step
// is computed with the tokens of all groups that want it. The other groups take part without tokens, and
// ask again. So a step ends in all groups at once, and what is computed together depends only on what was
// exchanged.
#pragma once

#include <cstdint>
#include <vector>

#include "src/comm/communicator.h"

namespace latte {

enum class GroupCall : int64_t { kDraft, kForward, kEndOfStep };

struct WantedCall {
  GroupCall call = GroupCall::kEndOfStep;
  int64_t layer = 0;   // of a draft
  int64_t tokens = 0;  // of this group
};

struct AgreedCall {
  GroupCall call = GroupCall::kEndOfStep;
  int64_t layer = 0;
  bool is_mine = false;               // this group wanted it
  std::vector<int64_t> group_tokens;  // of each group; 0: takes part without tokens
};

class Meeting {
 public:
  // leaders: the first rank of every group, in the order of groups; outlives this.
  explicit Meeting(Communicator& leaders) : leaders_(&leaders) {}

  // Every leader calls it. Throws RankLost.
  AgreedCall Ask(const WantedCall& mine);

 private:
  Communicator* leaders_;
};

}  // namespace latte
