#include "src/models/decoder_layer.h"

#include <fmt/format.h>

#include "src/kernels/params/gemm.h"
#include "src/kernels/registry.h"

namespace latte {
namespace {

Result<Linear> LoadProjection(const WeightLoader& load, const std::string& name, int64_t rows,
                              int64_t columns, bool bias, const WeightSlice& slice = {}) {
  LATTE_ASSIGN_OR_RETURN(Linear linear, load.Matrix(name + ".weight", rows, columns, slice));
  if (bias) {
    LATTE_ASSIGN_OR_RETURN(linear.bias, load.FloatVector(name + ".bias", rows, slice));
  }
  return linear;
}

// One call multiplies both.
Status CheckReadTogether(const LoadedMatrix& a, const LoadedMatrix& b, const std::string& what) {
  if (a.IsReadWith(b)) return {};
  return Unsupported(fmt::format("{}: expected one format, found {} and {}", what, a.FormatText(),
                                 b.FormatText()));
}

Result<Mlp> LoadMlp(const WeightLoader& load, const std::string& name, int64_t d, int64_t width,
                    const RankShare& share) {
  Mlp mlp;
  LATTE_ASSIGN_OR_RETURN(mlp.gate, load.Matrix(name + ".gate_proj.weight", width, d, share.Rows()));
  LATTE_ASSIGN_OR_RETURN(mlp.up, load.Matrix(name + ".up_proj.weight", width, d, share.Rows()));
  LATTE_ASSIGN_OR_RETURN(mlp.down, load.Matrix(name + ".down_proj.weight", d, width, share.Rows()));
  LATTE_RETURN_IF_ERROR(
      CheckReadTogether(mlp.gate.matrix, mlp.up.matrix, name + ": gate_proj and up_proj"));
  return mlp;
}

// Expert `e` of a layer whose experts are stacked; `fused`: with gate and up projections in one
// stack.
Result<Mlp> LoadStackedExpert(const WeightLoader& load, const std::string& name,
                              const ModelConfig& config, const RankShare& share, bool fused,
                              int64_t e) {
  const int64_t d = config.mla.d;
  const int64_t width = config.moe.width;
  const auto part = [&](const char* own, int64_t row_begin) {
    return fused ? WeightLoader::StackPart{name + ".gate_up_proj",
                                           config.moe.experts,
                                           2 * width,
                                           d,
                                           e,
                                           row_begin,
                                           width}
                 : WeightLoader::StackPart{name + own, config.moe.experts, width, d, e, 0, width};
  };
  Mlp mlp;
  LATTE_ASSIGN_OR_RETURN(mlp.gate, load.FromStack(part(".gate_proj", 0), share.Rows()));
  LATTE_ASSIGN_OR_RETURN(mlp.up, load.FromStack(part(".up_proj", width), share.Rows()));
  LATTE_RETURN_IF_ERROR(
      CheckReadTogether(mlp.gate.matrix, mlp.up.matrix, name + ": gate_proj and up_proj"));
  LATTE_ASSIGN_OR_RETURN(
      mlp.down,
      load.FromStack({name + ".down_proj", config.moe.experts, d, width, e, 0, d}, share.Rows()));
  return mlp;
}

Result<MoeLayer> LoadMoe(const WeightLoader& load, const std::string& name,
                         const ModelConfig& config, const ModelShare& share) {
  const int64_t d = config.mla.d;
  const RankShare& of_experts = share.experts;
  MoeLayer moe;
  moe.dims = config.moe;
  LATTE_ASSIGN_OR_RETURN(moe.router, load.Matrix(name + ".gate.weight", config.moe.experts, d));
  const std::string bias = name + ".gate.e_score_correction_bias";
  const bool biased = config.moe.router == Router::kNoauxTc;
  if (biased && (load.Has(bias) || !config.moe.bias_optional)) {
    LATTE_ASSIGN_OR_RETURN(moe.bias, load.FloatVector(bias, config.moe.experts));
  }
  const std::string experts = name + ".experts";
  const bool fused =
      load.Has(experts + ".gate_up_proj") || load.Has(experts + ".gate_up_proj_packed");
  const RankShare part = of_experts.whole_experts ? RankShare() : of_experts;  // of each
  const WeightSlice own = of_experts.whole_experts ? of_experts.Rows() : WeightSlice();
  moe.whole_experts = of_experts.whole_experts;
  moe.first_expert = own.Begin(config.moe.experts);
  moe.ranks = of_experts.count;
  for (int64_t e = moe.first_expert; e < own.End(config.moe.experts); ++e) {
    LATTE_ASSIGN_OR_RETURN(
        Mlp expert,
        fused || load.Has(experts + ".gate_proj")
            ? LoadStackedExpert(load, experts, config, part, fused, e)
            : LoadMlp(load, fmt::format("{}.{}", experts, e), d, config.moe.width, part));
    moe.experts.push_back(std::move(expert));
    // Activations are rounded once for all experts.
    LATTE_RETURN_IF_ERROR(CheckReadTogether(moe.experts.front().up.matrix,
                                            moe.experts.back().up.matrix,
                                            fmt::format("{}: up_proj of 0 and {}", experts, e)));
  }
  Tabulate(moe);
  moe.has_shared = config.moe.shared > 0;
  if (moe.has_shared) {
    // Shares of experts are computed for the tokens of all groups, and this one with them.
    const RankShare& of_shared = of_experts.whole_experts ? share.group : of_experts;
    LATTE_ASSIGN_OR_RETURN(moe.shared, LoadMlp(load, name + ".shared_experts", d,
                                               config.moe.shared * config.moe.width, of_shared));
  }
  return moe;
}

Result<Indexer> LoadIndexer(const WeightLoader& load, const std::string& name,
                            const ModelConfig& config) {
  Indexer out;
  out.dims = config.indexer;
  const auto [heads, width, topk, interleaved] = config.indexer;
  const int64_t d = config.mla.d;
  LATTE_ASSIGN_OR_RETURN(out.w_q, load.Matrix(name + ".wq_b.weight", heads * width, config.mla.cq));
  LATTE_ASSIGN_OR_RETURN(out.w_k, load.Matrix(name + ".wk.weight", width, d));
  LATTE_ASSIGN_OR_RETURN(out.w_weights, load.Matrix(name + ".weights_proj.weight", heads, d));
  LATTE_ASSIGN_OR_RETURN(out.k_norm.weight, load.Vector(name + ".k_norm.weight", width));
  LATTE_ASSIGN_OR_RETURN(out.k_norm.bias, load.Vector(name + ".k_norm.bias", width));
  Tensor hadamard = HadamardMatrix(width);
  if (!hadamard.view().empty()) out.hadamard = load.Constant(std::move(hadamard));
  return out;
}

// The heads that each of the ranks with the heads of `share.heads` passes on.
HeadRanges PartsOf(const ModelShare& share, int64_t heads) {
  if (!share.heads) return {};
  const int64_t ranks = share.group.count / share.heads->count;
  const int64_t first = share.heads->index * ranks;
  HeadRanges out;
  out.own = share.group.index - first;
  for (int64_t i = 0; i <= ranks; ++i)
    out.begins.push_back(RankShare{first + i, share.group.count}.Rows().Begin(heads) -
                         share.heads->Rows().Begin(heads));
  return out;
}

Result<MlaLayer> LoadAttention(const WeightLoader& load, const std::string& name,
                               const ModelConfig& config, const ModelShare& of_model,
                               int64_t layer) {
  const MlaDims& dims = config.mla;
  const RankShare share = of_model.heads.value_or(of_model.group);
  MlaLayer mla;
  mla.dims = dims;
  mla.dims.h = share.Of(dims.h);
  mla.parts = PartsOf(of_model, dims.h);
  mla.layer = layer;
  mla.rope = config.rope;
  mla.scale = static_cast<float>(SoftmaxScale(dims, config.rope));
  const int64_t q_rows = dims.h * dims.qk();
  if (dims.cq > 0) {
    LATTE_ASSIGN_OR_RETURN(mla.w_dq,
                           LoadProjection(load, name + ".q_a_proj", dims.cq, dims.d, dims.bias));
    LATTE_ASSIGN_OR_RETURN(mla.c_q_norm,
                           LoadNorm(load, name + ".q_a_layernorm", dims.cq, dims.lora_norm_eps));
    LATTE_ASSIGN_OR_RETURN(mla.w_q, LoadProjection(load, name + ".q_b_proj", q_rows, dims.cq, false,
                                                   share.Rows(dims.qk())));
  } else {
    LATTE_ASSIGN_OR_RETURN(mla.w_q, LoadProjection(load, name + ".q_proj", q_rows, dims.d, false,
                                                   share.Rows(dims.qk())));
  }
  LATTE_ASSIGN_OR_RETURN(mla.w_dkv, LoadProjection(load, name + ".kv_a_proj_with_mqa",
                                                   dims.latent(), dims.d, dims.bias));
  LATTE_ASSIGN_OR_RETURN(mla.c_kv_norm,
                         LoadNorm(load, name + ".kv_a_layernorm", dims.c, dims.lora_norm_eps));
  LATTE_ASSIGN_OR_RETURN(mla.w_kv_b, load.KvB(name, dims, share.Rows(dims.n + dims.v)));
  LATTE_ASSIGN_OR_RETURN(mla.w_o, LoadProjection(load, name + ".o_proj", dims.d, dims.h * dims.v,
                                                 dims.bias, of_model.group.Rows()));
  if (config.IsIndexed(layer)) {
    LATTE_ASSIGN_OR_RETURN(mla.indexer, LoadIndexer(load, name + ".indexer", config));
  }
  return mla;
}

void ForwardMlpOrMoe(const DecoderLayer& layer, const TensorView& x, const TensorView& y,
                     StepContext& step) {
  if (const auto* moe = std::get_if<MoeLayer>(&layer.ffn)) return Forward(*moe, x, y, step);
  Forward(std::get<Mlp>(layer.ffn), x, y, step);
}

void ForwardFfn(const DecoderLayer& layer, const TensorView& x, const TensorView& y,
                StepContext& step) {
  ForwardMlpOrMoe(layer, x, y, step);
  if (layer.ffn_post_norm) Normalize(*layer.ffn_post_norm, y, y, step);
}

}  // namespace

Result<RmsNorm> LoadNorm(const WeightLoader& load, const std::string& name, int64_t size,
                         double eps) {
  LATTE_ASSIGN_OR_RETURN(const TensorView weight, load.Vector(name + ".weight", size));
  return RmsNorm{weight, eps};
}

Result<RmsNorm> LoadStateNorm(const WeightLoader& load, const std::string& name,
                              const ModelConfig& config) {
  const double s = config.scales.residual;
  return LoadNorm(load, name, config.mla.d, config.norm_eps / (s * s));
}

Result<DecoderLayer> LoadDecoderLayer(const WeightLoader& load, const ModelConfig& config,
                                      const ModelShare& share, int64_t layer) {
  const std::string name = fmt::format("model.layers.{}", layer);
  const int64_t d = config.mla.d;
  DecoderLayer out;
  LATTE_ASSIGN_OR_RETURN(out.attention_norm,
                         LoadStateNorm(load, name + ".input_layernorm", config));
  LATTE_ASSIGN_OR_RETURN(out.attention,
                         LoadAttention(load, name + ".self_attn", config, share, layer));
  LATTE_ASSIGN_OR_RETURN(out.ffn_norm,
                         LoadStateNorm(load, name + ".post_attention_layernorm", config));
  if (config.IsMoe(layer)) {
    LATTE_ASSIGN_OR_RETURN(out.ffn, LoadMoe(load, name + ".mlp", config, share));
    if (config.moe.post_norm) {
      LATTE_ASSIGN_OR_RETURN(out.ffn_post_norm,
                             LoadNorm(load, name + ".post_mlp_layernorm", d, config.norm_eps));
    }
  } else {
    LATTE_ASSIGN_OR_RETURN(out.ffn,
                           LoadMlp(load, name + ".mlp", d, config.dense_width, share.group));
  }
  return out;
}

void Forward(const DecoderLayer& layer, const RopeAngles& angles, const TensorView& h,
             StepContext& step) {
  Workspace& workspace = *step.workspace;
  const Workspace::Scope scope(workspace);
  const TensorView x = workspace.Take(DType::kF32, {h.shape[0], h.shape[1]});
  const TensorView y = workspace.Take(DType::kF32, {h.shape[0], h.shape[1]});
  Normalize(layer.attention_norm, h, x, step);
  Forward(layer.attention, angles, x, y, step);
  AddAndNormalize(layer.ffn_norm, y, h, x, step);
  ForwardFfn(layer, x, y, step);
  Run<AddOp>({y, h}, step.exec);
}

void TakePart(const DecoderLayer& layer, StepContext& step) {
  const auto* const moe = std::get_if<MoeLayer>(&layer.ffn);
  if (moe == nullptr) return;
  const Workspace::Scope scope(*step.workspace);
  const TensorView none = step.workspace->Take(DType::kF32, {0, moe->router.inputs()});
  Forward(*moe, none, none, step);
}

void AppendRows(const DecoderLayer& layer, const RopeAngles& angles, const TensorView& h,
                StepContext& step) {
  Workspace& workspace = *step.workspace;
  const Workspace::Scope scope(workspace);
  const TensorView x = workspace.Take(DType::kF32, {h.shape[0], h.shape[1]});
  Normalize(layer.attention_norm, h, x, step);
  AppendRows(layer.attention, angles, x, step);
}

}  // namespace latte
