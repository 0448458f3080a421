#include "src/models/mtp.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/kernels/params/gemm.h"
#include "src/kernels/registry.h"
#include "src/layers/embedding.h"

namespace latte {
namespace {

// The model's own matrix where the MTP layer has no copy of it.
Result<Linear> LoadShared(const WeightLoader& load, const std::string& copy, const std::string& own,
                          const ModelConfig& config, const RankShare& share) {
  return load.Matrix(load.Has(copy) ? copy : own, config.vocab, config.mla.d, share.Rows());
}

// Rows [a_t ; b_t]. Shapes: a, b [T, D] f32, out [T, 2D] f32.
void Concatenate(const TensorView& a, const TensorView& b, const TensorView& out,
                 StepContext& step) {
  const int64_t width = a.shape[1];
  Run<CastOp>({a, out.Slice(1, 0, width)}, step.exec);
  Run<CastOp>({b, out.Slice(1, width, 2 * width)}, step.exec);
}

// u, the input of the decoder layer. Shapes: g, u [T, D] f32.
void Join(const MtpLayer& mtp, const TensorView& g, const TensorView& u, StepContext& step) {
  Workspace& workspace = *step.workspace;
  const Workspace::Scope scope(workspace);
  const int64_t t = g.shape[0];
  const int64_t d = g.shape[1];
  const TensorView e = workspace.Take(DType::kF32, {t, d});
  const TensorView hidden = workspace.Take(DType::kF32, {t, d});
  const TensorView both = workspace.Take(DType::kF32, {t, 2 * d});
  Embed(mtp.embedding, e, step);
  Normalize(mtp.embedding_norm, e, e, step);
  Normalize(mtp.hidden_norm, g, hidden, step);
  Concatenate(e, hidden, both, step);
  Apply(mtp.w_eh, both, u, step);
}

Result<MtpLayer> LoadLayer(const WeightLoader& load, const ModelConfig& config,
                           const ModelShare& share, int64_t layer) {
  const int64_t d = config.mla.d;
  const std::string name = fmt::format("model.layers.{}", layer);
  if (!load.Has(name + ".eh_proj.weight"))
    return NotFound(
        fmt::format("tensor '{}.eh_proj.weight' is missing: this checkpoint has no "
                    "multi-token-prediction layer",
                    name));
  MtpLayer mtp;
  LATTE_ASSIGN_OR_RETURN(mtp.embedding_norm, LoadNorm(load, name + ".enorm", d, config.norm_eps));
  LATTE_ASSIGN_OR_RETURN(mtp.hidden_norm, LoadNorm(load, name + ".hnorm", d, config.norm_eps));
  LATTE_ASSIGN_OR_RETURN(mtp.w_eh, load.Matrix(name + ".eh_proj.weight", d, 2 * d));
  LATTE_ASSIGN_OR_RETURN(mtp.layer, LoadDecoderLayer(load, config, share, layer));
  LATTE_ASSIGN_OR_RETURN(mtp.head_norm,
                         LoadNorm(load, name + ".shared_head.norm", d, config.norm_eps));
  LATTE_ASSIGN_OR_RETURN(
      const Linear embedding,
      LoadShared(load, name + ".embed_tokens.weight", "model.embed_tokens.weight", config, {}));
  mtp.embedding = embedding.matrix.weight;
  const bool own_head = load.Has("lm_head.weight");
  LATTE_ASSIGN_OR_RETURN(
      mtp.head,
      LoadShared(load, name + ".shared_head.head.weight",
                 own_head ? "lm_head.weight" : "model.embed_tokens.weight", config, share.group));
  return mtp;
}

}  // namespace

Result<std::vector<MtpLayer>> LoadMtp(const WeightLoader& load, const ModelConfig& config,
                                      const ModelShare& share) {
  std::vector<MtpLayer> out;
  for (int64_t i = 0; i < std::max<int64_t>(config.mtp_layers, 1); ++i) {
    LATTE_ASSIGN_OR_RETURN(MtpLayer layer, LoadLayer(load, config, share, config.layers + i));
    out.push_back(std::move(layer));
  }
  return out;
}

void Forward(const MtpLayer& mtp, const RopeAngles& angles, const TensorView& g,
             const TensorView& z, StepContext& step) {
  Join(mtp, g, z, step);
  Forward(mtp.layer, angles, z, step);
}

void AppendRows(const MtpLayer& mtp, const RopeAngles& angles, const TensorView& g,
                StepContext& step) {
  Workspace& workspace = *step.workspace;
  const Workspace::Scope scope(workspace);
  const TensorView u = workspace.Take(DType::kF32, {g.shape[0], g.shape[1]});
  Join(mtp, g, u, step);
  AppendRows(mtp.layer, angles, u, step);
}

}  // namespace latte
