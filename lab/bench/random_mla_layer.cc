#include "lab/bench/random_mla_layer.h"

#include <cmath>
#include <cstring>
#include <memory>

#include "lab/bench/random_data.h"
#include "src/base/check.h"
#include "src/base/math.h"
#include "src/jobs/bench/bench_timer.h"
#include "src/kernels/params/mla.h"
#include "src/kernels/registry.h"

namespace latte {
namespace {

constexpr int64_t kLayerPageTokens = 64;

}  // namespace

MlaDims DeepSeekDims(int64_t heads) {
  MlaDims dims;
  dims.h = heads;
  dims.c = 512;
  dims.n = 128;
  dims.r = 64;
  dims.v = 128;
  return dims;
}

Result<std::unique_ptr<RandomMlaLayer>> RandomMlaLayer::Create(const Options& options) {
  const MlaPath path = options.expanded_cache ? MlaPath::kDecompressed : MlaPath::kLatent;
  CacheSpec spec{MlaCacheStreams(options.dims, path, CacheDType::Plain(options.dtype)),
                 options.copies, kLayerPageTokens};
  if (options.indexer.heads > 0)
    spec.streams.push_back(IndexerCacheStream(options.indexer, CacheDType::Plain(options.dtype)));
  const int64_t pages = options.batch * CeilDiv(options.max_tokens, kLayerPageTokens);
  LATTE_ASSIGN_OR_RETURN(LatentCache cache, LatentCache::Create(std::move(spec), pages));
  return std::unique_ptr<RandomMlaLayer>(new RandomMlaLayer(options, std::move(cache)));
}

RandomMlaLayer::RandomMlaLayer(const Options& options, LatentCache cache)
    : options_(options), cache_(std::move(cache)) {
  const MlaDims& dims = options_.dims;
  const int64_t rows = dims.h * (dims.n + dims.v);
  layers_.resize(static_cast<size_t>(options_.copies));
  for (size_t i = 0; i < layers_.size(); ++i) {
    weights_.emplace_back(options_.dtype, std::initializer_list<int64_t>{rows, dims.c});
    FillRandom(weights_.back(), 0.05f, i);
    layers_[i].dims = dims;
    layers_[i].layer = static_cast<int64_t>(i);
    layers_[i].scale = 1.0f / std::sqrt(static_cast<float>(dims.qk()));
    layers_[i].w_kv_b.matrix.weight = weights_.back();
    for (const CacheStream& stream : cache_.spec().streams)
      FillRandom(cache_.View(stream.id, layers_[i].layer), 1.0f, 100 + i);
  }
  pages_ = ShuffledPages(0, cache_.pages());
}

double RandomMlaLayer::Attend(MlaPath path, int64_t new_tokens, int64_t cached_tokens,
                              const Exec& exec) {
  LATTE_CHECK(cached_tokens + new_tokens <= options_.max_tokens);
  const MlaLayer& mla = NextLayer();
  const MlaDims& dims = mla.dims;
  const int64_t t = options_.batch * new_tokens;
  const Workspace::Scope scope(workspace_);
  const TensorView nope = workspace_.Take(DType::kF32, {t, dims.h, dims.n});
  const TensorView rope = workspace_.Take(DType::kF32, {t, dims.h, dims.r});
  const TensorView o = workspace_.Take(DType::kF32, {t, dims.h, dims.v});
  FillRandom(nope, 1.0f, 1);
  FillRandom(rope, 1.0f, 2);
  const std::vector<SequenceChunk> sequences = Chunks(new_tokens, cached_tokens, path);
  StepContext step;
  step.sequences = sequences;
  step.arithmetic = options_.dtype;
  step.cache = &cache_;
  step.workspace = &workspace_;
  step.exec = exec;
  const MlaQueries q{nope, rope};
  if (path != MlaPath::kSparse)
    return SecondsOf([&] { latte::Attend(mla, q, sequences, o, step); });
  const IndexTopKOp::Params choice = Choice(sequences, mla.layer);
  step.key_positions = choice.positions;
  return SecondsOf([&] {
    Run<IndexTopKOp>(choice, exec);
    latte::Attend(mla, q, sequences, o, step);
  });
}

double RandomMlaLayer::ChooseKeys(int64_t new_tokens, int64_t cached_tokens, const Exec& exec) {
  LATTE_CHECK(cached_tokens + new_tokens <= options_.max_tokens);
  const Workspace::Scope scope(workspace_);
  const std::vector<SequenceChunk> sequences = Chunks(new_tokens, cached_tokens, MlaPath::kSparse);
  const IndexTopKOp::Params choice = Choice(sequences, NextLayer().layer);
  return SecondsOf([&] { Run<IndexTopKOp>(choice, exec); });
}

IndexTopKOp::Params RandomMlaLayer::Choice(std::span<const SequenceChunk> sequences,
                                           int64_t layer) {
  const IndexerDims& indexer = options_.indexer;
  LATTE_CHECK(indexer.heads > 0, "a sparse path without an indexer");
  int64_t t = 0;
  for (const SequenceChunk& sequence : sequences) t += sequence.count;
  IndexTopKOp::Params out;
  out.q = workspace_.Take(DType::kF32, {t, indexer.heads, indexer.width});
  out.weights = workspace_.Take(DType::kF32, {t, indexer.heads});
  out.positions = workspace_.Take(DType::kI32, {t, indexer.topk});
  out.pages = cache_.View(StreamId::kIndexer, layer);
  out.sequences = sequences;
  FillRandom(out.q, 1.0f, 3);
  FillRandom(out.weights, 1.0f, 4);
  return out;
}

std::vector<SequenceChunk> RandomMlaLayer::Chunks(int64_t new_tokens, int64_t cached_tokens,
                                                  MlaPath path) const {
  return EqualChunks(pages_, options_.batch, new_tokens, cached_tokens, path);
}

double RandomMlaLayer::AttendLatents(int64_t new_tokens, int64_t cached_tokens, const Exec& exec) {
  LATTE_CHECK(cached_tokens + new_tokens <= options_.max_tokens);
  const MlaDims& dims = options_.dims;
  const int64_t t = options_.batch * new_tokens;
  const Workspace::Scope scope(workspace_);
  const std::vector<SequenceChunk> sequences =
      Chunks(new_tokens, cached_tokens, MlaPath::kAbsorbed);
  MlaDecodeOp::Params p;
  p.q_latent = workspace_.Take(DType::kF32, {t, dims.h, dims.c});
  p.q_rope = workspace_.Take(DType::kF32, {t, dims.h, dims.r});
  p.o_latent = workspace_.Take(DType::kF32, {t, dims.h, dims.c});
  FillRandom(p.q_latent, 1.0f, 1);
  FillRandom(p.q_rope, 1.0f, 2);
  p.pages = cache_.View(StreamId::kLatent, NextLayer().layer);
  p.sequences = sequences;
  p.scale = layers_[0].scale;
  return SecondsOf([&] { Run<MlaDecodeOp>(p, exec); });
}

double RandomMlaLayer::CopyRows(int64_t cached_tokens, const Exec& exec) {
  const TensorView pages = cache_.View(StreamId::kLatent, NextLayer().layer);
  const Workspace::Scope scope(workspace_);
  const int64_t row_bytes = pages.shape[2] * SizeOf(pages.dtype);
  const int64_t pages_each = cache_.pages() / options_.batch;
  const TensorView rows = workspace_.Take(DType::kU8, {options_.batch * cached_tokens, row_bytes});
  return SecondsOf([&] {
    exec.threads->ParallelFor(options_.batch * cached_tokens, [&](int64_t i) {
      const int64_t token = i % cached_tokens;
      const int64_t page =
          pages_[static_cast<size_t>(i / cached_tokens * pages_each + token / kLayerPageTokens)];
      std::memcpy(rows.RowBytes(i),
                  pages.data + (page * kLayerPageTokens + token % kLayerPageTokens) * row_bytes,
                  static_cast<size_t>(row_bytes));
    });
  });
}

}  // namespace latte
