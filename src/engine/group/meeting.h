// Groups of ranks with requests of their own, which compute calls of the model together: routed
// experts belong to all ranks, so every rank takes part in every layer that has them.
//
// Groups have different work: one drafts, another prefills, a third has no request. So the leaders
// of all groups meet before each call, and each announces the call that it wants. Calls have an
// order: drafts by layer, Forward, the end of the step. All groups make the first wanted call, and
// those that did not want it take part without tokens. Then the leaders meet again, so a step ends
// in all groups at once. The agreed call depends only on the exchanged announcements.
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
