// Which way a prompt's attention is evaluated: pure arithmetic over its lengths and the machine's
// rates (docs/math/mla.md §10). Generated tokens are always absorbed.
#pragma once

#include <span>
#include <vector>

#include "src/checkpoint/config/model_config.h"
#include "src/layers/mla/rates.h"
#include "src/layers/step_context.h"

namespace latte {

// A sequence when its prompt is admitted.
struct PromptShape {
  int64_t new_tokens = 0;     // > 0
  int64_t cached_tokens = 0;  // before them
};

// What one layer's attention costs between the projections that all paths share.
struct PathCost {
  double flops = 0;
  double bytes = 0;  // of weights and cached rows, read once per chunk
  double seconds = 0;
};

struct PathChoice {
  MlaPath path = MlaPath::kLatent;
  PathCost absorbed;
  PathCost latent;
};

// Costs of both paths and the cheaper one; absorbed on a tie. The prompt's chunks are taken to be
// 512 tokens whatever they are, so that the choice does not depend on them.
PathChoice ChoosePath(const MlaDims& dims, const PromptShape& prompt, const MlaRates& rates);

// One choice per prompt, in order.
std::vector<PathChoice> ChoosePaths(const MlaDims& dims, std::span<const PromptShape> prompts,
                                    const MlaRates& rates);

}  // namespace latte
