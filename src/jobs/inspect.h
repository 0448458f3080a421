// Information about a model that does not require running it.
#pragma once

#include <string>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"
#include "src/checkpoint/config/model_config.h"
#include "src/engine/core/compute_device.h"
#include "src/kernels/machine.h"
#include "src/layers/mla/path_cost.h"

namespace latte {

// Architecture, parameters, bytes by component, cache bytes per token compared with MHA and GQA,
// format of weights and of chats, and the longest context that fits in the memory which is
// available, on `device`. The cache per token is that of an engine with default options, with the
// layers that draft tokens. `path`: a
// checkpoint folder, or a config.json alone (sizes are then for bf16); `config`: its configuration.
// Errors: of Checkpoint::Open if the folder holds weights.
[[nodiscard]] Result<JsonOut> InspectModel(const std::string& path, const ModelConfig& config,
                                           const ComputeDevice& device);

// This processor: {"isa", "uarch"}.
JsonOut InspectProcessor(const Machine& machine);

// Every kernel: {"op", "name", "isa", "types", "block", "when", "order", "chosen"} (op.h,
// kernel_text.h); "chosen" refers to one decoded token of the model.
JsonOut InspectKernels(const ModelConfig& config, const Machine& machine);

// What serves which shape on this machine: {"op", "shape", "kernel"} for the matrix products and
// the attention of the model, with weights and caches of every kind.
JsonOut InspectSelection(const ModelConfig& config, const Machine& machine);

// The cost of attention by each path for `new_tokens` after `cached_tokens`, per layer and in
// total, the chosen path, the cache of all tokens on each of several ranks, and what it costs and
// saves to spread a request of all tokens over groups (spread_rule.h): {"new_tokens",
// "sparse_tokens", "cached_tokens", "rates", "chosen", "paths", "cache", "spread"}.
// The rows of the last `sparse_tokens`, which choose their keys, are "sparse" and "indexer" (only
// in layers that own one); the other rows are of the tokens before.
// Errors: kInvalidArgument for a count out of range.
[[nodiscard]] Result<JsonOut> InspectPath(const ModelConfig& config, const PromptShape& prompt,
                                          const MlaRates& rates);

}  // namespace latte
