// Measures the cost of sampling.
#pragma once

#include <cstdint>

#include "src/base/json_out_fwd.h"
#include "src/jobs/job_progress.h"
#include "src/kernels/machine.h"

namespace latte {

struct BenchSamplerOptions {
  int64_t vocab = 129280;
  int64_t rows = 16;  // sampled by one call, each with its own logits
  int threads = 1;
};

// Microseconds per row of a call of SampleAll, the median of several dozen calls, for different
// parameters: greedy, temperature, top_p, top_k with top_p, min_p, greedy with penalties, greedy
// with logprobs. Three kinds of logits: "peaked", probabilities that fall with the square of the
// rank, like a confident language model; "flat", normal with a deviation of 3, for which top_p 0.95
// keeps thousands of tokens; "even", normal with a deviation of 0.1, like random weights.
// Errors: kInvalidArgument naming the flag, its value and the accepted range.
[[nodiscard]] Result<JsonOut> BenchSampler(const BenchSamplerOptions& options,
                                           const Machine& machine,
                                           const JobProgress& progress = {});

}  // namespace latte
