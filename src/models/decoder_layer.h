// One decoder layer: attention and feed-forward, each with a norm before it and a residual.
//
//   x ← x + Attn(RMSNorm(x));  x ← x + FFN(RMSNorm(x)), or x + RMSNorm(FFN(RMSNorm(x)))
//
// MiniCPM multiplies both added terms by a constant s. Latte stores its x divided by s, which saves
// the product, because RMSNorm(x) with epsilon ε is RMSNorm(x/s) with ε/s².
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "src/layers/mla/mla.h"
#include "src/layers/mlp.h"
#include "src/layers/moe/moe.h"
#include "src/layers/norm.h"
#include "src/layers/ranks.h"
#include "src/models/weight_loader.h"

namespace latte {

// Immutable after loading.
struct DecoderLayer {
  RmsNorm attention_norm;
  MlaLayer attention;
  RmsNorm ffn_norm;
  std::variant<Mlp, MoeLayer> ffn;
  std::optional<RmsNorm> ffn_post_norm;  // between the FFN's output and the residual
};

// The norm `name`.weight of `size` values. Errors: of WeightLoader::Vector.
[[nodiscard]] Result<RmsNorm> LoadNorm(const WeightLoader& load, const std::string& name,
                                       int64_t size, double eps);

// The same of a norm that reads hidden states x, which are kept divided by config.scales.residual.
[[nodiscard]] Result<RmsNorm> LoadStateNorm(const WeightLoader& load, const std::string& name,
                                            const ModelConfig& config);

// This rank's share of layer `layer`, which is model.layers.<layer>. Errors: of WeightLoader.
[[nodiscard]] Result<DecoderLayer> LoadDecoderLayer(const WeightLoader& load,
                                                    const ModelConfig& config,
                                                    const ModelShare& share, int64_t layer);

// h ← layer(h) for the step's tokens, whose cache rows it writes. Shapes: h [T, D] f32.
void Forward(const DecoderLayer& layer, const RopeAngles& angles, const TensorView& h,
             StepContext& step);

// Computes this rank's routed experts for tokens of other groups (step.expert_ranks), in a step in
// which its own group has none.
void TakePart(const DecoderLayer& layer, StepContext& step);

// Writes the cache rows that Forward would write, and nothing else.
void AppendRows(const DecoderLayer& layer, const RopeAngles& angles, const TensorView& h,
                StepContext& step);

}  // namespace latte
