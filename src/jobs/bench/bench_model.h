// Tokens per second of a whole model at a depth: prompts of one sequence, decode steps of several.
#pragma once

#include <string>

#include "src/base/json_out_fwd.h"
#include "src/kernels/machine.h"
#include "src/layers/mla/rates.h"
#include "src/models/model.h"
#include "src/tensor/row_format.h"

namespace latte {

struct BenchModelOptions {
  int64_t prompt = 512;  // tokens of the prompt; 0: not measured
  int64_t gen = 16;      // decode steps; 0: not measured
  int64_t depth = 0;     // cached tokens of every sequence before that
  int64_t batch = 1;     // sequences of a decode step
  int threads = 1;
  DType dtype = DType::kBF16;  // arithmetic
  CacheDType cache_dtype;
  bool int8_activations = true;
  // Errors: kInvalidArgument naming the flag.
  [[nodiscard]] Status Validate() const;
};

// The cache holds at its depth what 64 random tokens left there, over and over: speed does not
// depend on values. The prompt goes in chunks of 512 tokens by the path that the engine would
// choose.
//   prefill, decode   tokens_per_s, ms (of the prompt, of a step; medians of 3 prompts or all
//   steps),
//                     parts: ms by op
// Errors: of Validate; kExhausted when the cache does not fit.
[[nodiscard]] Result<JsonOut> BenchModel(const Model& model, const BenchModelOptions& options,
                                         const Machine& machine, const MlaRates& rates);

}  // namespace latte
