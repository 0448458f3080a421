// h → q_nope, q_rope, c_kv, k_rope, and the rows that enter the cache. Shared by all paths.
#include "src/kernels/params/linear.h"
#include "src/kernels/params/mla.h"
#include "src/kernels/registry.h"
#include "src/layers/mla/mla.h"

namespace latte {
namespace {

void Rotate(const MlaLayer& mla, const RopeAngles& angles, const TensorView& x, StepContext& step) {
  if (!mla.rope.rotate || x.elements() == 0) return;
  Run<RopeOp>({x, angles.cos, angles.sin, mla.rope.interleaved}, step.exec);
}

// Columns [begin, end) of every head of a [T, heads·width] matrix, as [T, heads, end − begin].
TensorView HeadColumns(const TensorView& m, int64_t heads, int64_t begin, int64_t end) {
  const int64_t width = m.shape[1] / heads;
  return m.Reshape({m.shape[0], heads, width}).Slice(2, begin, end);
}

MlaQueries SplitQueries(const MlaLayer& mla, const RopeAngles& angles, const TensorView& q,
                        StepContext& step) {
  const MlaQueries out{HeadColumns(q, mla.dims.h, 0, mla.dims.n),
                       HeadColumns(q, mla.dims.h, mla.dims.n, mla.dims.qk())};
  Rotate(mla, angles, out.rope, step);
  return out;
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
    Multiply(mla.w_q, RoundActivations(from_h, {&mla.w_q}, step), q, step);
  }
  const TensorView c_kv = kv.Slice(1, 0, dims.c);
  Normalize(mla.c_kv_norm, c_kv, c_kv, step);
  Rotate(mla, angles, HeadColumns(kv, 1, dims.c, dims.latent()), step);
  return {SplitQueries(mla, angles, q, step), c_kv, kv.Slice(1, dims.c, dims.latent())};
}

void AppendLatents(const MlaLayer& mla, const MlaProjections& projected, StepContext& step) {
  Run<AppendOp>({projected.c_kv, projected.k_rope, step.cache->View(0, mla.layer), step.slots,
                 step.cache->spec().streams[0].rows},
                step.exec);
}

void AppendExpanded(const MlaLayer& mla, const MlaProjections& projected, StepContext& step) {
  Workspace& workspace = *step.workspace;
  const Workspace::Scope scope(workspace);
  const auto [d, h, cq, c, n, r, v, bias, eps] = mla.dims;
  const int64_t t = projected.c_kv.shape[0];
  const TensorView c_kv = workspace.Take(DType::kF32, {t, c});
  for (int64_t i = 0; i < t; ++i) std::copy_n(projected.c_kv.Row<float>(i), c, c_kv.Row<float>(i));
  const TensorView kv = workspace.Take(DType::kF32, {t, h * (n + v)});
  Multiply(mla.w_kv_b, RoundActivations(c_kv, {}, step), kv, step);

  const TensorView key = workspace.Take(DType::kF32, {t, h * (n + r)});
  const TensorView value = workspace.Take(DType::kF32, {t, h * v});
  for (int64_t i = 0; i < t; ++i)
    for (int64_t head = 0; head < h; ++head) {
      const float* from = kv.Row<float>(i) + head * (n + v);
      float* key_row = key.Row<float>(i) + head * (n + r);
      std::copy_n(from, n, key_row);
      std::copy_n(projected.k_rope.Row<float>(i), r, key_row + n);
      std::copy_n(from + n, v, value.Row<float>(i) + head * v);
    }
  Run<AppendOp>({key, TensorView(), step.cache->View(0, mla.layer), step.slots}, step.exec);
  Run<AppendOp>({value, TensorView(), step.cache->View(1, mla.layer), step.slots}, step.exec);
}

}  // namespace latte
