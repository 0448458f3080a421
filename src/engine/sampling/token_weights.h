// What sampling computes of a whole row of logits. Plain IEEE operations in a fixed order: the same
// results on every machine and with every compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/engine/sampling/row_passes.h"
#include "src/kernels/machine.h"

namespace latte {

// The fastest that `isa` has; all give the same.
const RowPasses& RowPassesOf(Isa isa);

// A row and what one look over it tells. Thread-compatible; the logits must outlive it.
struct ScannedRow {
  std::span<const float> logits;
  const RowPasses* passes = &kRowPassesBaseline;
  bool nan = false;              // some logit is NaN; the rest is then not meaningful
  float max = 0;                 // −inf for an empty row
  std::vector<float> block_max;  // of each kLogitBlock logits
};
ScannedRow ScanRow(std::span<const float> logits, const RowPasses& passes);

// Sums of weights fit for up to 2^24 tokens.
uint64_t SumWeights(const ScannedRow& row, const WeightScale& scale);

// Requires: out.size() == logits.size().
void ComputeWeights(std::span<const float> logits, const WeightScale& scale,
                    std::span<uint64_t> out, const RowPasses& passes = kRowPassesBaseline);

// The weights of all tokens by buckets.
std::vector<uint64_t> CountBuckets(const ScannedRow& row, const WeightScale& scale,
                                   const BucketGrid& grid);

// The tokens of a bucket, by id.
std::vector<int32_t> BucketMembers(const ScannedRow& row, const BucketGrid& grid, int32_t bucket);

}  // namespace latte
