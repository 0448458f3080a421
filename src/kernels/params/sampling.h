// Ops over one row of logits, for sampling: maxima, weights (probabilities relative to the
// likeliest token) and a histogram of them. All arithmetic is IEEE operations on single
// logits, without fused or reordered operations, and weights are integers: every kernel gives the
// same bits on every machine.
//
// Logits lie in blocks of kLogitBlock, the last of which may be shorter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace latte {

inline constexpr size_t kLogitBlock = 64;

constexpr size_t LogitBlocks(size_t logits) { return (logits + kLogitBlock - 1) / kLogitBlock; }

struct LogitShape {
  int64_t n;  // logits
  bool operator==(const LogitShape&) const = default;
};

// weight(z) = ⌊2^40 · 2^x⌋ with x = (z − max) · scale, and 0 where x < cut. Whole numbers, so that
// a sum does not depend on its order. Apart from rounding down, a weight is off by at most 4e−6 of
// itself (exp2 in fp32).
struct WeightScale {
  static constexpr float kNoCut = -40;

  float max = 0;    // the likeliest token's logit, finite
  float scale = 0;  // log2(e) / temperature
  float cut = 0;    // kNoCut … 0

  // Requires: temperature >= 1e-6; 0 <= min_p <= 1.
  static WeightScale Of(float max, double temperature, double min_p);
};
inline constexpr uint64_t kWeightOne = uint64_t{1} << 40;  // the likeliest token's weight

// Buckets of logits by their distance from the largest one, in equal steps. The last bucket has all
// that are farther.
inline constexpr int32_t kBuckets = 2048;
struct BucketGrid {
  float max = 0;        // no logit is larger; finite
  float per_logit = 0;  // buckets per unit of logit; finite, > 0

  int32_t BucketOf(float z) const {
    const float steps = (max - z) * per_logit;
    constexpr auto kLast = static_cast<float>(kBuckets - 1);
    return static_cast<int32_t>(steps < kLast ? steps : kLast);
  }
};

// The largest logit of each block, and whether some logit is NaN. With a NaN the maxima mean
// nothing. The other ops require that there is none.
struct LogitMaxOp {
  static constexpr std::string_view kName = "logit_max";
  struct Params {
    std::span<const float> logits;
    std::span<float> block_max;  // [LogitBlocks(n)], written
    bool* has_nan = nullptr;     // written
  };
  using Shape = LogitShape;
  static Shape ShapeOf(const Params& p) { return {static_cast<int64_t>(p.logits.size())}; }
};

// *sum = Σ weight(z). Requires: n <= 2^24, so that the sum fits.
struct TokenWeightSumOp {
  static constexpr std::string_view kName = "token_weight_sum";
  struct Params {
    std::span<const float> logits;
    std::span<const float> block_max;  // of LogitMaxOp
    WeightScale scale;
    uint64_t* sum = nullptr;  // written
  };
  using Shape = LogitShape;
  static Shape ShapeOf(const Params& p) { return {static_cast<int64_t>(p.logits.size())}; }
};

// weights[i] = weight(logits[i]).
struct TokenWeightsOp {
  static constexpr std::string_view kName = "token_weights";
  struct Params {
    std::span<const float> logits;
    WeightScale scale;
    std::span<uint64_t> weights;  // [n], written
  };
  using Shape = LogitShape;
  static Shape ShapeOf(const Params& p) { return {static_cast<int64_t>(p.logits.size())}; }
};

// buckets[b] += Σ weight(z) over the logits of bucket b.
struct TokenHistogramOp {
  static constexpr std::string_view kName = "token_histogram";
  struct Params {
    std::span<const float> logits;
    std::span<const float> block_max;  // of LogitMaxOp
    WeightScale scale;
    BucketGrid grid;
    std::span<uint64_t> buckets;  // [kBuckets], read and written
  };
  using Shape = LogitShape;
  static Shape ShapeOf(const Params& p) { return {static_cast<int64_t>(p.logits.size())}; }
};

// found[i]: 1 where block i has a logit of `bucket`, else 0.
struct FindBucketOp {
  static constexpr std::string_view kName = "find_bucket";
  struct Params {
    std::span<const float> logits;
    BucketGrid grid;
    int32_t bucket = 0;
    std::span<uint8_t> found;  // [LogitBlocks(n)], written
  };
  using Shape = LogitShape;
  static Shape ShapeOf(const Params& p) { return {static_cast<int64_t>(p.logits.size())}; }
};

}  // namespace latte
