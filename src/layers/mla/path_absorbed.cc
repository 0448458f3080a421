// Absorbed attention: q_latent = W_UKᵀ·q_nope, attention over latents, o = W_UV·o_latent. Used for
// decoding and short continuations, and for sparse attention with a list of positions per token.
//
// Ranks that divide the cache have the same queries. Each attends to its own keys, and they merge
// the results:
//
//   parallel     W_UV before the merge: outputs of V numbers with their lse, by LseMergeOp in the
//                order of ranks
//   each split   W_UV after the merge: splits of C numbers, by MergeSplitsOp in the order of keys
#include "src/kernels/params/gemm.h"
#include "src/kernels/params/mla.h"
#include "src/kernels/registry.h"
#include "src/layers/mla/mla.h"
#include "src/layers/mla/over_ranks.h"
#include "src/layers/ranks.h"

namespace latte {
namespace {

// [T, H, W] seen as a batch over heads: [H, T, W].
TensorView HeadsFirst(const TensorView& m) {
  TensorView out = m;
  std::swap(out.shape[0], out.shape[1]);
  std::swap(out.stride[0], out.stride[1]);
  return out;
}

// A contiguous [T, H, N] copy of q_nope rounded to 16 bits; q_nope itself under f32 arithmetic.
// Never rounded to 8 bits: the scales of kv_b change along the rows that this product sums over.
TensorView RoundQueries(const TensorView& x, StepContext& step) {
  if (step.arithmetic == DType::kF32) return x;
  const TensorView rounded =
      step.workspace->Take(step.arithmetic, {x.shape[0], x.shape[1], x.shape[2]});
  Run<CastOp>({x, rounded}, step.exec);
  return rounded;
}

// o = W_UV·o_latent, one product per head of kv_b. Each row of o_latent is rounded separately, as
// for every product with kv_b. o_latent: [T, H, C] contiguous; o: [T, H, V].
void UpProjectValues(const MlaDims& dims, const Linear& kv_b, const TensorView& o_latent,
                     const TensorView& o, StepContext& step) {
  const int64_t t = o.shape[0];
  const int64_t h = o.shape[1];
  const auto by_heads = [&](const TensorView& rows) {
    return HeadsFirst(rows.Reshape({t, h, rows.shape[1]}));
  };
  const Activations x = RoundActivations(o_latent.Reshape({t * h, dims.c}), {&kv_b}, step);
  GemmProblem w_uv;
  if (x.codes.empty()) {
    w_uv.x = by_heads(x.plain);
  } else {
    w_uv.x = by_heads(x.codes);
    w_uv.x_scale = by_heads(x.scale);
    w_uv.x_group = kActivationGroup;
  }
  w_uv.w = WUv(dims, kv_b);
  w_uv.w_scale = kv_b.Scale(dims.n, dims.n + dims.v);
  w_uv.y = HeadsFirst(o);
  Run<GemmOp>({{&w_uv, 1}}, step.exec);
}

// Writes o, the rows of one group, from what each rank has.
void AttendOverRanks(const MlaLayer& mla, MlaDecodeOp::Params p, const TensorView& o,
                     StepContext& step) {
  Workspace& workspace = *step.workspace;
  const MlaDims& dims = mla.dims;
  const int64_t t = o.shape[0];
  const HeadRanges parts = mla.PartsIn(step);
  if (p.positions.empty())
    p.owner = OwnerOf(step);
  else
    p.positions = OwnPositions(p.positions, step);
  if (!step.merges_each_split) {
    p.o_latent = workspace.Take(DType::kF32, {t, dims.h, dims.c});
    p.lse = workspace.Take(DType::kF32, {t, dims.h});
    Run<MlaDecodeOp>(p, step.exec);
    const TensorView partial = workspace.Take(DType::kF32, {t, dims.h, dims.v});
    UpProjectValues(dims, mla.w_kv_b, p.o_latent, partial, step);
    return MergeOutputs(parts, partial, p.lse, o, step);
  }
  const int64_t rows = MlaDecodeOp::RowsOfSplits(p.sequences, p.owner) * dims.h;
  p.splits = {workspace.Take(DType::kF32, {rows, dims.c}), workspace.Take(DType::kF32, {rows}),
              workspace.Take(DType::kF32, {rows})};
  if (rows > 0) Run<MlaDecodeOp>(p, step.exec);
  const TensorView o_latent = workspace.Take(DType::kF32, {t, parts.own_heads(), dims.c});
  MergeSplits(parts, p.splits, p.sequences, o_latent, step);
  if (parts.own_heads() > 0)
    UpProjectValues(dims, mla.KvBOf(parts.own_begin(), parts.own_end()), o_latent, o, step);
}

}  // namespace

void AttendAbsorbed(const MlaLayer& mla, const MlaQueries& q, std::span<const SequenceChunk> group,
                    const TensorView& key_positions, const TensorView& o, StepContext& step) {
  Workspace& workspace = *step.workspace;
  const Workspace::Scope scope(workspace);
  const MlaDims& dims = mla.dims;
  const int64_t begin = group.front().query_start;
  const int64_t end = group.back().query_start + group.back().count;
  const int64_t t = end - begin;

  const TensorView q_nope = RoundQueries(q.nope.Slice(0, begin, end), step);
  const TensorView q_latent = workspace.Take(DType::kF32, {t, dims.h, dims.c});
  Run<GemmTOp>({HeadsFirst(q_nope), WUk(dims, mla.w_kv_b), HeadsFirst(q_latent),
                mla.w_kv_b.Scale(/*row_begin=*/0, dims.n + dims.v)},
               step.exec);

  MlaDecodeOp::Params p;
  p.q_latent = q_latent;
  p.q_rope = q.rope.Slice(0, begin, end);
  p.pages = step.cache->View(StreamId::kLatent, mla.layer);
  p.sequences = group;
  if (!key_positions.empty()) p.positions = key_positions.Slice(0, begin, end);
  p.scale = mla.scale;
  p.row_format = step.cache->spec().Stream(StreamId::kLatent).row_format;
  if (step.cache_ranks != nullptr) return AttendOverRanks(mla, p, o.Slice(0, begin, end), step);
  p.o_latent = workspace.Take(DType::kF32, {t, dims.h, dims.c});
  Run<MlaDecodeOp>(p, step.exec);

  UpProjectValues(dims, mla.w_kv_b, p.o_latent, o.Slice(0, begin, end), step);
}

}  // namespace latte
