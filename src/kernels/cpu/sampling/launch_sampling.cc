// Ops over a row of logits: first all whole blocks in place, then a padded copy of the last,
// shorter block.
#include <algorithm>
#include <array>
#include <limits>

#include "src/kernels/cpu/launch.h"
#include "src/kernels/op.h"

namespace latte::cpu {
namespace {

static_assert(kLogitBlock == latte::kLogitBlock && kLogitBuckets == kBuckets);

LogitWeights Of(const WeightScale& scale) { return {scale.max, scale.scale, scale.cut}; }
LogitBuckets Of(const BucketGrid& grid) { return {grid.max, grid.per_logit}; }

constexpr float kNoWeight = -std::numeric_limits<float>::infinity();  // padding that weighs nothing

// f(logits, number of the first block, number of blocks): of the whole blocks, then of the rest.
template <class F>
void ForEachBlocks(std::span<const float> logits, float padding, const F& f) {
  const size_t whole = logits.size() / kLogitBlock;
  if (whole > 0) f(logits.data(), size_t{0}, whole);
  const std::span<const float> rest = logits.subspan(whole * kLogitBlock);
  if (rest.empty()) return;
  std::array<float, kLogitBlock> block;
  block.fill(padding);
  std::copy(rest.begin(), rest.end(), block.begin());
  f(block.data(), whole, size_t{1});
}

}  // namespace

bool Supports(const LogitShape&) { return true; }

void LogitMax(const Target& target, const LogitMaxOp::Params& p, const Exec&) {
  *p.has_nan = false;
  ForEachBlocks(p.logits, kNoWeight, [&](const float* z, size_t first, size_t blocks) {
    *p.has_nan |= target.logit_max(z, blocks, &p.block_max[first]);
  });
}

void TokenWeightSum(const Target& target, const TokenWeightSumOp::Params& p, const Exec&) {
  *p.sum = 0;
  ForEachBlocks(p.logits, kNoWeight, [&](const float* z, size_t first, size_t blocks) {
    *p.sum += target.weight_sum(z, &p.block_max[first], blocks, Of(p.scale));
  });
}

void TokenWeights(const Target& target, const TokenWeightsOp::Params& p, const Exec&) {
  ForEachBlocks(p.logits, kNoWeight, [&](const float* z, size_t first, size_t blocks) {
    if (z == p.logits.data()) return target.weights(z, blocks, Of(p.scale), p.weights.data());
    std::array<uint64_t, kLogitBlock> block;
    target.weights(z, 1, Of(p.scale), block.data());
    const std::span<uint64_t> rest = p.weights.subspan(first * kLogitBlock);
    std::copy_n(block.begin(), rest.size(), rest.begin());
  });
}

void TokenHistogram(const Target& target, const TokenHistogramOp::Params& p, const Exec&) {
  ForEachBlocks(p.logits, kNoWeight, [&](const float* z, size_t first, size_t blocks) {
    target.weight_histogram(z, &p.block_max[first], blocks, Of(p.scale), Of(p.grid),
                            p.buckets.data());
  });
}

void FindBucket(const Target& target, const FindBucketOp::Params& p, const Exec&) {
  if (p.logits.empty()) return;
  // Padding is in the bucket of a logit of its block. −inf would be in the last bucket.
  ForEachBlocks(p.logits, p.logits.back(), [&](const float* z, size_t first, size_t blocks) {
    target.find_bucket(z, blocks, Of(p.grid), p.bucket, &p.found[first]);
  });
}

}  // namespace latte::cpu
