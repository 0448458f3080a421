// Passes over a row of logits, as one instruction set does them: all to the same bits.
//
// Only row_passes_<isa>.cc is compiled with that instruction set. As with src/kernels/cpu/target.h,
// nothing but row_passes-inl.h (of internal linkage) and this header, which has no functions, is
// included there; tools/check_isa_symbols.sh checks the objects.
#pragma once

#include <cstddef>
#include <cstdint>

namespace latte {

inline constexpr size_t kLogitBlock = 64;  // logits that are looked at together

// A token's weight is its probability relative to the likeliest token's, in units of 2^−40: whole
// numbers, so that a sum does not depend on its order. It is rounded down to the unit, and besides
// off by at most 4e−6 of itself (exp in fp32).
struct WeightScale {
  static constexpr float kNoCut = -40;

  float max = 0;    // the likeliest token's logit, finite
  float scale = 0;  // log2(e) / temperature
  float cut = 0;    // tokens below 2^cut of the likeliest one weigh nothing; kNoCut … 0

  // Requires: a temperature that is not below 1e-6; 0 <= min_p <= 1.
  static WeightScale Of(float max, double temperature, double min_p);
};
inline constexpr uint64_t kWeightOne = uint64_t{1} << 40;  // the likeliest token's weight

// Buckets of logits by how far they are below the largest one, in equal steps; the last one has all
// that are farther.
inline constexpr int32_t kBuckets = 2048;
struct BucketGrid {
  float max = 0;        // no logit is larger; finite
  float per_logit = 0;  // buckets per unit of logit; finite, > 0
};

// Logits come in whole blocks. Only `scan` may meet a NaN.
struct RowPasses {
  // Writes the largest of each block. Returns whether some logit is NaN; the maxima then mean
  // nothing.
  bool (*scan)(const float* z, size_t blocks, float* block_max);
  // The sum of the weights. Fits for up to 2^24 logits.
  uint64_t (*sum)(const float* z, const float* block_max, size_t blocks, const WeightScale&);
  void (*weights)(const float* z, size_t blocks, const WeightScale&, uint64_t* out);
  // Adds each weight to that of its logit's bucket.
  void (*count)(const float* z, const float* block_max, size_t blocks, const WeightScale&,
                const BucketGrid&, uint64_t* buckets);
  // Writes the buckets of a block's logits. Returns whether one of them is `bucket`.
  bool (*find)(const float* z, const BucketGrid&, int32_t bucket, int32_t* at);
};

extern const RowPasses kRowPassesBaseline;  // what every x86-64 processor has
extern const RowPasses kRowPassesAvx2;
extern const RowPasses kRowPassesAvx512;

}  // namespace latte
