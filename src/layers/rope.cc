#include "src/layers/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace latte {
namespace {

// The dimension pair whose wavelength turns `rotations` times over the original context.
double CorrectionDim(const RopeConfig& rope, int64_t r, double rotations) {
  return static_cast<double>(r) *
         std::log(static_cast<double>(rope.original_max) / (2 * std::numbers::pi * rotations)) /
         (2 * std::log(rope.theta));
}

}  // namespace

double YarnMscale(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

double SoftmaxScale(const MlaDims& dims, const RopeConfig& rope) {
  double scale = 1.0 / std::sqrt(static_cast<double>(dims.qk()));
  if (rope.yarn && rope.mscale_all_dim != 0) {
    const double mscale = YarnMscale(rope.factor, rope.mscale_all_dim);
    scale *= mscale * mscale;
  }
  return scale;
}

RopeTable RopeTable::Make(const RopeConfig& rope, int64_t r) {
  RopeTable table;
  double low = 0;
  double high = 0;
  if (rope.yarn) {
    low = CorrectionDim(rope, r, rope.beta_fast);
    high = CorrectionDim(rope, r, rope.beta_slow);
    if (rope.truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, static_cast<double>(r - 1));  // r − 1, not r/2 − 1: as published
    if (low == high) high += 0.001;
    table.amplitude = rope.attention_factor > 0 ? rope.attention_factor
                                                : YarnMscale(rope.factor, rope.mscale) /
                                                      YarnMscale(rope.factor, rope.mscale_all_dim);
  } else if (!rope.pair_factors.empty()) {
    table.amplitude = rope.attention_factor;
  }
  for (int64_t j = 0; j < r / 2; ++j) {
    double plain = std::pow(rope.theta, -2.0 * static_cast<double>(j) / static_cast<double>(r));
    if (!rope.pair_factors.empty()) plain /= rope.pair_factors[static_cast<size_t>(j)];
    double ramp = 0;
    if (rope.yarn) ramp = std::clamp((static_cast<double>(j) - low) / (high - low), 0.0, 1.0);
    table.frequency.push_back(plain / rope.factor * ramp + plain * (1 - ramp));
  }
  return table;
}

Tensor RopeTable::Frequencies() const {
  Tensor out(DType::kF32, {static_cast<int64_t>(frequency.size())});
  std::transform(frequency.begin(), frequency.end(), out.Ptr<float>(),
                 [](double f) { return static_cast<float>(f); });
  return out;
}

}  // namespace latte
