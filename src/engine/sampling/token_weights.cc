#include "src/engine/sampling/token_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace latte {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

// The logits behind the last whole block, filled up to one with −inf.
struct Rest {
  explicit Rest(std::span<const float> logits) : begin(logits.size() / kLogitBlock * kLogitBlock) {
    block.fill(kMinusInf);
    std::copy(logits.begin() + static_cast<int64_t>(begin), logits.end(), block.begin());
  }
  size_t begin;
  std::array<float, kLogitBlock> block;
};

// f(pointer to logits, their first block, number of blocks): of the whole ones, then of the rest.
template <class F>
void ForBlocks(std::span<const float> logits, const F& f) {
  const size_t whole = logits.size() / kLogitBlock;
  if (whole > 0) f(logits.data(), size_t{0}, whole);
  if (whole * kLogitBlock == logits.size()) return;
  const Rest rest(logits);
  f(rest.block.data(), whole, size_t{1});
}

}  // namespace

const RowPasses& RowPassesOf(Isa isa) {
  if (isa >= Isa::kAvx512) return kRowPassesAvx512;
  return isa >= Isa::kAvx2 ? kRowPassesAvx2 : kRowPassesBaseline;
}

ScannedRow ScanRow(std::span<const float> logits, const RowPasses& passes) {
  ScannedRow out{logits, &passes, false, kMinusInf, {}};
  out.block_max.resize((logits.size() + kLogitBlock - 1) / kLogitBlock);
  ForBlocks(logits, [&](const float* z, size_t first, size_t blocks) {
    out.nan |= passes.scan(z, blocks, &out.block_max[first]);
  });
  for (const float max : out.block_max) out.max = std::max(out.max, max);
  return out;
}

WeightScale WeightScale::Of(float max, double temperature, double min_p) {
  const double cut = min_p > 0 ? std::log2(min_p) : kNoCut;
  return {max, static_cast<float>(std::numbers::log2e / temperature),
          std::max(static_cast<float>(cut), kNoCut)};
}

uint64_t SumWeights(const ScannedRow& row, const WeightScale& scale) {
  uint64_t sum = 0;
  ForBlocks(row.logits, [&](const float* z, size_t first, size_t blocks) {
    sum += row.passes->sum(z, &row.block_max[first], blocks, scale);
  });
  return sum;
}

void ComputeWeights(std::span<const float> logits, const WeightScale& scale,
                    std::span<uint64_t> out, const RowPasses& passes) {
  ForBlocks(logits, [&](const float* z, size_t first, size_t blocks) {
    if (z == logits.data()) return passes.weights(z, blocks, scale, out.data());
    std::array<uint64_t, kLogitBlock> block;
    passes.weights(z, 1, scale, block.data());
    const size_t begin = first * kLogitBlock;
    std::copy_n(block.begin(), logits.size() - begin, out.begin() + static_cast<int64_t>(begin));
  });
}

std::vector<uint64_t> CountBuckets(const ScannedRow& row, const WeightScale& scale,
                                   const BucketGrid& grid) {
  std::vector<uint64_t> buckets(kBuckets);
  ForBlocks(row.logits, [&](const float* z, size_t first, size_t blocks) {
    row.passes->count(z, &row.block_max[first], blocks, scale, grid, buckets.data());
  });
  return buckets;
}

std::vector<int32_t> BucketMembers(const ScannedRow& row, const BucketGrid& grid, int32_t bucket) {
  std::vector<int32_t> out;
  std::array<int32_t, kLogitBlock> at;
  ForBlocks(row.logits, [&](const float* z, size_t first, size_t blocks) {
    for (size_t b = 0; b < blocks; ++b) {
      if (!row.passes->find(z + b * kLogitBlock, grid, bucket, at.data())) continue;
      const size_t begin = (first + b) * kLogitBlock;
      for (size_t i = 0; i < kLogitBlock && begin + i < row.logits.size(); ++i)
        if (at[i] == bucket) out.push_back(static_cast<int32_t>(begin + i));
    }
  });
  return out;
}

}  // namespace latte
