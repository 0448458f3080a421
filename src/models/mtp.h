// clang-format off
// Multi-token prediction: decoder layers after the last, which draft tokens. Layer k = 1, 2, …:
//
//   u_t = W_eh · [ RMSNorm_e(Embed(x_{t+k})) ; RMSNorm_h(g_t) ]
//   z_t = DecoderLayer(u_t)
//   logits of x_{t+k+1} = W_head · RMSNorm_s(z_t)
//
//   g_t   for k = 1: hidden after the final norm; for k > 1: RMSNorm_s(z_t) of layer k − 1
//
// Each layer has its own rows in the cache. The row of position t depends on g_t and x_{t+k}. In
// layer 1 it depends on nothing else; in the other layers, g_t depends on the rows of the layers
// before. Published weights have the embedding first in the concatenation. To draft more tokens
// than there are layers, layer 1 runs at position t + 1 with the last RMSNorm_s(z_t) and the token
// that was drafted from it, then layer 2, and so on.
// Source: DeepSeek-V3 (arXiv 2412.19437) §2.2, eq. 21–23.
// clang-format on
#pragma once

#include <vector>

#include "src/models/decoder_layer.h"

namespace latte {

// Immutable after loading.
struct MtpLayer {
  RmsNorm embedding_norm;
  RmsNorm hidden_norm;
  Linear w_eh;  // [D, 2D]
  DecoderLayer layer;
  RmsNorm head_norm;
  TensorView embedding;  // [vocab, D]; the model's own if the checkpoint has no copy
  Linear head;           // [vocab, D]; as embedding
};

// Loads this rank's share of the layers after the decoder's last. Errors: as WeightLoader;
// kNotFound if the checkpoint lacks one.
[[nodiscard]] Result<std::vector<MtpLayer>> LoadMtp(const WeightLoader& load,
                                                    const ModelConfig& config,
                                                    const ModelShare& share);

// Writes z for the step's tokens, which are x_{t+k} for the rows t of g. Shapes: g, z [T, D] f32.
void Forward(const MtpLayer& mtp, const RopeAngles& angles, const TensorView& g,
             const TensorView& z, StepContext& step);

// Writes the cache rows that Forward would write, and nothing else.
void AppendRows(const MtpLayer& mtp, const RopeAngles& angles, const TensorView& g,
                StepContext& step);

}  // namespace latte
