// Absorbed: q_latent = W_UKᵀ·q_nope, attend over latents, o = W_UV·o_latent. For decode and short
// continuations.
#include <vector>

#include "src/kernels/params/linear.h"
#include "src/kernels/params/mla.h"
#include "src/kernels/registry.h"
#include "src/layers/mla/mla.h"

namespace latte {
namespace {

// [T, H, W] seen as a batch over heads: [H, T, W].
TensorView HeadsFirst(const TensorView& m) {
  TensorView out = m;
  std::swap(out.shape[0], out.shape[1]);
  std::swap(out.stride[0], out.stride[1]);
  return out;
}

// A contiguous [T, H, W] copy of x rounded to what products take; x itself under f32 arithmetic.
TensorView RoundHeads(const TensorView& x, StepContext& step) {
  if (step.arithmetic == DType::kF32) return x;
  const auto [t, h, w] = std::array{x.shape[0], x.shape[1], x.shape[2]};
  const TensorView rounded = step.workspace->Take(step.arithmetic, {t, h, w});
  for (int64_t i = 0; i < t; ++i)
    for (int64_t head = 0; head < h; ++head) {
      const float* from = x.Ptr<float>() + i * x.stride[0] + head * x.stride[1];
      uint16_t* to = rounded.Ptr<uint16_t>() + (i * h + head) * w;
      RoundTo16(from, w, step.arithmetic, to);
    }
  return rounded;
}

}  // namespace

void AttendAbsorbed(const MlaLayer& mla, const MlaQueries& q,
                    std::span<const SequenceSlice> sequences, const TensorView& o,
                    StepContext& step) {
  Workspace& workspace = *step.workspace;
  const Workspace::Scope scope(workspace);
  const MlaDims& dims = mla.dims;
  const int64_t begin = sequences.front().query_start;
  const int64_t end = sequences.back().query_start + sequences.back().extend_len;
  const int64_t t = end - begin;
  std::vector<DecodeSequence> decode;
  for (const SequenceSlice& s : sequences)
    decode.push_back({s.query_start - begin, s.extend_len, s.cached_len + s.extend_len, s.pages});

  const TensorView q_nope = RoundHeads(q.nope.Slice(0, begin, end), step);
  const TensorView q_latent = workspace.Take(DType::kF32, {t, dims.h, dims.c});
  const int64_t head_rows = dims.n + dims.v;
  Run<LinearTOp>({HeadsFirst(q_nope), mla.w_uk(), HeadsFirst(q_latent),
                  mla.w_kv_b.Scale(/*row_begin=*/0, head_rows)},
                 step.exec);

  const TensorView o_latent = workspace.Take(DType::kF32, {t, dims.h, dims.c});
  MlaDecodeOp::Params p;
  p.q_latent = q_latent;
  p.q_rope = q.rope.Slice(0, begin, end);
  p.pages = step.cache->View(0, mla.layer);
  p.sequences = decode;
  p.o_latent = o_latent;
  p.scale = mla.scale;
  p.rows = step.cache->spec().streams[0].rows;
  Run<MlaDecodeOp>(p, step.exec);

  LinearPart w_uv;
  w_uv.x = HeadsFirst(RoundHeads(o_latent, step));
  w_uv.w = mla.w_uv();
  w_uv.w_scale = mla.w_kv_b.Scale(dims.n, head_rows);
  w_uv.y = HeadsFirst(o.Slice(0, begin, end));
  Run<LinearOp>({{&w_uv, 1}}, step.exec);
}

}  // namespace latte
