// Measures what handing work to the thread pool costs.
#pragma once

#include "latte/status.h"

#include "src/base/json_out_fwd.h"

namespace latte {

// Microseconds of 20,000 calls in a row, median and 99th percentile, on a pool of `threads`:
//   empty     ParallelFor over one empty task per thread: what a call costs at least
//   barrier   the same, each task waiting until all have begun: every thread has to come, so that
//             this holds a full hand-over and return. Null with more threads than processors.
//   wake      a barrier after a pause in which the workers fell asleep (200 calls)
// idle_processor_share is the processor time that the pool uses in a pause of 200 ms, divided by
// it. Errors: kInvalidArgument unless 1 ≤ threads ≤ 1024.
[[nodiscard]] Result<JsonOut> BenchPool(int threads);

}  // namespace latte
