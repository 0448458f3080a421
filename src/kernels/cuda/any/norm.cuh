// any.rms_norm, any.add_rms_norm, any.layer_norm: a warp a row. Lane l sums columns l, l + 32, … in
// order; a tree adds the lanes.
#pragma once

#include "src/kernels/cuda/common/elements.cuh"
#include "src/kernels/cuda/common/reduce.cuh"
#include "src/kernels/cuda/params/norm.h"

namespace latte::cuda {

inline constexpr int kRowThreads = 128;
inline constexpr int kRowsOfBlock = kRowThreads / kWarp;

// The row of this warp.
LATTE_DEVICE int RowOfWarp() { return BlockX() * kRowsOfBlock + Warp(); }

// 1/√(mean(x²) + eps) of a row of d values.
LATTE_DEVICE float InverseRms(const float* x, int d, float eps) {
  float squares = 0;
  for (int i = Lane(); i < d; i += kWarp) {
    const float v = LoadGlobal(x + i);
    squares = Fma(v, v, squares);
  }
  return Div(1.0f, Sqrt(Add(Div(WarpSum(squares), static_cast<float>(d)), eps)));
}

LATTE_DEVICE void RmsNorm(const RmsNormParams& p) {
  const int m = RowOfWarp();
  if (m >= p.m) return;
  const float* x = p.x + m * p.x_stride;
  if (p.h != nullptr) {
    float* const h = p.h + m * p.x_stride;
    for (int i = Lane(); i < p.d; i += kWarp)
      StoreGlobal(h + i, Add(LoadGlobal(h + i), LoadGlobal(x + i)));
    x = h;
  }
  const float inverse = InverseRms(x, p.d, p.eps);
  for (int i = Lane(); i < p.d; i += kWarp)
    StoreGlobal(p.y + m * p.y_stride + i,
                Mul(Mul(LoadGlobal(x + i), inverse), LoadElement(p.w, p.w_type, i)));
}

LATTE_DEVICE void LayerNorm(const LayerNormParams& p) {
  const int m = RowOfWarp();
  if (m >= p.m) return;
  const float* const x = p.x + m * p.x_stride;
  const float d = static_cast<float>(p.d);
  float sum = 0;
  for (int i = Lane(); i < p.d; i += kWarp) sum = Add(sum, LoadGlobal(x + i));
  const float mean = Div(WarpSum(sum), d);
  float squares = 0;
  for (int i = Lane(); i < p.d; i += kWarp) {
    const float v = Sub(LoadGlobal(x + i), mean);
    squares = Fma(v, v, squares);
  }
  const float inverse = Div(1.0f, Sqrt(Add(Div(WarpSum(squares), d), p.eps)));
  for (int i = Lane(); i < p.d; i += kWarp)
    StoreGlobal(p.y + m * p.y_stride + i,
                Fma(Mul(Sub(LoadGlobal(x + i), mean), inverse), LoadElement(p.w, p.w_type, i),
                    LoadElement(p.b, p.b_type, i)));
}

}  // namespace latte::cuda
