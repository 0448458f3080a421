#pragma once

#include "src/kernels/cuda/params/types.h"

namespace latte::cuda {

// One problem of GemmOp.
struct GemmParams {
  const void *x, *w, *gate;  // [b, m, k], [b, n, k]; gate may be null
  const float* bias;         // [n]; may be null
  float* y;                  // [b, m, n]
  int64_t x_batch, x_stride, w_batch, w_stride, y_batch, y_stride;
  int32_t m, n, k;
  Element x_type, w_type;
};

struct GemmTParams {
  const void *x, *w;  // [b, m, n], [b, n, k]
  float* y;           // [b, m, k]
  int64_t x_batch, x_stride, w_batch, w_stride, y_batch, y_stride;
  int32_t m, n, k;
  Element x_type, w_type;
};

// Experts [begin, begin + count) of ExpertGemmOp.
struct ExpertGemmParams {
  static constexpr int kMostExperts = 120;

  const int32_t* first;  // [all experts + 1]
  const void* x;         // [rows, k]
  float* y;              // [rows, n]
  int64_t x_stride, y_stride, w_stride;
  int32_t begin, n, k;
  Element x_type, w_type;
  const void* w[kMostExperts];     // [n, k]; null: the expert is left out
  const void* gate[kMostExperts];  // the same; all null: no gate
};

}  // namespace latte::cuda
