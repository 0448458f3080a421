#include "src/layers/mla/path_cost.h"

#include <algorithm>

#include "src/base/check.h"
#include "src/base/math.h"

namespace latte {
namespace {

constexpr int64_t kChunk = 512;
constexpr double kBytes = 2;  // of a weight or a cached number

// A part whose time is the larger of arithmetic and memory.
PathCost Part(double flops, double bytes, double gflops, const MlaRates& rates) {
  return {flops, bytes, std::max(flops / gflops, bytes / rates.memory_gbps) * 1e-9};
}

PathCost operator+(const PathCost& a, const PathCost& b) {
  return {a.flops + b.flops, a.bytes + b.bytes, a.seconds + b.seconds};
}

// A chunk of `q` tokens after `k` cached ones.
struct Chunk {
  double q, k;
  // Pairs of a token and a key that it sees.
  double pairs() const { return q * k + q * (q + 1) / 2; }
};

// The keys of an absorbed chunk.
struct Keys {
  double pairs = 0;   // of a token and a key that it attends to
  double read = 0;    // cached rows, each counted once
  double shared = 1;  // tokens that attend to one key together
};

PathCost Absorbed(const MlaDims& dims, double q, const Keys& keys, const MlaRates& rates) {
  const auto h = static_cast<double>(dims.h);
  const auto c = static_cast<double>(dims.c);
  const auto r = static_cast<double>(dims.r);
  const double weights = h * c * static_cast<double>(dims.n + dims.v);
  return Part(2 * weights * q, weights * kBytes, rates.absorb.At(q), rates) +
         Part(2 * h * (2 * c + r) * keys.pairs, keys.read * (c + r) * kBytes,
              rates.decode.At(h * keys.shared), rates);
}

PathCost Latent(const MlaDims& dims, const Chunk& chunk, const MlaRates& rates) {
  const auto h = static_cast<double>(dims.h);
  const auto c = static_cast<double>(dims.c);
  const auto r = static_cast<double>(dims.r);
  const auto per_head = static_cast<double>(dims.n + dims.r + dims.v);
  const double weights = h * c * static_cast<double>(dims.n + dims.v);
  const double keys = chunk.k + chunk.q;
  return Part(2 * weights * keys, (weights + keys * (c + r)) * kBytes, rates.expand.At(keys),
              rates) +
         Part(2 * h * per_head * chunk.pairs(), 0, rates.mha.At(chunk.q), rates);
}

// Calls f(chunk) for every chunk of `count` tokens after `cached` ones.
template <class F>
void ForEachChunk(int64_t count, int64_t cached, const F& f) {
  for (int64_t begin = 0; begin < count; begin += kChunk)
    f(Chunk{static_cast<double>(std::min(kChunk, count - begin)),
            static_cast<double>(cached + begin)});
}

void AddDense(const MlaDims& dims, const Chunk& chunk, const MlaRates& rates, PathChoice& out) {
  out.absorbed =
      out.absorbed + Absorbed(dims, chunk.q, {chunk.pairs(), chunk.k + chunk.q, chunk.q}, rates);
  out.latent = out.latent + Latent(dims, chunk, rates);
}

// Every token has a list of its own, so no two of them share a key.
void AddSparse(const MlaDims& dims, const IndexerDims& indexer, const Chunk& chunk,
               const MlaRates& rates, PathChoice& out) {
  const double keys = chunk.k + chunk.q;
  const double chosen = chunk.q * static_cast<double>(indexer.topk);
  out.sparse = out.sparse + Absorbed(dims, chunk.q, {chosen, std::min(chosen, keys), 1}, rates);
  const auto width = static_cast<double>(indexer.width);
  const double queries = static_cast<double>(indexer.heads) * width;
  const double weights = queries * static_cast<double>(dims.cq);
  out.indexer =
      out.indexer + Part(2 * weights * chunk.q, weights * kBytes, rates.expand.At(chunk.q), rates) +
      Part(2 * queries * chunk.pairs(), keys * width * kBytes, rates.indexer.At(chunk.q), rates);
}

}  // namespace

PathChoice ChoosePath(const MlaDims& dims, const PromptShape& prompt, const MlaRates& rates,
                      const IndexerDims& indexer) {
  LATTE_CHECK(prompt.new_tokens > 0 && prompt.cached_tokens >= 0, "{} new tokens, {} cached",
              prompt.new_tokens, prompt.cached_tokens);
  PathChoice out;
  out.dense_tokens = prompt.new_tokens;
  // The token at position K is the first that sees more than K keys.
  if (indexer.heads > 0)
    out.dense_tokens =
        std::clamp<int64_t>(indexer.topk - prompt.cached_tokens, 0, prompt.new_tokens);
  out.sparse_tokens = prompt.new_tokens - out.dense_tokens;
  ForEachChunk(out.dense_tokens, prompt.cached_tokens,
               [&](const Chunk& chunk) { AddDense(dims, chunk, rates, out); });
  ForEachChunk(out.sparse_tokens, prompt.cached_tokens + out.dense_tokens,
               [&](const Chunk& chunk) { AddSparse(dims, indexer, chunk, rates, out); });
  out.path = out.latent.seconds < out.absorbed.seconds ? MlaPath::kLatent : MlaPath::kAbsorbed;
  return out;
}

}  // namespace latte
