// clang-format off
// Multi-token prediction: one more decoder layer, which drafts the token after the next.
//
//   u_t = W_eh · [ RMSNorm_e(Embed(x_{t+1})) ; RMSNorm_h(g_t) ]     g: hidden after the final norm
//   z_t = DecoderLayer(u_t)
//   logits of x_{t+2} = W_head · RMSNorm_s(z_t)
//
// The layer has its own rows in the cache: that of position t depends on g_t and x_{t+1} alone.
// Published weights have the embedding first in the concatenation. To draft one more token, the layer
// runs again with RMSNorm_s(z_t) as g_{t+1}.
// Source: DeepSeek-V3 (arXiv 2412.19437) §2.2, eq. 21–23.
// clang-format on
#pragma once

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

// Loads the first layer after the decoder's last. Errors: as WeightLoader; kNotFound if the
// checkpoint has none.
[[nodiscard]] Result<MtpLayer> LoadMtp(const WeightLoader& load, const ModelConfig& config);

// Writes z for the step's tokens, each of which follows a token of g. Shapes: g [T, D] f32 (after
// the final norm, or RMSNorm_s of the z before), z [T, D] f32.
void Forward(const MtpLayer& mtp, const RopeAngles& angles, const TensorView& g,
             const TensorView& z, StepContext& step);

// Writes the cache rows that Forward would write, and nothing else.
void AppendRows(const MtpLayer& mtp, const RopeAngles& angles, const TensorView& g,
                StepContext& step);

}  // namespace latte
