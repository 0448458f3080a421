// Ranks as threads of one process: the code of many ranks in a test, without processes.
#pragma once

#include <functional>

#include "src/comm/communicator.h"

namespace latte::testing_support {

// Runs body(world) on `size` ≥ 1 threads, one per rank, and returns when all have ended. A rank
// whose body throws is lost, and so is one that ends while another waits for it: the others get
// RankLost with its number. The exception of the rank that ended first by one is thrown to the
// caller.
void RunRanks(int size, const CommOptions& options,
              const std::function<void(Communicator& world)>& body);

}  // namespace latte::testing_support
