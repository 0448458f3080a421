#pragma once

#include "src/kernels/cuda/params/types.h"

namespace latte::cuda {

struct RopeAnglesParams {
  const int32_t* positions;  // [t]
  const float* frequency;    // [half]
  float *cos, *sin;          // [t, half]
  int32_t t, half;
  double amplitude;
};

struct RopeParams {
  float* x;  // [m, g, r]
  const float *cos, *sin;
  int64_t stride, group_stride;
  int32_t m, g, r, interleaved;
};

struct AddParams {
  const float* x;
  float* y;
  int64_t count;
};

struct GatherParams {
  const void* x;  // [v, d]
  const int32_t* ids;
  void* y;  // [m, d]
  int64_t x_row_bytes;
  int32_t m, d;
  Element x_type, y_type;
  float scale;
};

// A tensor of up to kRank dimensions, the last one contiguous.
struct CastParams {
  static constexpr int kRank = 5;

  const float* x;
  void* y;
  int64_t x_stride[kRank], y_stride[kRank];
  int32_t shape[kRank];
  Element y_type;
};

struct QuantizeRowsParams {
  const float* x;  // [m, k]
  signed char* y;
  float* scale;  // [m, groups]
  int64_t x_stride, y_stride, scale_stride;
  int32_t m, k, group;
};

struct QueryTemperatureParams {
  const int32_t* positions;  // [t]
  float* x;                  // [t, width]
  int64_t stride, period;
  double beta;
  int32_t t, width;
};

struct FiniteRowsParams {
  const float* x;  // [m, d]
  int32_t* finite;
  int64_t stride;
  int32_t m, d;
};

struct PackDraftsParams {
  const float* x;  // [m, d]
  const int32_t* slots;
  float* y;
  int64_t x_stride, y_stride;
  int32_t m, d;
};

}  // namespace latte::cuda
