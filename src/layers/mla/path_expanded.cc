// Expanded attention over a paged cache, prefill_workspace_tokens keys at a time. kLatent expands
// cached latents to keys and values; kDecompressed reads cached keys and values. Chunks of keys are
// anchored at absolute positions and merged from left to right by log-sum-exp, so neither the
// chunks of a prompt nor the cached prefix changes a byte. The workspace does not grow with the
// context.
#include <algorithm>

#include "src/kernels/params/gemm.h"
#include "src/kernels/params/mla.h"
#include "src/kernels/registry.h"
#include "src/layers/mla/mla.h"
#include "src/layers/mla/over_ranks.h"

namespace latte {
namespace {

// A chunk of keys in expanded form. The views live in the workspace.
struct ExpandedKeys {
  TensorView k_nope;  // [S, H, N]
  TensorView k_rope;  // [S, H, R]
  TensorView v;       // [S, H, V]
};

// Padding between rows of keys of all heads. Their width is often a power of two; without padding,
// the rows of one head would share a few sets of the caches.
constexpr int64_t kPad = 16;

// Cached rows [begin, end) of a stream, as f32. width: numbers per row. Ranks that divide the cache
// give theirs to all.
TensorView GatherKeys(const MlaLayer& mla, StreamId stream, int64_t width,
                      const SequenceChunk& sequence, int64_t begin, int64_t end,
                      StepContext& step) {
  const TensorView rows = step.workspace->Take(DType::kF32, {end - begin, width});
  const auto read = [&](int64_t first, const TensorView& to) {
    Run<GatherPagesOp>({step.cache->View(stream, mla.layer), sequence.pages, first, to, mla.dims.c,
                        step.cache->spec().Stream(stream).row_format},
                       step.exec);
  };
  if (step.cache_ranks == nullptr)
    read(begin, rows);
  else
    ReadKeysOfRanks(begin, rows, read, step);
  return rows;
}

// A matrix [S, stride] viewed as [S, H, width], starting at column `begin`, with `per_head` columns
// from head to head.
TensorView Heads(const TensorView& rows, int64_t begin, int64_t heads, int64_t per_head,
                 int64_t width) {
  TensorView out = rows;
  out.data += begin * SizeOf(rows.dtype);
  out.rank = 3;
  out.shape = {rows.shape[0], heads, width};
  out.stride = {rows.stride[0], per_head, 1};
  return out;
}

// Rows are rounded one by one, so keys and values of a token do not depend on the chunk that
// expands them.
ExpandedKeys ExpandLatents(const MlaLayer& mla, const HeadRanges& parts,
                           const SequenceChunk& sequence, int64_t begin, int64_t end,
                           StepContext& step) {
  const MlaDims& dims = mla.dims;
  const TensorView rows =
      GatherKeys(mla, StreamId::kLatent, dims.latent(), sequence, begin, end, step);
  const int64_t h = parts.own_heads();
  if (h == 0) return {};  // other ranks have read keys of this one
  const int64_t per_head = dims.n + dims.v;
  const int64_t width = h * per_head;
  const TensorView kv =
      step.workspace->Take(DType::kF32, {end - begin, width + kPad}).Slice(1, 0, width);
  Apply(mla.KvBOf(parts.own_begin(), parts.own_end()), rows.Slice(1, 0, dims.c), kv, step);
  return {Heads(kv, 0, h, per_head, dims.n),
          Heads(rows, dims.c, h, /*per_head=*/0, dims.r),  // one rope key, shared by all heads
          Heads(kv, dims.n, h, per_head, dims.v)};
}

ExpandedKeys ReadExpanded(const MlaLayer& mla, const SequenceChunk& sequence, int64_t begin,
                          int64_t end, StepContext& step) {
  const MlaDims& dims = mla.dims;
  const TensorView key =
      GatherKeys(mla, StreamId::kKey, dims.h * dims.qk(), sequence, begin, end, step);
  const TensorView value =
      GatherKeys(mla, StreamId::kValue, dims.h * dims.v, sequence, begin, end, step);
  return {Heads(key, 0, dims.h, dims.qk(), dims.n), Heads(key, dims.n, dims.h, dims.qk(), dims.r),
          Heads(value, 0, dims.h, dims.v, dims.v)};
}

}  // namespace

void AttendExpanded(const MlaLayer& mla, const MlaQueries& q, const SequenceChunk& sequence,
                    const TensorView& o, StepContext& step) {
  Workspace& workspace = *step.workspace;
  const Workspace::Scope scope(workspace);
  const HeadRanges parts = mla.PartsIn(step);
  const int64_t h = parts.own_heads();
  const int64_t v = mla.dims.v;
  const int64_t t = sequence.count;
  const int64_t rows_begin = sequence.query_start;
  const int64_t rows_end = rows_begin + t;
  const int64_t total_len = sequence.total_len();
  const auto own_queries = [&](const TensorView& q_part) {
    return q_part.Slice(0, rows_begin, rows_end).Slice(1, parts.own_begin(), parts.own_end());
  };

  const TensorView lse = workspace.Take(DType::kF32, {t, h});
  const TensorView o_part = workspace.Take(DType::kF32, {t, h, v});
  const TensorView lse_part = workspace.Take(DType::kF32, {t, h});
  for (int64_t begin = 0; begin < total_len; begin += step.prefill_workspace_tokens) {
    const Workspace::Scope chunk_scope(workspace);
    const int64_t end = std::min(total_len, begin + step.prefill_workspace_tokens);
    const ExpandedKeys keys = sequence.path == MlaPath::kDecompressed
                                  ? ReadExpanded(mla, sequence, begin, end, step)
                                  : ExpandLatents(mla, parts, sequence, begin, end, step);
    if (h == 0) continue;
    const bool first = begin == 0;
    MhaOp::Params p;
    p.q_nope = own_queries(q.nope);
    p.q_rope = own_queries(q.rope);
    p.k_nope = keys.k_nope;
    p.k_rope = keys.k_rope;
    p.v = keys.v;
    p.q_begin = sequence.cached_len;
    p.key_begin = begin;
    p.o = first ? o.Slice(0, rows_begin, rows_end) : o_part;
    p.lse = first ? lse : lse_part;
    p.scale = mla.scale;
    p.arithmetic = step.arithmetic;
    Run<MhaOp>(p, step.exec);
    if (!first)
      Run<LseMergeOp>({o.Slice(0, rows_begin, rows_end).Reshape({t * h, v}), lse.Reshape({t * h}),
                       o_part.Reshape({t * h, v}), lse_part.Reshape({t * h})},
                      step.exec);
  }
}

}  // namespace latte
