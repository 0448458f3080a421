// What can be said of a model without running it.
#pragma once

#include <string>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"
#include "src/layers/mla/path_cost.h"

namespace latte {

// Architecture, parameters, bytes by component, cache bytes per token beside MHA and GQA, the
// longest context that fits this machine's memory, or what the control group allows of it. `path`:
// a checkpoint folder, or a config.json alone (bytes are then those of bf16). Errors: of
// LoadModelConfig, and of Checkpoint::Open when the folder holds weights.
[[nodiscard]] Result<JsonOut> InspectModel(const std::string& path);

// Every kernel row: {"op", "name", "isa", "chosen"}, chosen for one decoded token of the model at
// `path`.
[[nodiscard]] Result<JsonOut> InspectKernels(const std::string& path);

// What attention costs by either path for `new_tokens` behind `cached_tokens`, per layer and in
// all, and which one would be taken: {"new_tokens", "cached_tokens", "rates", "chosen", "paths"}.
// Errors: of LoadModelConfig; kInvalidArgument for a count out of range.
[[nodiscard]] Result<JsonOut> InspectPath(const std::string& path, const PromptShape& prompt,
                                          const MlaRates& rates);

}  // namespace latte
