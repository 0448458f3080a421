// The engine's error for lost ranks.
#pragma once

#include "latte/status.h"

#include "src/comm/communicator.h"

namespace latte {

// The error of a rank that is lost in `call`.
template <class F>
Status CatchLostRanks(const F& call) {
  try {
    call();
    return {};
  } catch (const RankLost& lost) {
    return Fail(Code::kUnavailable, lost.what());
  }
}

}  // namespace latte
