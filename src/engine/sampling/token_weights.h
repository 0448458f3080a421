// The computations of sampling over a whole row of logits, by the ops of kernels/params/sampling.h.
// They give the same bits on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/kernels/machine.h"
#include "src/kernels/params/sampling.h"

namespace latte {

// A row, and its maxima. Thread-compatible; logits and machine must outlive it.
struct ScannedRow {
  std::span<const float> logits;
  const Machine* machine = nullptr;  // whose kernels run; no result depends on it
  bool nan = false;                  // some logit is NaN; the rest is then not meaningful
  float max = 0;                     // −inf for an empty row
  std::vector<float> block_max;      // of each kLogitBlock logits
};
ScannedRow ScanRow(std::span<const float> logits, const Machine& machine);

// Requires: at most 2^24 tokens.
uint64_t SumWeights(const ScannedRow& row, const WeightScale& scale);

std::vector<uint64_t> ComputeWeights(std::span<const float> logits, const WeightScale& scale,
                                     const Machine& machine);

// The weights of all tokens by buckets.
std::vector<uint64_t> CountBuckets(const ScannedRow& row, const WeightScale& scale,
                                   const BucketGrid& grid);

// The tokens of a bucket, by id.
std::vector<int32_t> BucketMembers(const ScannedRow& row, const BucketGrid& grid, int32_t bucket);

}  // namespace latte
