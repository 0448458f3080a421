// any.gemm, any.gemm_t, any.expert_gemm: products in f32 without tensor cores, for every shape and
// type.
//
// Order   gemm: lane l sums columns l, l + 32, … of K in order, a tree adds the lanes. gemm_t: N in
//         order. So M, the batch and the grid change no sum.
// Rounding  a weight with a scale and an int8 activation are each rounded to f32 once, before they
//           are
//         multiplied.
// Tile    gemm: a warp computes one column of y for kRowsAtOnce rows of x.
#pragma once

#include "src/kernels/cuda/common/math.cuh"
#include "src/kernels/cuda/common/reduce.cuh"
#include "src/kernels/cuda/common/weights.cuh"

namespace latte::cuda {

inline constexpr int kGemmThreads = 128;
inline constexpr int kGemmColumns = kGemmThreads / kWarp;  // of y, in a block
inline constexpr int kRowsAtOnce = 8;

// sums[i] = x[m + i,:]·w, for the rows that are there.
LATTE_DEVICE void RowDots(const ActivationParams& x, int64_t b, int64_t m, int rows,
                          const WeightRow& w, int k, float (&sums)[kRowsAtOnce]) {
  LATTE_UNROLL
  for (int i = 0; i < kRowsAtOnce; ++i) sums[i] = 0;
  for (int at = Lane(); at < k; at += kWarp) {
    const float weight = WeightAt(w, at);
    LATTE_UNROLL
    for (int i = 0; i < kRowsAtOnce; ++i)
      if (i < rows) sums[i] = Fma(ActivationAt(RowOf(x, b, m + i), at), weight, sums[i]);
  }
  LATTE_UNROLL
  for (int i = 0; i < kRowsAtOnce; ++i)
    if (i < rows) sums[i] = WarpSum(sums[i]);
}

LATTE_DEVICE float Silu(float z) { return Div(z, Add(1.0f, Exp(-z))); }

// One column of y, of up to kRowsAtOnce rows from row m of x[b] on.
struct ColumnTask {
  int64_t b, m;
  WeightRow w, gate;  // a gate without data: none
  int32_t rows, k;
  float bias;
  float* y;  // row m
  int64_t y_stride;
};

LATTE_DEVICE void RunColumn(const ActivationParams& x, const ColumnTask& t) {
  float sums[kRowsAtOnce];
  RowDots(x, t.b, t.m, t.rows, t.w, t.k, sums);
  if (t.gate.data != nullptr) {
    float gates[kRowsAtOnce];
    RowDots(x, t.b, t.m, t.rows, t.gate, t.k, gates);
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
  if (n >= p.n) return;
  ColumnTask t = {};
  t.b = BlockY();
  t.m = BlockX() / columns * kRowsAtOnce;
  t.w = RowOf(p.w, p.w_layout, t.b, n);
  if (p.gate.data != nullptr) t.gate = RowOf(p.gate, p.gate_layout, t.b, n);
  t.rows = p.m - t.m < kRowsAtOnce ? static_cast<int>(p.m - t.m) : kRowsAtOnce;
  t.k = p.k;
  t.bias = p.bias == nullptr ? 0.0f : LoadGlobal(p.bias + n);
  t.y = p.y + t.b * p.y_batch + t.m * p.y_stride + n;
  t.y_stride = p.y_stride;
  RunColumn(p.x, t);
}

// Grid: [⌈n/4⌉, experts of the launch]. The rows of an expert are known on the device alone.
LATTE_DEVICE void ExpertGemm(const ExpertGemmParams& p) {
  const int n = BlockX() * kGemmColumns + Warp();
  const int e = BlockY();
  if (n >= p.n || p.w[e].data == nullptr) return;
  const int begin = LoadGlobal(p.first + p.begin + e);
  const int end = LoadGlobal(p.first + p.begin + e + 1);
  ColumnTask t = {};
  t.w = RowOf(p.w[e], p.w_layout, 0, n);
  if (p.gate[e].data != nullptr) t.gate = RowOf(p.gate[e], p.gate_layout, 0, n);
  t.k = p.k;
  t.y_stride = p.y_stride;
  for (int m = begin; m < end; m += kRowsAtOnce) {
    t.m = m;
    t.rows = end - m < kRowsAtOnce ? end - m : kRowsAtOnce;
    t.y = p.y + m * p.y_stride + n;
    RunColumn(p.x, t);
  }
}

// Grid: [⌈k/128⌉ · m, b]; a lane a column.
LATTE_DEVICE void GemmT(const GemmTParams& p) {
  const int columns = (p.k + kGemmThreads - 1) / kGemmThreads;
  const int k = BlockX() % columns * kGemmThreads + Thread();
  const int64_t m = BlockX() / columns, b = BlockY();
  if (k >= p.k) return;
  const ActivationRow x = RowOf(p.x, b, m);
  float sum = 0;
  for (int n = 0; n < p.n; ++n)
    sum = Fma(ActivationAt(x, n), WeightAt(RowOf(p.w, p.w_layout, b, n), k), sum);
  StoreGlobal(p.y + b * p.y_batch + m * p.y_stride + k, sum);
}

}  // namespace latte::cuda
