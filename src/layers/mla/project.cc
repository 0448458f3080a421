// Projections x → q_nope, q_rope, c_kv, k_rope, the queries' temperature, and the append of cached
// rows. All paths share it.
#include "src/kernels/params/gemm.h"
#include "src/kernels/params/mla.h"
#include "src/kernels/registry.h"
#include "src/layers/mla/mla.h"

namespace latte {
namespace {

// Columns [begin, end) of every head of a [T, heads·width] matrix, as [T, heads, end − begin].
TensorView HeadColumns(const TensorView& m, int64_t heads, int64_t begin, int64_t end) {
  const int64_t width = m.shape[1] / heads;
  return m.Reshape({m.shape[0], heads, width}).Slice(2, begin, end);
}

// Rows [T, W] that all heads share, as [T, heads, W].
TensorView ForAllHeads(const TensorView& rows, int64_t heads) {
  TensorView out = rows;
  out.rank = 3;
  out.shape = {rows.shape[0], heads, rows.shape[1]};
  out.stride = {rows.stride[0], 0, 1};
  return out;
}

// Norms c_kv, rotates k_rope (both in `kv`) and q_rope and, where latents are cached, writes the
// rows.
void NormRopeAppend(const MlaLayer& mla, const RopeAngles& angles, const TensorView& kv,
                    const TensorView& q_rope, StepContext& step) {
  NormRopeAppendOp::Params p;
  p.latent = kv;
  p.q_rope = q_rope;
  p.w = mla.c_kv_norm.weight;
  p.eps = static_cast<float>(mla.c_kv_norm.eps);
  if (mla.rope.rotate) {
    p.cos = angles.cos;
    p.sin = angles.sin;
  }
  p.interleaved = mla.rope.interleaved;
  if (!CachesExpanded(step)) {
    p.pages = step.cache->View(StreamId::kLatent, mla.layer);
    p.slots = step.slots;
    p.row_format = step.cache->spec().Stream(StreamId::kLatent).row_format;
  }
  Run<NormRopeAppendOp>(p, step.exec);
}

}  // namespace

MlaProjections Project(const MlaLayer& mla, const RopeAngles& angles, const TensorView& x,
                       StepContext& step) {
  Workspace& workspace = *step.workspace;
  const MlaDims& dims = mla.dims;
  const int64_t t = x.shape[0];
  const bool through_latent = dims.cq > 0;
  const Linear& first = through_latent ? mla.w_dq : mla.w_q;
  const TensorView kv = workspace.Take(DType::kF32, {t, dims.latent()});
  const TensorView from_h = workspace.Take(DType::kF32, {t, first.outputs()});
  const Activations rounded = RoundActivations(x, {&first, &mla.w_dkv}, step);
  const Product products[] = {{&first, nullptr, rounded, from_h},
                              {&mla.w_dkv, nullptr, rounded, kv}};
  Multiply(products, step);

  TensorView q = from_h;
  if (through_latent) {
    Normalize(mla.c_q_norm, from_h, from_h, step);
    q = workspace.Take(DType::kF32, {t, dims.h * dims.qk()});
    Apply(mla.w_q, from_h, q, step);
  }
  const MlaQueries queries{HeadColumns(q, dims.h, 0, dims.n),
                           HeadColumns(q, dims.h, dims.n, dims.qk())};
  NormRopeAppend(mla, angles, kv, queries.rope, step);
  if (mla.rope.query_beta > 0)
    Run<QueryTemperatureOp>({step.positions, mla.rope.query_beta, mla.rope.original_max, q},
                            step.exec);
  return {queries, through_latent ? from_h : TensorView(), kv.Slice(1, 0, dims.c),
          kv.Slice(1, dims.c, dims.latent())};
}

void AppendRows(const MlaLayer& mla, const RopeAngles& angles, const TensorView& x,
                StepContext& step) {
  Workspace& workspace = *step.workspace;
  const Workspace::Scope scope(workspace);
  const MlaDims& dims = mla.dims;
  const int64_t t = x.shape[0];
  const TensorView kv = workspace.Take(DType::kF32, {t, dims.latent()});
  Apply(mla.w_dkv, x, kv, step);
  const TensorView no_queries = workspace.Take(DType::kF32, {t, 0, dims.r});
  NormRopeAppend(mla, angles, kv, no_queries, step);
  if (OwnsChoice(mla, step))
    AppendIndexKeys(*mla.indexer, {mla.layer, mla.rope, angles, {}, x}, step);
  if (!CachesExpanded(step)) return;
  AppendExpanded(mla, {{}, kv.Slice(1, 0, dims.c), kv.Slice(1, dims.c, dims.latent())}, step);
}

void AppendExpanded(const MlaLayer& mla, const MlaProjections& projected, StepContext& step) {
  Workspace& workspace = *step.workspace;
  const Workspace::Scope scope(workspace);
  const MlaDims& dims = mla.dims;
  const int64_t h = dims.h;
  const int64_t t = projected.c_kv.shape[0];
  const TensorView kv = workspace.Take(DType::kF32, {t, h * (dims.n + dims.v)});
  Apply(mla.w_kv_b, projected.c_kv, kv, step);

  const TensorView key = workspace.Take(DType::kF32, {t, h * dims.qk()});
  const TensorView value = workspace.Take(DType::kF32, {t, h * dims.v});
  const auto copy = [&](const TensorView& from, const TensorView& to) {
    Run<CastOp>({from, to}, step.exec);
  };
  copy(HeadColumns(kv, h, 0, dims.n), HeadColumns(key, h, 0, dims.n));
  copy(ForAllHeads(projected.k_rope, h), HeadColumns(key, h, dims.n, dims.qk()));
  copy(HeadColumns(kv, h, dims.n, dims.n + dims.v), HeadColumns(value, h, 0, dims.v));
  Run<AppendOp>({key, TensorView(), step.cache->View(StreamId::kKey, mla.layer), step.slots},
                step.exec);
  Run<AppendOp>({value, TensorView(), step.cache->View(StreamId::kValue, mla.layer), step.slots},
                step.exec);
}

}  // namespace latte
