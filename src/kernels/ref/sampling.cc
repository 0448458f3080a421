#include <algorithm>
#include <cmath>
#include <numbers>

#include "src/kernels/ref/ref.h"

namespace latte {

WeightScale WeightScale::Of(float max, double temperature, double min_p) {
  const double cut = min_p > 0 ? std::log2(min_p) : kNoCut;
  return {max, static_cast<float>(std::numbers::log2e / temperature),
          std::max(static_cast<float>(cut), kNoCut)};
}

namespace ref {
namespace {

// 2^x = 2^whole · 2^f, |f| <= 1/2, by a polynomial that is 1 at 0 and else off by at most 4.5e−7.
uint64_t TokenWeight(float z, const WeightScale& scale) {
  const float x = (z - scale.max) * scale.scale;
  if (!(x >= scale.cut)) return 0;
  constexpr float kRound =
      0x1.8p23f + 147;  // x + kRound is rounded to an integer, ties to odd ones
  const float whole = (x + kRound) - kRound;
  const float f = x - whole;
  float y = 0.00111255096f * f + 0.00966628268f;
  for (const float next : {0.0555740036f, 0.240223512f, 0.693142831f, 1.0f}) y = y * f + next;
  return static_cast<uint64_t>(std::ldexp(static_cast<double>(y), static_cast<int>(whole) + 40));
}

}  // namespace

void LogitMax(const LogitMaxOp::Params& p, const Exec&) {
  *p.has_nan = false;
  for (size_t i = 0; i < p.logits.size(); ++i) {
    const float z = p.logits[i];
    float& max = p.block_max[i / kLogitBlock];
    max = i % kLogitBlock == 0 || z > max ? z : max;
    *p.has_nan |= std::isnan(z);
  }
}

void TokenWeightSum(const TokenWeightSumOp::Params& p, const Exec&) {
  *p.sum = 0;
  for (const float z : p.logits) *p.sum += TokenWeight(z, p.scale);
}

void TokenWeights(const TokenWeightsOp::Params& p, const Exec&) {
  for (size_t i = 0; i < p.logits.size(); ++i) p.weights[i] = TokenWeight(p.logits[i], p.scale);
}

void TokenHistogram(const TokenHistogramOp::Params& p, const Exec&) {
  for (const float z : p.logits)
    p.buckets[static_cast<size_t>(p.grid.BucketOf(z))] += TokenWeight(z, p.scale);
}

void FindBucket(const FindBucketOp::Params& p, const Exec&) {
  std::fill(p.found.begin(), p.found.end(), uint8_t{0});
  for (size_t i = 0; i < p.logits.size(); ++i)
    if (p.grid.BucketOf(p.logits[i]) == p.bucket) p.found[i / kLogitBlock] = 1;
}

}  // namespace ref
}  // namespace latte
