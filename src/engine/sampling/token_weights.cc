#include "src/engine/sampling/token_weights.h"

#include <algorithm>
#include <limits>

#include "src/kernels/registry.h"

namespace latte {
namespace {

// A row is one task: many of them share the threads (SampleAll).
template <class Op>
void RunOn(const Machine& machine, const typename Op::Params& params) {
  Run<Op>(params, Exec{.machine = &machine});
}

}  // namespace

ScannedRow ScanRow(std::span<const float> logits, const Machine& machine) {
  ScannedRow out{logits, &machine, false, -std::numeric_limits<float>::infinity(), {}};
  out.block_max.resize(LogitBlocks(logits.size()));
  RunOn<LogitMaxOp>(machine, {logits, out.block_max, &out.nan});
  for (const float max : out.block_max) out.max = std::max(out.max, max);
  return out;
}

uint64_t SumWeights(const ScannedRow& row, const WeightScale& scale) {
  uint64_t sum = 0;
  RunOn<TokenWeightSumOp>(*row.machine, {row.logits, row.block_max, scale, &sum});
  return sum;
}

std::vector<uint64_t> ComputeWeights(std::span<const float> logits, const WeightScale& scale,
                                     const Machine& machine) {
  std::vector<uint64_t> out(logits.size());
  RunOn<TokenWeightsOp>(machine, {logits, scale, out});
  return out;
}

std::vector<uint64_t> CountBuckets(const ScannedRow& row, const WeightScale& scale,
                                   const BucketGrid& grid) {
  std::vector<uint64_t> buckets(kBuckets);
  RunOn<TokenHistogramOp>(*row.machine, {row.logits, row.block_max, scale, grid, buckets});
  return buckets;
}

std::vector<int32_t> BucketMembers(const ScannedRow& row, const BucketGrid& grid, int32_t bucket) {
  std::vector<uint8_t> found(row.block_max.size());
  RunOn<FindBucketOp>(*row.machine, {row.logits, grid, bucket, found});
  std::vector<int32_t> out;
  for (size_t block = 0; block < found.size(); ++block) {
    if (found[block] == 0) continue;
    const size_t end = std::min(row.logits.size(), (block + 1) * kLogitBlock);
    for (size_t i = block * kLogitBlock; i < end; ++i)
      if (grid.BucketOf(row.logits[i]) == bucket) out.push_back(static_cast<int32_t>(i));
  }
  return out;
}

}  // namespace latte
