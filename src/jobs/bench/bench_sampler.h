// Measures what drawing tokens costs.
#pragma once

#include <cstdint>

#include "src/base/json_out_fwd.h"
#include "src/kernels/machine.h"

namespace latte {

struct BenchSamplerOptions {
  int64_t vocab = 129280;
  int64_t rows = 16;  // drawn by one call, each with logits of its own
  int threads = 1;

  // Errors: kInvalidArgument naming the flag, its value and the accepted range.
  [[nodiscard]] Status Validate() const;
};

// Microseconds per row of one call of SampleAll, the median of some dozen calls, by parameters:
// greedy, temperature, top_p, top_k with top_p, min_p, greedy with penalties, greedy with logprobs.
// On three kinds of logits: peaked, probabilities that fall with the square of the rank, as a
// language model's do where it is rather sure; flat, normal with a deviation of 3, where top_p 0.95
// keeps thousands of tokens; and even, normal with a deviation of 0.1, as random weights give them.
[[nodiscard]] Result<JsonOut> BenchSampler(const BenchSamplerOptions& options,
                                           const Machine& machine);

}  // namespace latte
