#pragma once

#include "src/kernels/cuda/params/types.h"

namespace latte::cuda {

struct RmsNormParams {
  const float* x;  // [m, d]
  float* h;        // [m, d]: h += x is normed; null: x is
  const void* w;   // [d]
  float* y;        // [m, d]
  int64_t x_stride, y_stride;
  int32_t m, d;
  Element w_type;
  float eps;
};

struct LayerNormParams {
  const float* x;  // [m, d]
  const void *w, *b;
  float* y;
  int64_t x_stride, y_stride;
  int32_t m, d;
  Element w_type, b_type;
  float eps;
};

}  // namespace latte::cuda
