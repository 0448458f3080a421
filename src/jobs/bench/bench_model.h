// Measures tokens per second of a whole model at a context depth: prompts of one sequence, decode
// steps of several.
#pragma once

#include <string>

#include "latte/options.h"

#include "src/base/json_out_fwd.h"
#include "src/engine/core/compute_device.h"
#include "src/engine/link/rank_world.h"
#include "src/jobs/job_progress.h"
#include "src/layers/mla/calibration.h"
#include "src/models/model.h"
#include "src/tensor/cache_format.h"

namespace latte {

struct BenchModelOptions {
  int64_t prompt = 512;  // tokens of the prompt; 0: not measured
  int64_t gen = 16;      // decode steps; 0: not measured
  int64_t depth = 0;     // cached tokens of every sequence at the start
  int64_t batch = 1;     // sequences per decode step
  int threads = 1;
  DType dtype = DType::kBF16;  // arithmetic
  CacheDType cache_dtype;
  bool int8_activations = true;
  std::string attention = "auto";  // as EngineOptions::attention
  EngineOptions engine;            // its fields of the group Ranks and its device are used
  // Errors: kInvalidArgument naming the flag.
  [[nodiscard]] Status Validate() const;
};

// clang-format off
// The cache is filled to its depth with copies of the rows of 64 random tokens: speed does not
// depend on values. Index keys are all different, because the choice of the best does. The prompt
// is computed in chunks of 512 tokens, by the path that the engine would choose.
//   prefill   tokens_per_s; ms of the prompt, median of 3 prompts; parts: ms by op; ops
//   ranks     of each: weight_bytes, what it has loaded; cache_bytes, its latent cache
//   decode    tokens_per_s; ms of a step, median of all steps; parts: ms by op; ops
//   ops       by op: ms (mean), flops, bytes, gflops; bound_ms: the larger of FLOPs at the f32 peak
//             and bytes at the speed of memory; share: bound_ms of ms. Kernels that multiply bf16
//             or bytes can be faster than the bound.
// On a GPU, parts and ops are empty and there are no ceilings: only whole steps are measured.
// ranks: the group that computes the model, which this process leads; null: alone.
// Errors: of Validate; kInvalidArgument for an attention that the model or the cache does not have;
// kExhausted if the cache does not fit; kUnavailable if a rank is lost.
// clang-format on
[[nodiscard]] Result<JsonOut> BenchModel(const Model& model, const BenchModelOptions& options,
                                         const ComputeDevice& device, const MlaRates& rates,
                                         RankWorld* ranks = nullptr,
                                         const JobProgress& progress = {});

}  // namespace latte
