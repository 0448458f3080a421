#include "src/models/deepseek.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/checkpoint/expected_tensors.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/registry.h"
#include "src/layers/embedding.h"
#include "src/layers/lm_head.h"

namespace latte {

Result<std::unique_ptr<DeepseekModel>> DeepseekModel::Load(const ModelConfig& config,
                                                           Checkpoint checkpoint,
                                                           const ModelOptions& options) {
  checkpoint.UseCommonNames(config.layers);
  LATTE_RETURN_IF_ERROR(CheckTensors(config, checkpoint.tensors()));
  const Device& device = options.device == nullptr ? HostDevice() : *options.device;
  std::unique_ptr<DeepseekModel> model(new DeepseekModel(config, std::move(checkpoint), device));
  LATTE_RETURN_IF_ERROR(model->Bind(options));
  return model;
}

Status DeepseekModel::Bind(const ModelOptions& options) {
  std::unique_ptr<ThreadPool> threads;
  // W_UK and W_UV of GGUF files are copied.
  if (config_.quant.Repacks() || checkpoint_.is_gguf()) threads = std::make_unique<ThreadPool>();
  LoadedBytes bytes;
  const WeightLoader load(checkpoint_, config_.quant, threads.get(), &weights_, &bytes);
  const ModelShare share{options.share, options.expert_share.value_or(options.share),
                         options.head_share};
  LATTE_RETURN_IF_ERROR(weights_.InArena("the embedding", [&] { return LoadInput(load); }));
  const bool takes_long = threads != nullptr || !weights_.device().is_host();
  for (int64_t i = 0; i < config_.layers; ++i) {
    LATTE_ASSIGN_OR_RETURN(DecoderLayer layer, weights_.InArena(fmt::format("layer {}", i), [&] {
      return LoadDecoderLayer(load, config_, share, i);
    }));
    if (auto* const moe = std::get_if<MoeLayer>(&layer.ffn))
      moe->larger_than_memory = options.larger_than_memory;
    layers_.push_back(std::move(layer));
    if (takes_long && options.repacked) options.repacked(i + 1, config_.layers);
  }
  LATTE_RETURN_IF_ERROR(
      weights_.InArena("the output head", [&] { return LoadOutput(load, options.share); }));
  if (options.mtp) {
    auto mtp =
        weights_.InArena("the drafting layers", [&] { return LoadMtp(load, config_, share); });
    if (mtp)
      mtp_ = std::move(*mtp);
    else if (options.mtp_optional && mtp.error().code == Code::kNotFound)
      drafts_left_out_ = "nothing is drafted: " + mtp.error().message;
    else
      return tl::unexpected(mtp.error());
  }
  config_.mtp_layers = draft_layers();
  weight_bytes_ = bytes.total();
  return {};
}

Status DeepseekModel::LoadInput(const WeightLoader& load) {
  const RopeTable rope = RopeTable::Make(config_.rope, config_.mla.r);
  rope_amplitude_ = rope.amplitude;
  rope_frequencies_ = load.Constant(rope.Frequencies());
  LATTE_ASSIGN_OR_RETURN(const Linear embedding,
                         load.Matrix("model.embed_tokens.weight", config_.vocab, config_.mla.d));
  embedding_ = embedding.matrix.weight;
  return {};
}

Status DeepseekModel::LoadOutput(const WeightLoader& load, const RankShare& share) {
  LATTE_RETURN_IF_ERROR(LoadFinalNorm(load));
  // An LM head in the file is used even if the config says that it is tied to the embedding.
  const bool own_head = load.Has("lm_head.weight");
  LATTE_ASSIGN_OR_RETURN(
      head_, load.Matrix(own_head ? "lm_head.weight" : "model.embed_tokens.weight", config_.vocab,
                         config_.mla.d, share.Rows()));
  return {};
}

Status DeepseekModel::LoadFinalNorm(const WeightLoader& load) {
  LATTE_ASSIGN_OR_RETURN(final_norm_, LoadStateNorm(load, "model.norm", config_));
  if (config_.scales.head == 1.0) return {};
  LATTE_ASSIGN_OR_RETURN(head_norm_weight_, load.FloatVector("model.norm.weight", config_.mla.d, {},
                                                             config_.scales.head));
  final_norm_.weight = head_norm_weight_;
  return {};
}

RopeAngles DeepseekModel::Angles(StepContext& step) const {
  const int64_t t = step.token_count();
  const RopeAngles angles{step.workspace->Take(DType::kF32, {t, config_.mla.r / 2}),
                          step.workspace->Take(DType::kF32, {t, config_.mla.r / 2})};
  Run<RopeAnglesOp>({step.positions, rope_frequencies_, rope_amplitude_, angles.cos, angles.sin},
                    step.exec);
  return angles;
}

// Room for the lists of positions, if tokens of the step choose their keys.
void DeepseekModel::PlaceLists(StepContext& step) const {
  if (!step.key_positions.empty()) return;  // the caller's
  int64_t longest = 0;
  for (const SequenceChunk& sequence : step.sequences)
    if (sequence.path == MlaPath::kSparse) longest = std::max(longest, sequence.total_len());
  if (longest == 0) return;
  LATTE_CHECK(config_.indexer.heads > 0, "a sparse path in a model without an indexer");
  step.key_positions = step.workspace->Take(
      DType::kI32, {step.token_count(), std::min(config_.indexer.topk, longest)});
}

void DeepseekModel::Forward(StepContext& step, const TensorView& h) const {
  if (step.token_count() == 0) {
    if (step.token_count_of_groups() > 0)
      for (const DecoderLayer& layer : layers_) TakePart(layer, step);
    return;
  }
  const Workspace::Scope scope(*step.workspace);
  PlaceLists(step);
  const RopeAngles angles = Angles(step);
  Embed(embedding_, h, step,
        static_cast<float>(config_.scales.embedding / config_.scales.residual));
  for (const DecoderLayer& layer : layers_) latte::Forward(layer, angles, h, step);
}

void DeepseekModel::Logits(StepContext& step, const TensorView& h, const TensorView& logits) const {
  if (h.shape[0] == 0) return;
  LmHead(final_norm_, head_, h, logits, step);
}

const RmsNorm& DeepseekModel::NormBefore(DraftRun run) const {
  if (run.input == DraftInput::kDecoder) return final_norm_;
  const size_t before = (static_cast<size_t>(run.layer) + mtp_.size() - 1) % mtp_.size();
  return mtp_[before].head_norm;
}

void DeepseekModel::Draft(StepContext& step, DraftRun run, const TensorView& h,
                          const TensorView& z) const {
  const MtpLayer& mtp = mtp_[static_cast<size_t>(run.layer)];
  if (step.token_count() == 0) {
    if (step.token_count_of_groups() > 0) TakePart(mtp.layer, step);
    return;
  }
  const Workspace::Scope scope(*step.workspace);
  PlaceLists(step);
  const RopeAngles angles = Angles(step);
  const TensorView g = step.workspace->Take(DType::kF32, {h.shape[0], h.shape[1]});
  Normalize(NormBefore(run), h, g, step);
  latte::Forward(mtp, angles, g, z, step);
}

void DeepseekModel::AppendDraftRows(StepContext& step, DraftRun run, const TensorView& h) const {
  if (step.token_count() == 0) return;
  const Workspace::Scope scope(*step.workspace);
  const RopeAngles angles = Angles(step);
  const TensorView g = step.workspace->Take(DType::kF32, {h.shape[0], h.shape[1]});
  Normalize(NormBefore(run), h, g, step);
  AppendRows(mtp_[static_cast<size_t>(run.layer)], angles, g, step);
}

void DeepseekModel::DraftLogits(StepContext& step, int64_t layer, const TensorView& z,
                                const TensorView& logits) const {
  if (z.shape[0] == 0) return;
  const MtpLayer& mtp = mtp_[static_cast<size_t>(layer)];
  LmHead(mtp.head_norm, mtp.head, z, logits, step);
}

}  // namespace latte
