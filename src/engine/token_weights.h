// What sampling computes of a whole row of logits. Plain IEEE operations in a fixed order: the same
// results on every machine and with every compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace latte {

inline constexpr size_t kLogitBlock = 64;  // logits that are looked at together

// What one look over a row tells.
struct LogitScan {
  bool nan = false;              // some logit is NaN; the rest is then not meaningful
  float max = 0;                 // −inf for an empty row
  std::vector<float> block_max;  // of each kLogitBlock logits
};
LogitScan ScanLogits(std::span<const float> logits);

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

// Sums of weights fit for up to 2^24 tokens.
uint64_t SumWeights(std::span<const float> logits, const LogitScan& scan, const WeightScale& scale);

// Requires: out.size() == logits.size().
void ComputeWeights(std::span<const float> logits, const WeightScale& scale,
                    std::span<uint64_t> out);

}  // namespace latte
