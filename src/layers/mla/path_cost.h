// Chooses how the attention of a prompt is evaluated, absorbed or expanded: pure arithmetic over
// lengths and the machine's rates (docs/math/mla.md §10). Generated tokens are always absorbed.
#pragma once

#include <span>
#include <vector>

#include "src/checkpoint/config/model_config.h"
#include "src/layers/mla/calibration.h"
#include "src/layers/step_context.h"

namespace latte {

// A prompt at admission.
struct PromptShape {
  int64_t new_tokens = 0;     // > 0
  int64_t cached_tokens = 0;  // before them
};

// The cost of one layer's attention, without the projections that all paths share.
struct PathCost {
  double flops = 0;
  double bytes = 0;  // weights and cached rows, read once per chunk
  double seconds = 0;
};

struct PathChoice {
  MlaPath path = MlaPath::kLatent;
  PathCost absorbed;
  PathCost latent;
};

// The costs of both paths and the cheaper path; absorbed on a tie. The chunks of the prompt count
// as 512 tokens whatever they are, so the choice does not depend on them.
PathChoice ChoosePath(const MlaDims& dims, const PromptShape& prompt, const MlaRates& rates);

// One choice per prompt, in order.
std::vector<PathChoice> ChoosePaths(const MlaDims& dims, std::span<const PromptShape> prompts,
                                    const MlaRates& rates);

}  // namespace latte
