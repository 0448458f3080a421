// Which tensors a config calls for, and whether a checkpoint has exactly those.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/checkpoint/config/model_config.h"
#include "src/checkpoint/safetensors.h"

namespace latte {

struct ExpectedTensor {
  std::string name;  // "model.layers.3.mlp.experts.7.up_proj.weight"
  std::vector<int64_t> shape;
  bool required = true;  // false: the model does without it (a tied head, a zero router bias)
};

// How a checkpoint stores the routed experts of a layer.
enum class ExpertLayout {
  kSeparate,  // experts.J.gate_proj.weight [I, D], up_proj.weight [I, D], down_proj.weight [D, I]
  kFused,     // experts.gate_up_proj [E, 2I, D], gate rows first, and experts.down_proj [E, D, I]
};

// The layout that the names of `tensors` show.
ExpertLayout FindExpertLayout(const std::map<std::string, StoredTensor, std::less<>>& tensors);

// Whether `name` is a matrix that quantised checkpoints quantise: a projection of attention,
// indexer or MLP, or a stack of them; not norms, router, embedding, head, or what an MTP layer
// adds.
bool IsProjection(std::string_view name);

// Every tensor of the decoder, in layer order. Multi-token-prediction layers are not among them.
std::vector<ExpectedTensor> ExpectedTensors(const ModelConfig& config,
                                            ExpertLayout layout = ExpertLayout::kSeparate);

// Whether `tensors` are the checkpoint of `config`: nothing missing, nothing extra, every shape and
// dtype as expected. Set aside unread: multi-token-prediction layers (numbered L and up, told from
// surplus decoder layers by a tensor that only they have, complete or not) and rotary_emb.inv_freq
// of old exports. Errors: kCorrupt naming the first tensors of each kind of difference and counting
// the rest; kUnsupported naming tensors of a dtype that is not read there: F8_E4M3 only in
// projections of a checkpoint that says fp8, each with its scales, else F32, F16 and BF16.
[[nodiscard]] Status CheckTensors(const ModelConfig& config,
                                  const std::map<std::string, StoredTensor, std::less<>>& tensors);

}  // namespace latte
