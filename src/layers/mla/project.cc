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

struct Latents {
  TensorView c_kv;    // [T, C] f32, normed
  TensorView k_rope;  // [T, R] f32, rotated
};

// x: [T, D] rounded. The views live in the workspace of the caller's scope.
Latents ProjectLatents(const MlaLayer& mla, const RopeAngles& angles, const TensorView& x,
                       StepContext& step) {
  const TensorView kv = step.workspace->Take(DType::kF32, {x.shape[0], mla.dims.latent()});
  Multiply(mla.w_dkv, x, kv, step);
  const Latents out{kv.Slice(1, 0, mla.dims.c), kv.Slice(1, mla.dims.c, mla.dims.latent())};
  Normalize(mla.c_kv_norm, out.c_kv, out.c_kv, step);
  Rotate(mla, angles, HeadColumns(kv, 1, mla.dims.c, mla.dims.latent()), step);
  return out;
}

}  // namespace

MlaQueries ProjectQueries(const MlaLayer& mla, const RopeAngles& angles, const TensorView& x,
                          StepContext& step) {
  const int64_t t = x.shape[0];
  TensorView input = x;
  if (mla.dims.cq > 0) {
    const TensorView c_q = step.workspace->Take(DType::kF32, {t, mla.dims.cq});
    Multiply(mla.w_dq, x, c_q, step);
    Normalize(mla.c_q_norm, c_q, c_q, step);
    input = RoundActivations(c_q, step);
  }
  const TensorView q = step.workspace->Take(DType::kF32, {t, mla.dims.h * mla.dims.qk()});
  Multiply(mla.w_q, input, q, step);
  const MlaQueries out{HeadColumns(q, mla.dims.h, 0, mla.dims.n),
                       HeadColumns(q, mla.dims.h, mla.dims.n, mla.dims.qk())};
  Rotate(mla, angles, out.rope, step);
  return out;
}

void AppendLatents(const MlaLayer& mla, const RopeAngles& angles, const TensorView& x,
                   StepContext& step) {
  const Workspace::Scope scope(*step.workspace);
  const Latents latents = ProjectLatents(mla, angles, x, step);
  Run<AppendOp>({latents.c_kv, latents.k_rope, step.cache->View(0, mla.layer), step.slots,
                 step.cache->spec().streams[0].rows},
                step.exec);
}

void AppendExpanded(const MlaLayer& mla, const RopeAngles& angles, const TensorView& x,
                    StepContext& step) {
  Workspace& workspace = *step.workspace;
  const Workspace::Scope scope(workspace);
  const auto [d, h, cq, c, n, r, v, bias, eps] = mla.dims;
  const int64_t t = x.shape[0];
  const Latents latents = ProjectLatents(mla, angles, x, step);
  const TensorView c_kv = workspace.Take(DType::kF32, {t, c});
  for (int64_t i = 0; i < t; ++i) std::copy_n(latents.c_kv.Row<float>(i), c, c_kv.Row<float>(i));
  const TensorView kv = workspace.Take(DType::kF32, {t, h * (n + v)});
  Multiply(mla.w_kv_b, RoundActivations(c_kv, step), kv, step);

  const TensorView key = workspace.Take(DType::kF32, {t, h * (n + r)});
  const TensorView value = workspace.Take(DType::kF32, {t, h * v});
  for (int64_t i = 0; i < t; ++i)
    for (int64_t head = 0; head < h; ++head) {
      const float* from = kv.Row<float>(i) + head * (n + v);
      float* key_row = key.Row<float>(i) + head * (n + r);
      std::copy_n(from, n, key_row);
      std::copy_n(latents.k_rope.Row<float>(i), r, key_row + n);
      std::copy_n(from + n, v, value.Row<float>(i) + head * v);
    }
  Run<AppendOp>({key, TensorView(), step.cache->View(0, mla.layer), step.slots}, step.exec);
  Run<AppendOp>({value, TensorView(), step.cache->View(1, mla.layer), step.slots}, step.exec);
}

}  // namespace latte
