// any.gemm, any.gemm_t, any.expert_gemm: products in f32 without tensor cores, for every shape.
//
// Order   gemm: lane l sums columns l, l + 32, … of K in order, a tree adds the lanes. gemm_t: N in order.
//         So M, the batch and the grid change no sum.
// Tile    gemm: a warp computes one column of y for kRowsAtOnce rows of x.
#pragma once

#include "src/kernels/cuda/common/elements.cuh"
#include "src/kernels/cuda/common/math.cuh"
#include "src/kernels/cuda/common/reduce.cuh"
#include "src/kernels/cuda/params/gemm.h"

namespace latte::cuda {

inline constexpr int kGemmThreads = 128;
inline constexpr int kGemmColumns = kGemmThreads / kWarp;  // of y, in a block
inline constexpr int kRowsAtOnce = 8;

// sums[i] = x[i,:]·w, for the rows that are there.
LATTE_DEVICE void RowDots(const void* x, Element x_type, int64_t x_stride, int rows, const void* w,
                          Element w_type, int64_t w_begin, int k, float (&sums)[kRowsAtOnce]) {
  LATTE_UNROLL
  for (int i = 0; i < kRowsAtOnce; ++i) sums[i] = 0;
  for (int at = Lane(); at < k; at += kWarp) {
    const float weight = LoadElement(w, w_type, w_begin + at);
    LATTE_UNROLL
    for (int i = 0; i < kRowsAtOnce; ++i)
      if (i < rows) sums[i] = Fma(LoadElement(x, x_type, i * x_stride + at), weight, sums[i]);
  }
  LATTE_UNROLL
  for (int i = 0; i < kRowsAtOnce; ++i)
    if (i < rows) sums[i] = WarpSum(sums[i]);
}

LATTE_DEVICE float Silu(float z) { return Div(z, Add(1.0f, Exp(-z))); }

// One column of y, of up to kRowsAtOnce rows.
struct ColumnTask {
  const void *x, *w, *gate;
  int64_t x_begin, x_stride, w_begin;  // elements
  Element x_type, w_type;
  int32_t rows, k;
  float bias;
  float* y;
  int64_t y_stride;
};

LATTE_DEVICE void RunColumn(const ColumnTask& t) {
  const void* const x = static_cast<const char*>(t.x) + t.x_begin * BytesOf(t.x_type);
  float sums[kRowsAtOnce];
  RowDots(x, t.x_type, t.x_stride, t.rows, t.w, t.w_type, t.w_begin, t.k, sums);
  if (t.gate != nullptr) {
    float gates[kRowsAtOnce];
    RowDots(x, t.x_type, t.x_stride, t.rows, t.gate, t.w_type, t.w_begin, t.k, gates);
    LATTE_UNROLL
    for (int i = 0; i < kRowsAtOnce; ++i) sums[i] = Mul(Silu(gates[i]), sums[i]);
  }
  LATTE_UNROLL
  for (int i = 0; i < kRowsAtOnce; ++i)
    if (i < t.rows && Lane() == 0) StoreGlobal(t.y + i * t.y_stride, Add(sums[i], t.bias));
}

// Grid: [⌈n/4⌉ · ⌈m/8⌉, b]: only the first dimension has room for any number of rows.
LATTE_DEVICE void Gemm(const GemmParams& p) {
  const int columns = (p.n + kGemmColumns - 1) / kGemmColumns;
  const int n = BlockX() % columns * kGemmColumns + Warp();
  const int m = BlockX() / columns * kRowsAtOnce;
  const int64_t b = BlockY();
  if (n >= p.n) return;
  ColumnTask t = {};
  t.x = p.x;
  t.w = p.w;
  t.gate = p.gate;
  t.x_begin = b * p.x_batch + m * p.x_stride;
  t.x_stride = p.x_stride;
  t.w_begin = b * p.w_batch + n * p.w_stride;
  t.x_type = p.x_type;
  t.w_type = p.w_type;
  t.rows = p.m - m < kRowsAtOnce ? p.m - m : kRowsAtOnce;
  t.k = p.k;
  t.bias = p.bias == nullptr ? 0.0f : LoadGlobal(p.bias + n);
  t.y = p.y + b * p.y_batch + m * p.y_stride + n;
  t.y_stride = p.y_stride;
  RunColumn(t);
}

// Grid: [⌈n/4⌉, experts of the launch]. The rows of an expert are known on the device alone.
LATTE_DEVICE void ExpertGemm(const ExpertGemmParams& p) {
  const int n = BlockX() * kGemmColumns + Warp();
  const int e = BlockY();
  if (n >= p.n || p.w[e] == nullptr) return;
  const int begin = LoadGlobal(p.first + p.begin + e);
  const int end = LoadGlobal(p.first + p.begin + e + 1);
  ColumnTask t = {};
  t.x = p.x;
  t.w = p.w[e];
  t.gate = p.gate[e];
  t.x_stride = p.x_stride;
  t.w_begin = n * p.w_stride;
  t.x_type = p.x_type;
  t.w_type = p.w_type;
  t.k = p.k;
  t.y_stride = p.y_stride;
  for (int m = begin; m < end; m += kRowsAtOnce) {
    t.x_begin = m * p.x_stride;
    t.rows = end - m < kRowsAtOnce ? end - m : kRowsAtOnce;
    t.y = p.y + m * p.y_stride + n;
    RunColumn(t);
  }
}

// Grid: [⌈k/128⌉ · m, b]; a lane a column.
LATTE_DEVICE void GemmT(const GemmTParams& p) {
  const int columns = (p.k + kGemmThreads - 1) / kGemmThreads;
  const int k = BlockX() % columns * kGemmThreads + Thread();
  const int64_t m = BlockX() / columns, b = BlockY();
  if (k >= p.k) return;
  const int64_t x = b * p.x_batch + m * p.x_stride, w = b * p.w_batch + k;
  float sum = 0;
  for (int n = 0; n < p.n; ++n)
    sum =
        Fma(LoadElement(p.x, p.x_type, x + n), LoadElement(p.w, p.w_type, w + n * p.w_stride), sum);
  StoreGlobal(p.y + b * p.y_batch + m * p.y_stride + k, sum);
}

}  // namespace latte::cuda
