// Measures the rates for path choices, and the quality of the choices.
#pragma once

#include "src/base/json_out_fwd.h"
#include "src/jobs/job_progress.h"
#include "src/kernels/machine.h"
#include "src/layers/mla/calibration.h"
#include "src/tensor/dtype.h"

namespace latte {

struct DispatchOptions {
  int64_t heads = 16;  // 1 … 128; C = 512, R = 64, N = V = 128
  int threads = 1;     // 1 … 1024
  DType dtype = DType::kBF16;
};

// Rates of the parts of attention on this machine, medians of 7 runs each.
// Errors: kInvalidArgument naming the flag; kExhausted if memory is short.
[[nodiscard]] Result<MlaRates> MeasureRates(const DispatchOptions& options, const Machine& machine,
                                            const JobProgress& progress = {});

// Runs both paths for {1, 2, 4, …, 1024} new tokens after {0, 64, 512, 4096, 32768} cached tokens
// and compares the path that `rates` choose with the faster one:
//   grid         per cell: new_tokens, cached_tokens, absorbed_us, latent_us, chosen, ratio; with
//                at least 2048 cached tokens sparse_us, the time with the indexer of DeepSeek-V3.2
//   worst_ratio  the largest ratio of the chosen path's time to the faster path's time
// Medians of 7 interleaved runs (3 for long ones), sparse_us the faster of 2. A path that the first
// run shows to be 4 times slower is not run again.
// Errors: as MeasureRates.
[[nodiscard]] Result<JsonOut> BenchDispatch(const DispatchOptions& options, const MlaRates& rates,
                                            const Machine& machine,
                                            const JobProgress& progress = {});

}  // namespace latte
