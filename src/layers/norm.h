// RMSNorm: y = x · rsqrt(mean(x²) + eps) · weight, and LayerNorm, which also takes the mean from x.
#pragma once

#include "src/layers/step_context.h"
#include "src/tensor/tensor.h"

namespace latte {

// Immutable after loading.
struct RmsNorm {
  TensorView weight;  // [D]
  double eps = 1e-6;
};

// Immutable after loading.
struct LayerNorm {
  TensorView weight;  // [D]
  TensorView bias;    // [D]
  double eps = 1e-6;
};

// Shapes: x and y [M, D] f32; y may be x.
void Normalize(const LayerNorm& norm, const TensorView& x, const TensorView& y, StepContext& step);
void Normalize(const RmsNorm& norm, const TensorView& x, const TensorView& y, StepContext& step);

// h += x, then y = the norm of h. Shapes: x, h and y [M, D] f32.
void AddAndNormalize(const RmsNorm& norm, const TensorView& x, const TensorView& h,
                     const TensorView& y, StepContext& step);

}  // namespace latte
