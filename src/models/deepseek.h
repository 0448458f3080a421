// The model of DeepSeek V2, V2-Lite, V3, R1, V3.2, Kimi-K2, Moonlight, GLM, Youtu, A.X-K1, MiniCPM3
// and relatives. They differ only in data, which ModelConfig holds.
#pragma once

#include <memory>
#include <vector>

#include "src/checkpoint/checkpoint.h"
#include "src/models/decoder_layer.h"
#include "src/models/model.h"
#include "src/models/mtp.h"

namespace latte {

class DeepseekModel : public Model {
 public:
  // Binds every weight to the mapped checkpoint after checking names, shapes and dtypes.
  // Errors: kCorrupt or kNotFound listing the tensors; kUnsupported for a weight dtype.
  [[nodiscard]] static Result<std::unique_ptr<DeepseekModel>> Load(
      const ModelConfig& config, Checkpoint checkpoint, const ModelOptions& options = {});

  const ModelConfig& config() const override { return config_; }
  const Device& device() const override { return weights_.device(); }
  int64_t weight_bytes() const override { return weight_bytes_; }
  void Forward(StepContext& step, const TensorView& h) const override;
  void Logits(StepContext& step, const TensorView& h, const TensorView& logits) const override;
  int64_t draft_layers() const override { return static_cast<int64_t>(mtp_.size()); }
  std::string drafts_left_out() const override { return drafts_left_out_; }
  void Draft(StepContext& step, DraftRun run, const TensorView& h,
             const TensorView& z) const override;
  void AppendDraftRows(StepContext& step, DraftRun run, const TensorView& h) const override;
  void DraftLogits(StepContext& step, int64_t layer, const TensorView& z,
                   const TensorView& logits) const override;

 private:
  DeepseekModel(const ModelConfig& config, Checkpoint checkpoint, const Device& device)
      : config_(config), checkpoint_(std::move(checkpoint)), weights_(device) {}
  [[nodiscard]] Status Bind(const ModelOptions& options);
  [[nodiscard]] Status LoadInput(const WeightLoader& load);
  [[nodiscard]] Status LoadOutput(const WeightLoader& load, const RankShare& share);
  [[nodiscard]] Status LoadFinalNorm(const WeightLoader& load);
  RopeAngles Angles(StepContext& step) const;
  void PlaceLists(StepContext& step) const;
  // The norm after which the input of a drafting layer is taken.
  const RmsNorm& NormBefore(DraftRun run) const;

  ModelConfig config_;
  Checkpoint checkpoint_;  // keeps the mapped files alive
  DeviceWeights weights_;  // copies of the files' tensors, if the device is not the host
  int64_t weight_bytes_ = 0;
  double rope_amplitude_ = 1;
  Tensor rope_frequencies_;  // [R/2] f32
  TensorView embedding_;     // [vocab, D]
  std::vector<DecoderLayer> layers_;
  RmsNorm final_norm_;
  Tensor head_norm_weight_;  // [D] f32, of final_norm_ if config_.scales.head is in it
  Linear head_;              // [vocab, D]
  std::vector<MtpLayer> mtp_;
  std::string drafts_left_out_;
};

}  // namespace latte
