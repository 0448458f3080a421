// Measures the cost of handing work to the thread pool.
#pragma once

#include "latte/status.h"

#include "src/base/json_out_fwd.h"
#include "src/jobs/job_progress.h"

namespace latte {

// Microseconds of 20,000 consecutive calls, median and 99th percentile, on a pool of `threads`:
//   empty     ParallelFor over one empty task per thread: the least cost of a call
//   barrier   the same, but each task waits until all have begun: every thread takes part, so this
//             includes a full hand-over and return. Null with more threads than processors.
//   wake      a barrier after a pause in which the workers fell asleep (200 calls)
// idle_processor_share is the processor time that the pool uses in a pause of 200 ms, divided by
// the length of the pause.
// Errors: kInvalidArgument unless 1 ≤ threads ≤ 1024.
[[nodiscard]] Result<JsonOut> BenchPool(int threads, const JobProgress& progress = {});

}  // namespace latte
