#include "src/layers/mla/indexer.h"

#include <bit>
#include <cmath>

#include "src/kernels/params/gemm.h"
#include "src/kernels/params/indexer.h"
#include "src/kernels/params/mla.h"
#include "src/kernels/registry.h"
#include "src/layers/mla/over_ranks.h"
#include "src/tensor/dtype.h"

namespace latte {
namespace {

// Rotates the first R columns of x [M, G, W].
void Rotate(const Indexer& indexer, const RopeConfig& rope, const RopeAngles& angles,
            const TensorView& x, StepContext& step) {
  if (!rope.rotate) return;
  const int64_t r = 2 * angles.cos.shape[1];
  Run<RopeOp>({x.Slice(2, 0, r), angles.cos, angles.sin, indexer.dims.interleaved}, step.exec);
}

// x·H [M, W], if index keys are quantised; else x.
TensorView Spread(const Indexer& indexer, const TensorView& x, StepContext& step) {
  const CacheStream& stream = step.cache->spec().Stream(StreamId::kIndexer);
  const TensorView hadamard = indexer.hadamard;
  if (stream.row_format.kind == CacheFormat::kPlain || hadamard.empty()) return x;
  Linear spread;
  spread.matrix.weight = hadamard;
  const TensorView y = step.workspace->Take(DType::kF32, {x.shape[0], x.shape[1]});
  MultiplyExactly(spread, x, y, step);
  return y;
}

}  // namespace

Tensor HadamardMatrix(int64_t width) {
  const auto w = static_cast<uint64_t>(width);
  if (!std::has_single_bit(w)) return {};
  const float scale = std::ldexp(1.0f, -std::countr_zero(w) / 2);
  Tensor out(DType::kBF16, {width, width});
  for (uint64_t i = 0; i < w; ++i)
    for (uint64_t j = 0; j < w; ++j)
      out.Ptr<uint16_t>()[i * w + j] = FloatToBF16(std::popcount(i & j) % 2 == 0 ? scale : -scale);
  return out;
}

CacheStream IndexerCacheStream(const IndexerDims& dims, CacheDType cache) {
  if (cache.kind == CacheFormat::kPlain) return {StreamId::kIndexer, dims.width, cache.dtype};
  const CacheDType f8 = {DType::kU8, CacheFormat::kF8};
  return {StreamId::kIndexer, f8.Width(dims.width, 0), f8.dtype, {f8.kind}};
}

void AppendIndexKeys(const Indexer& indexer, const IndexerInputs& in, StepContext& step) {
  Workspace& workspace = *step.workspace;
  const Workspace::Scope scope(workspace);
  const int64_t t = in.x.shape[0];
  const TensorView k = workspace.Take(DType::kF32, {t, indexer.dims.width});
  Apply(indexer.w_k, in.x, k, step);
  Normalize(indexer.k_norm, k, k, step);
  Rotate(indexer, in.rope, in.angles, k.Reshape({t, 1, indexer.dims.width}), step);
  Run<AppendOp>(
      {Spread(indexer, k, step), TensorView(), step.cache->View(StreamId::kIndexer, in.layer),
       step.slots, step.cache->spec().Stream(StreamId::kIndexer).row_format},
      step.exec);
}

void ChooseKeys(const Indexer& indexer, const IndexerInputs& in,
                std::span<const SequenceChunk> group, StepContext& step) {
  Workspace& workspace = *step.workspace;
  const Workspace::Scope scope(workspace);
  const int64_t begin = group.front().query_start;
  const int64_t end = group.back().query_start + group.back().count;
  const int64_t t = end - begin;
  const auto [heads, width, topk, interleaved] = indexer.dims;

  const TensorView q = workspace.Take(DType::kF32, {t, heads * width});
  Apply(indexer.w_q, in.c_q.Slice(0, begin, end), q, step);
  const TensorView q_heads = q.Reshape({t, heads, width});
  Rotate(indexer, in.rope, in.angles.Rows(begin, end), q_heads, step);
  const TensorView weights = workspace.Take(DType::kF32, {t, heads});
  MultiplyExactly(indexer.w_weights, in.x.Slice(0, begin, end), weights, step);

  IndexTopKOp::Params p;
  p.q = Spread(indexer, q.Reshape({t * heads, width}), step).Reshape({t, heads, width});
  p.weights = weights;
  p.pages = step.cache->View(StreamId::kIndexer, in.layer);
  p.sequences = group;
  p.positions = step.key_positions.Slice(0, begin, end);
  p.row_format = step.cache->spec().Stream(StreamId::kIndexer).row_format;
  if (step.cache_ranks != nullptr) return ChooseOverRanks(p, step);
  Run<IndexTopKOp>(p, step.exec);
}

}  // namespace latte
