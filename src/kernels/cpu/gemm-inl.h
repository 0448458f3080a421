// linear and linear_t: products of activations with weights that lie as they are in the file.
//
// Work      launch_linear.cc cuts (batch, rows of W, rows of x) into tasks. A task walks W in
// panels of 64
//           rows and K in blocks of 1024; up to kTileRows rows of x lie in L1 (24 KiB) while a
//           panel passes. 16-bit weights are widened as they are loaded, one instruction per
//           vector, or, for many rows of x, once into scratch (260 KiB, in L2) that all of them
//           use.
// Roofline  one row of x: 2 FLOP per weight, bound by memory; from about 20 rows on bound by FMA
//           (24 of them per 10 loads in the AVX-512 tile).
// Order     linear: per block of K one vector of partial sums and a fixed tree; blocks are added in
//           order, the bias last. linear_t: one fused multiply-add per row of W, in order. Both for
//           every tile, task and thread count.
// Limits    K > 0 (linear), N > 0 (linear_t); stack 290 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/element-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/tiles-inl.h"

namespace latte::cpu {
namespace {

constexpr int64_t kBlockK = 1024;
constexpr int64_t kPanelRows = 64;
constexpr int64_t kPanelStride = ScratchStride(kBlockK);
// Tiles of x from which on widening a 16-bit panel first is faster: it costs about as much as
// widening again in ten tiles (measured, Ice Lake).
constexpr int64_t kWidenTiles = 10;
constexpr int64_t kBlockN = 256;  // rows of W per widened panel of linear_t

template <class Task>
const void* XRow(const Task& t, int64_t m) {
  return static_cast<const char*>(t.x) + m * t.x_stride * (t.x_type == Element::kF32 ? 4 : 2);
}

// Rows of activations as f32: in place, or widened into scratch.
struct FloatRows {
  const float* data;
  int64_t stride;
};
template <class V>
FloatRows WidenRows(const void* x, Element type, int64_t x_stride, int64_t rows, int64_t begin,
                    int64_t count, float* scratch) {
  if (type == Element::kF32) return {static_cast<const float*>(x) + begin, x_stride};
  const int64_t stride = ScratchStride(count);
  WithType(x, type, [&](const auto* typed) {
    for (int64_t i = 0; i < rows; ++i)
      WidenRow<V>(typed + i * x_stride + begin, count, scratch + i * stride);
  });
  return {scratch, stride};
}

// Rows [row_begin, +rows) and columns [k_begin, +k) of a task's W; w points to the first element.
template <class W>
struct Panel {
  const W* w;
  int64_t stride;
  int64_t row_begin, rows;
  int64_t k_begin, k;
};

inline void StoreDots(const float* sums, const float* bias, int64_t count, bool first, float* y) {
  for (int64_t j = 0; j < count; ++j) {
    float sum = first ? sums[j] : y[j] + sums[j];
    if (bias != nullptr) sum += bias[j];
    y[j] = sum;
  }
}

template <class V, int64_t kM, int64_t kN, class W>
void DotRows(const LinearTask& t, const Panel<W>& panel, const FloatRows& x, int64_t m) {
  const bool first = panel.k_begin == 0;
  const bool biased = t.bias != nullptr && panel.k_begin + panel.k == t.k;
  for (int64_t n = 0; n < panel.rows; n += kN) {
    const W* rows[kN];
    for (int64_t j = 0; j < kN; ++j)  // a tile over the edge repeats the last row
      rows[j] = panel.w + Min(n + j, panel.rows - 1) * panel.stride;
    float sums[kM][kN];
    DotTile<V, kM, kN>(x.data, x.stride, rows, panel.k, sums);
    const int64_t column = panel.row_begin + n;
    const float* bias = biased ? t.bias + column : nullptr;
    for (int64_t i = 0; i < kM; ++i) {
      float* y = t.y + (m + i) * t.y_stride + column;
      if (panel.rows - n >= kN)
        StoreDots(sums[i], bias, kN, first, y);
      else
        StoreDots(sums[i], bias, panel.rows - n, first, y);
    }
  }
}

template <class V, class W>
void DotPanel(const LinearTask& t, const Panel<W>& panel) {
  alignas(64) float scratch[V::kTileRows * kPanelStride];
  ForEachRun<V::kTileRows>(t.m, [&](int64_t m, auto rows) {
    constexpr int64_t kM = decltype(rows)::value;
    const FloatRows x =
        WidenRows<V>(XRow(t, m), t.x_type, t.x_stride, kM, panel.k_begin, panel.k, scratch);
    // One row of x takes eight rows of W at once: FMA latency hides behind eight sums.
    DotRows<V, kM, kM == 1 ? 8 : 4>(t, panel, x, m);
  });
}

// A function of its own for the stack that only this case needs.
template <class V, class W>
void DotWidenedPanel(const LinearTask& t, const Panel<W>& panel) {
  alignas(64) float wide[kPanelRows * kPanelStride];
  for (int64_t n = 0; n < panel.rows; ++n)
    WidenRow<V>(panel.w + n * panel.stride, panel.k, wide + n * kPanelStride);
  DotPanel<V>(
      t, Panel<float>{wide, kPanelStride, panel.row_begin, panel.rows, panel.k_begin, panel.k});
}

template <class V>
void Linear(const LinearTask& t) {
  WithType(t.w, t.w_type, [&](const auto* w) {
    for (int64_t n = 0; n < t.n; n += kPanelRows)
      for (int64_t k = 0; k < t.k; k += kBlockK) {
        const Panel panel{w + n * t.w_stride + k,   t.w_stride, n,
                          Min(kPanelRows, t.n - n), k,          Min(kBlockK, t.k - k)};
        if (t.m > kWidenTiles * V::kTileRows && t.w_type != Element::kF32)
          DotWidenedPanel<V>(t, panel);
        else
          DotPanel<V>(t, panel);
      }
  });
}

// y[:, k_begin:+k] (+)= the panel's rows, kN vectors wide.
template <class V, int64_t kN, class W>
void OuterPanel(const LinearTTask& t, const Panel<W>& panel) {
  static constexpr float kOnes[] = {1, 1, 1, 1, 1, 1};
  static_assert(sizeof(kOnes) / sizeof(float) >= V::kTileRows);
  alignas(64) float scratch[V::kTileRows * ScratchStride(kBlockN)];
  ForEachRun<kN == 8 ? 1 : V::kTileRows>(t.m, [&](int64_t m, auto rows) {
    constexpr int64_t kM = decltype(rows)::value;
    const FloatRows x =
        WidenRows<V>(XRow(t, m), t.x_type, t.x_stride, kM, panel.row_begin, panel.rows, scratch);
    OuterTile<V, kM, kN>(Outer<W>{x.data, x.stride, panel.w, panel.stride, panel.rows,
                                  panel.row_begin == 0 ? nullptr : kOnes,
                                  t.y + m * t.y_stride + panel.k_begin, t.y_stride},
                         panel.k);
  });
}

template <class V, int64_t kN, class W>
void OuterWidenedPanel(const LinearTTask& t, const Panel<W>& panel) {
  constexpr int64_t kStride = kN * V::kLanes;
  alignas(64) float wide[kBlockN * kStride];
  for (int64_t n = 0; n < panel.rows; ++n)
    WidenRow<V>(panel.w + n * panel.stride, panel.k, wide + n * kStride);
  OuterPanel<V, kN>(
      t, Panel<float>{wide, kStride, panel.row_begin, panel.rows, panel.k_begin, panel.k});
}

// kWide: vectors per column run.
template <class V, int64_t kWide, class W>
void LinearTColumns(const LinearTTask& t, const W* w) {
  ForEachColumnRun<V, kWide>(t.k, [&](int64_t column, auto vectors, int64_t columns) {
    constexpr int64_t kN = decltype(vectors)::value;
    for (int64_t n = 0; n < t.n; n += kBlockN) {
      const Panel panel{w + n * t.w_stride + column, t.w_stride, n,
                        Min(kBlockN, t.n - n),       column,     columns};
      if (t.m > kWidenTiles * V::kTileRows && t.w_type != Element::kF32)
        OuterWidenedPanel<V, kN>(t, panel);
      else
        OuterPanel<V, kN>(t, panel);
    }
  });
}

template <class V>
void LinearT(const LinearTTask& t) {
  WithType(t.w, t.w_type, [&](const auto* w) {
    // One row of x takes eight vectors of columns at once, as in DotPanel.
    if (t.m == 1)
      LinearTColumns<V, 8>(t, w);
    else
      LinearTColumns<V, 4>(t, w);
  });
}

}  // namespace
}  // namespace latte::cpu
