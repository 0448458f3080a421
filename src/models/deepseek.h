// DeepSeek V2, V2-Lite, V3, R1, V3.2, Kimi-K2, Moonlight, GLM, Youtu, A.X-K1 and kin: one model;
// what differs between them is data in ModelConfig.
#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "src/io/safetensors.h"
#include "src/layers/mla/mla.h"
#include "src/layers/mlp.h"
#include "src/layers/moe/moe.h"
#include "src/models/model.h"

namespace latte {

// x ← x + Attn(RMSNorm(x)); x ← x + FFN(RMSNorm(x)), or x + RMSNorm(FFN(RMSNorm(x))).
struct DecoderLayer {
  RmsNorm attention_norm;
  MlaLayer attention;
  RmsNorm ffn_norm;
  std::variant<Mlp, MoeLayer> ffn;
  std::optional<RmsNorm> ffn_post_norm;  // between the FFN's output and the residual
};

class DeepseekModel : public Model {
 public:
  // Binds every weight to the mapped checkpoint after checking names, shapes and dtypes.
  // Errors: kCorrupt or kNotFound listing the tensors; kUnsupported for a weight dtype.
  [[nodiscard]] static Result<std::unique_ptr<DeepseekModel>> Load(const ModelConfig& config,
                                                                   Checkpoint checkpoint);

  const ModelConfig& config() const override { return config_; }
  void Forward(StepContext& step, const TensorView& h) const override;
  void Logits(StepContext& step, const TensorView& h, const TensorView& logits) const override;

 private:
  DeepseekModel(const ModelConfig& config, Checkpoint checkpoint)
      : config_(config), checkpoint_(std::move(checkpoint)) {}
  [[nodiscard]] Status Bind();

  ModelConfig config_;
  Checkpoint checkpoint_;  // keeps the mapped files alive
  RopeTable rope_;
  TensorView embedding_;  // [vocab, D]
  std::vector<DecoderLayer> layers_;
  RmsNorm final_norm_;
  Linear head_;  // [vocab, D]
};

}  // namespace latte
