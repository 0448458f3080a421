// clang-format off
// Rotary position embedding with YaRN or LongRoPE. Frequencies are computed once in f64;
// RopeAnglesOp computes the angles of a step in f32.
//
//   YaRN       f_j = θ_j/s · ramp_j + θ_j·(1 − ramp_j)        θ_j = base^(−2j/R)
//   LongRoPE   f_j = θ_j / λ_j                                λ_j from a list
//
// Sources: YaRN (arXiv 2309.00071) §3; constants as in the published DeepSeek-V3 inference code.
// LongRoPE (arXiv 2402.13753) §3; the factor of cos and sin as in the published code of MiniCPM3.
// clang-format on
#pragma once

#include <cstdint>
#include <vector>

#include "src/checkpoint/config/model_config.h"
#include "src/tensor/tensor.h"

namespace latte {

// Immutable.
struct RopeTable {
  std::vector<double> frequency;  // [R/2] radians per position
  double amplitude = 1.0;         // factor on cos and sin

  static RopeTable Make(const RopeConfig& rope, int64_t r);

  // The frequencies as RopeAnglesOp takes them: [R/2] f32.
  Tensor Frequencies() const;
};

// cos and sin of a step's positions, shared by all layers: [T, R/2] f32.
struct RopeAngles {
  TensorView cos;
  TensorView sin;

  RopeAngles Rows(int64_t begin, int64_t end) const {
    return {cos.Slice(0, begin, end), sin.Slice(0, begin, end)};
  }
};

// 1 for s ≤ 1, else 0.1·m·ln s + 1.
double YarnMscale(double factor, double mscale);

// The factor of scores: (N+R)^−1/2, under YaRN times the square of YarnMscale(factor,
// mscale_all_dim).
double SoftmaxScale(const MlaDims& dims, const RopeConfig& rope);

}  // namespace latte
