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

PathCost Absorbed(const MlaDims& dims, const Chunk& chunk, const MlaRates& rates) {
  const auto h = static_cast<double>(dims.h);
  const auto c = static_cast<double>(dims.c);
  const auto r = static_cast<double>(dims.r);
  const double weights = h * c * static_cast<double>(dims.n + dims.v);
  return Part(2 * weights * chunk.q, weights * kBytes, rates.absorb.At(chunk.q), rates) +
         Part(2 * h * (2 * c + r) * chunk.pairs(), (chunk.k + chunk.q) * (c + r) * kBytes,
              rates.decode.At(h * chunk.q), rates);
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

}  // namespace

PathChoice ChoosePath(const MlaDims& dims, const PromptShape& prompt, const MlaRates& rates) {
  LATTE_CHECK(prompt.new_tokens > 0 && prompt.cached_tokens >= 0, "{} new tokens, {} cached",
              prompt.new_tokens, prompt.cached_tokens);
  PathChoice out;
  for (int64_t begin = 0; begin < prompt.new_tokens; begin += kChunk) {
    const Chunk chunk{static_cast<double>(std::min(kChunk, prompt.new_tokens - begin)),
                      static_cast<double>(prompt.cached_tokens + begin)};
    out.absorbed = out.absorbed + Absorbed(dims, chunk, rates);
    out.latent = out.latent + Latent(dims, chunk, rates);
  }
  out.path = out.latent.seconds < out.absorbed.seconds ? MlaPath::kLatent : MlaPath::kAbsorbed;
  return out;
}

std::vector<PathChoice> ChoosePaths(const MlaDims& dims, std::span<const PromptShape> prompts,
                                    const MlaRates& rates) {
  std::vector<PathChoice> out;
  out.reserve(prompts.size());
  for (const PromptShape& prompt : prompts) out.push_back(ChoosePath(dims, prompt, rates));
  return out;
}

}  // namespace latte
