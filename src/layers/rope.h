// Rotary position embedding with YaRN. Frequencies are made once in fp64; angles of a step in fp32.
//
//   f_j = θ_j/s · ramp_j + θ_j·(1 − ramp_j),   θ_j = base^(−2j/R)
// Source: YaRN (arXiv 2309.00071) §3; constants as in the published DeepSeek-V3 inference code.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/checkpoint/config/model_config.h"
#include "src/tensor/tensor.h"

namespace latte {

// Immutable.
struct RopeTable {
  std::vector<double> frequency;  // [R/2] radians per position
  double amplitude = 1.0;         // factor on cos and sin

  static RopeTable Make(const RopeConfig& rope, int64_t r);

  // Writes cos and sin [T, R/2] of the positions.
  void Angles(std::span<const int32_t> positions, const TensorView& cos,
              const TensorView& sin) const;
};

// 1 for s ≤ 1, else 0.1·m·ln s + 1.
double YarnMscale(double factor, double mscale);

// What scores are multiplied by: (N+R)^−1/2, times mscale_all_dim's YarnMscale squared under YaRN.
double SoftmaxScale(const MlaDims& dims, const RopeConfig& rope);

}  // namespace latte
