// The tensors that a config requires, and the check that a checkpoint has exactly these.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/config/model_config.h"

namespace latte {

struct ExpectedTensor {
  std::string name;  // "model.layers.3.mlp.experts.7.up_proj.weight"
  std::vector<int64_t> shape;
  bool required = true;  // false: the model works without it (a tied head, a zero router bias)
};

// The storage of a layer's routed experts in a checkpoint.
enum class ExpertLayout {
  kSeparate,  // experts.J.gate_proj.weight [I, D], up_proj.weight [I, D], down_proj.weight [D, I]
  kFused,     // experts.gate_up_proj [E, 2I, D], gate rows first, and experts.down_proj [E, D, I]
  kStacked,   // experts.gate_proj [E, I, D], experts.up_proj [E, I, D], experts.down_proj [E, D, I]
};

// The storage of a checkpoint's layers.
struct LayerLayout {
  ExpertLayout experts = ExpertLayout::kSeparate;
  // k_b_proj.weight [H, C, N] and v_b_proj.weight [H, V, C] instead of kv_b_proj.weight
  bool split_kv_b = false;
};

// The layout that the names in `tensors` show.
LayerLayout FindLayerLayout(const StoredTensors& tensors);

// Whether `name` is a matrix that quantised checkpoints quantise: a projection of attention,
// indexer or MLP, or a stack of projections; not a norm, router, embedding or head, and not the
// additional tensors of an MTP layer.
bool IsProjection(std::string_view name);

// Every tensor of the decoder, in layer order, without multi-token-prediction layers.
std::vector<ExpectedTensor> ExpectedTensors(const ModelConfig& config,
                                            const LayerLayout& layout = {});

// Every tensor that multi-token-prediction layers need, in layer order; their copies of embedding
// and head are not needed.
std::vector<ExpectedTensor> ExpectedMtpTensors(const ModelConfig& config);

// Checks that `tensors` are the checkpoint of `config`: no tensor is missing or extra, and every
// shape and dtype is as expected. Ignored: multi-token-prediction layers (numbered L and above; a
// tensor that only they have distinguishes them from surplus decoder layers) and
// rotary_emb.inv_freq of old exports.
// Errors: kCorrupt naming the first tensors of each kind of difference and counting the rest;
// kUnsupported naming tensors of a dtype that Latte does not read there. F8_E4M3 is read only in
// projections of an fp8 checkpoint, each with its scales; otherwise F32, F16 and BF16 are.
[[nodiscard]] Status CheckTensors(const ModelConfig& config, const StoredTensors& tensors);

}  // namespace latte
