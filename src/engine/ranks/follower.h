// A rank that computes what the leader of its group announces (leader.h).
#pragma once

#include "src/comm/communicator.h"
#include "src/engine/ranks/step_call.h"
#include "src/kernels/machine.h"
#include "src/models/model.h"

namespace latte {

// All must outlive the call.
struct FollowerParts {
  const Model* model = nullptr;      // this rank's share
  const Machine* machine = nullptr;  // runs the model
  Communicator* ranks = nullptr;     // the group; this rank is not 0
};

// The next call that the leader announces. `message`: the memory of its lists. Errors: kCorrupt for a
// message of another build. Throws RankLost.
[[nodiscard]] Result<StepCall> NextCall(Communicator& ranks, std::vector<std::byte>& message);

// Computes until the leader stops the group; then returns without an error. Settings and the number of
// pages are the leader's. Throws RankLost: also if this rank fails, so that the others learn of it.
void Follow(const FollowerParts& parts);

}  // namespace latte
