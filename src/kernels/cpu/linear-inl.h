// linear: products of activations with weights that lie as they are in the file.
//
// Work      launch_linear.cc cuts products into tasks. A task walks W in panels of 64 rows and K in
//           blocks of 4 KiB of x; up to kTileRows rows of x lie in L1 (24 KiB) while a panel
//           passes. Weights narrower than x's type become operands as they are loaded, or, for
//           many rows of x, once into scratch (260 KiB, in L2) that all of them use. One tile's
//           rows of x or fewer read W 8 rows at a time from end to end, which memory likes.
//
//                        K block                     sums of a tile
//               x  ┌──────────────┐ L1             W0 W1 W2 W3
//        tile rows │→ operand     │            x0 │ Σ  Σ  Σ  Σ │  kTileRows × 4 registers,
//                  └──────────────┘            x1 │ Σ  Σ  Σ  Σ │  each a vector of partial sums
//               W  ┌──────────────┐            …  │            │
//            panel │→ 4 operands  │ L2
//                  └──────────────┘
// Scales    a block of K falls into segments of one scale each. With several, each sum is two: of
//           the segment, and of segments times their scales, so a tile has half the rows. With one
//           (scales per row), the finished sum is multiplied.
// Rounding  a weight's value without its scale is exact in the type it is multiplied in; sums,
//           scales and their products are f32. Int8 activations in f32 are rounded once more, by
//           their scale.
// Order     per block of K: segments in order, in each one vector of partial sums; a fixed tree
//           over the vector; blocks in order, the bias last. For every tile, task and thread count.
// Limits    K > 0; segments of 16 columns or more; stack 330 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/element-inl.h"
#include "src/kernels/cpu/math-inl.h"
#include "src/kernels/cpu/scales-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/tiles-inl.h"

namespace latte::cpu {
namespace {

constexpr int64_t kPanelRows = 64;
constexpr int64_t kStreamRows = 8;  // rows of W at once for few rows of x
template <class Math>
constexpr int64_t kBlockK = 4096 / static_cast<int64_t>(sizeof(typename Math::X));
// Elements from row to row of scratch: an odd number of cache lines, as ScratchStride.
template <class Math>
constexpr int64_t kBlockStride = kBlockK<Math> +
                                 64 / static_cast<int64_t>(sizeof(typename Math::X));
// Of a block of K that begins inside a segment; segments have 16 columns at least.
template <class Math>
constexpr int64_t kMaxSegments = kBlockK<Math> / 16 + 16;
template <class Math>
using BlockScales = PanelScales<kPanelRows, kMaxSegments<Math>>;

// Tiles of x from which on widening a panel first is faster than widening it in each tile.
template <class Math, class T>
constexpr int64_t kWidenTiles = sizeof(T) == 2 ? 10 : 2;

// Rows of activations as a Math takes them: in place or in scratch.
template <class X>
struct InputRows {
  const X* data;
  int64_t stride;
};

// Rows [row_begin, +rows) and columns [k_begin, +k) of a task's W; w points to the first element.
template <class T>
struct Panel {
  const T* w;
  int64_t stride;
  int64_t row_begin, rows;
  int64_t k_begin, k;
  Segments segments;
  int64_t ahead;  // bytes from a place in this block to the same place in the next one
};

// Eight bits times the scale of their group.
template <class V>
void WidenCodes(const I8* codes, const float* scale, int64_t group, int64_t begin, int64_t count,
                float* to) {
  for (int64_t at = 0; at < count;) {
    const int64_t g = (begin + at) / group;
    const int64_t end = Min(count, (g + 1) * group - begin);
    const typename V::Vec s = V::Set1(scale[g]);
    for (; at < end; at += V::kLanes) {
      const int64_t rest = end - at;
      StoreNext<V>(to + at, V::Mul(LoadNext<V>(codes + at, rest), s), rest);
    }
    at = end;
  }
}

// Columns [begin, +count) of rows [m, +rows) of a task's x.
template <class Math>
InputRows<BF16> InputOf(const LinearTask& t, int64_t m, int64_t, int64_t begin, int64_t, BF16*) {
  return {static_cast<const BF16*>(t.x) + m * t.x_stride + begin, t.x_stride};
}
template <class Math>
InputRows<float> InputOf(const LinearTask& t, int64_t m, int64_t rows, int64_t begin, int64_t count,
                         float* scratch) {
  using V = typename Math::Lanes;
  if (t.x_type == Element::kF32)
    return {static_cast<const float*>(t.x) + m * t.x_stride + begin, t.x_stride};
  for (int64_t i = 0; i < rows; ++i) {
    float* const to = scratch + i * kBlockStride<Math>;
    const int64_t at = (m + i) * t.x_stride + begin;
    if (t.x_type == Element::kI8)
      WidenCodes<V>(static_cast<const I8*>(t.x) + at, t.x_scale + (m + i) * t.x_scale_stride,
                    t.x_group, begin, count, to);
    else
      WithType(t.x, t.x_type, [&](const auto* x) { WidenRow<V>(x + at, count, to); });
  }
  return {scratch, kBlockStride<Math>};
}

// sums[i][j] += x[i, begin:end]·w[j]
template <class Math, int64_t kM, int64_t kN, class T>
inline void AddDots(const InputRows<typename Math::X>& x, const Weights<Math, T> (&w)[kN],
                    int64_t begin, int64_t end, int64_t ahead, typename Math::Vec (&sums)[kM][kN]) {
  int64_t at = begin;
  for (; at + Math::kStep <= end; at += Math::kStep) {
    if constexpr (sizeof(typename Math::X) == 2 || kM == 1)
      for (int64_t j = 0; j < kN && ahead != 0; ++j) Prefetch(w[j].p + at / kValuesPer<T>, ahead);
    typename Math::Operand wide[kN];
    for (int64_t j = 0; j < kN; ++j) wide[j] = w[j].Load(at);
    for (int64_t i = 0; i < kM; ++i) {
      const typename Math::Operand xi = Math::Load(x.data + i * x.stride + at);
      for (int64_t j = 0; j < kN; ++j) sums[i][j] = Math::Dot(sums[i][j], xi, wide[j]);
    }
  }
  if (at == end) return;
  typename Math::Operand wide[kN];
  for (int64_t j = 0; j < kN; ++j) wide[j] = w[j].Partial(at, end - at);
  for (int64_t i = 0; i < kM; ++i) {
    const typename Math::Operand xi = Math::Partial(x.data + i * x.stride + at, end - at);
    for (int64_t j = 0; j < kN; ++j) sums[i][j] = Math::Dot(sums[i][j], xi, wide[j]);
  }
}

template <class V, int64_t kM, int64_t kN>
void SetZero(typename V::Vec (&sums)[kM][kN]) {
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) sums[i][j] = V::Zero();
}

// Rows of a panel from `row` on as a tile takes them; one over the edge repeats the last row.
template <class Math, int64_t kN, class T>
struct TileRows {
  Weights<Math, T> w[kN];
  const float* scale[kN];
  const uint8_t* zero[kN];
};

// A tile whose block is one segment: its scale, if any, is applied to the finished sums.
template <class Math, int64_t kM, int64_t kN, class T>
inline void OneSegmentTile(const InputRows<typename Math::X>& x, TileRows<Math, kN, T> rows,
                           const Segments& s, int64_t ahead, float (&sums)[kM][kN]) {
  using V = typename Math::Lanes;
  typename Math::Vec acc[kM][kN];
  SetZero<V>(acc);
  for (int64_t j = 0; j < kN; ++j) rows.w[j].SetZero(rows.zero[j], 0);
  AddDots<Math, kM, kN, T>(x, rows.w, 0, s.k, ahead, acc);
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; j += 4)
      V::StoreSum4(sums[i] + j, acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]);
  if (rows.scale[0] == nullptr) return;
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) sums[i][j] *= rows.scale[j][0];
}

template <class Math, int64_t kM, int64_t kN, class T>
inline void SegmentsTile(const InputRows<typename Math::X>& x, TileRows<Math, kN, T> rows,
                         const Segments& s, int64_t ahead, float (&sums)[kM][kN]) {
  using V = typename Math::Lanes;
  typename Math::Vec total[kM][kN];
  SetZero<V>(total);
  ForEachSegment(s, [&](int64_t segment, int64_t begin, int64_t end) {
    typename Math::Vec acc[kM][kN];
    SetZero<V>(acc);
    for (int64_t j = 0; j < kN; ++j) rows.w[j].SetZero(rows.zero[j], segment);
    AddDots<Math, kM, kN, T>(x, rows.w, begin, end, ahead, acc);
    for (int64_t j = 0; j < kN; ++j) {
      const typename Math::Vec scale = V::Set1(rows.scale[j][segment]);
      for (int64_t i = 0; i < kM; ++i) total[i][j] = V::Fma(acc[i][j], scale, total[i][j]);
    }
  });
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; j += 4)
      V::StoreSum4(sums[i] + j, total[i][j], total[i][j + 1], total[i][j + 2], total[i][j + 3]);
}

// kScaled: the block has several segments.
template <class Math, bool kScaled, int64_t kM, int64_t kN, class T>
void DotRows(const LinearTask& t, const Panel<T>& panel, const BlockScales<Math>& scales,
             const InputRows<typename Math::X>& x, int64_t m) {
  const bool first = panel.k_begin == 0;
  const bool biased = t.bias != nullptr && panel.k_begin + panel.k == t.k;
  for (int64_t n = 0; n < panel.rows; n += kN) {
    TileRows<Math, kN, T> rows;
    for (int64_t j = 0; j < kN; ++j) {
      const int64_t row = Min(n + j, panel.rows - 1);
      rows.w[j].p = panel.w + row * panel.stride;
      rows.scale[j] = t.grid.scale == nullptr ? nullptr : scales.Row(row);
      rows.zero[j] = t.grid.scale == nullptr ? nullptr : scales.zero[row];
    }
    float sums[kM][kN];
    if constexpr (kScaled)
      SegmentsTile<Math, kM, kN, T>(x, rows, panel.segments, panel.ahead, sums);
    else
      OneSegmentTile<Math, kM, kN, T>(x, rows, panel.segments, panel.ahead, sums);
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

template <class Math, bool kScaled, class T>
void DotPanel(const LinearTask& t, const Panel<T>& panel, const BlockScales<Math>& scales) {
  constexpr int64_t kRows = kScaled ? Math::kScaledRows : Math::kTileRows;
  alignas(64) typename Math::X scratch[kRows * kBlockStride<Math>];
  ForEachRun<kRows>(t.m, [&](int64_t m, auto rows) {
    constexpr int64_t kM = decltype(rows)::value;
    const auto x = InputOf<Math>(t, m, kM, panel.k_begin, panel.k, scratch);
    Panel<T> part = panel;
    if (m > 0) part.ahead = 0;  // the first rows of x asked for the next block
    // One row of x takes eight rows of W at once: latency hides behind eight sums.
    DotRows<Math, kScaled, kM, kM == 1 && !kScaled ? 8 : 4>(t, part, scales, x, m);
  });
}

// A function of its own for the stack that only this case needs.
template <class Math, bool kScaled, class T>
void DotWidenedPanel(const LinearTask& t, const Panel<T>& panel, const BlockScales<Math>& scales) {
  using X = typename Math::X;
  alignas(64) X wide[kPanelRows * kBlockStride<Math>];
  for (int64_t n = 0; n < panel.rows; ++n) {
    Weights<Math, T> w;
    w.p = panel.w + n * panel.stride;
    X* const to = wide + n * kBlockStride<Math>;
    // What a segment's last operand stores behind it is overwritten by the next segment.
    ForEachSegment(panel.segments, [&](int64_t segment, int64_t begin, int64_t end) {
      w.SetZero(t.grid.scale == nullptr ? nullptr : scales.zero[n], segment);
      for (int64_t at = begin; at < end; at += Math::kStep) {
        Prefetch(w.p + at / kValuesPer<T>, panel.ahead);
        Math::Store(to + at, at + Math::kStep <= end ? w.Load(at) : w.Partial(at, end - at));
      }
    });
  }
  DotPanel<Math, kScaled, X>(t,
                             {wide, kBlockStride<Math>, panel.row_begin, panel.rows, panel.k_begin,
                              panel.k, panel.segments, /*ahead=*/0},
                             scales);
}

template <class Math, bool kScaled, class T>
void DotBlock(const LinearTask& t, const Panel<T>& panel, const BlockScales<Math>& scales) {
  constexpr int64_t kRows = kScaled ? Math::kScaledRows : Math::kTileRows;
  if constexpr (sizeof(T) < sizeof(typename Math::X)) {
    if (t.m > kWidenTiles<Math, T> * kRows)
      return DotWidenedPanel<Math, kScaled, T>(t, panel, scales);
  }
  DotPanel<Math, kScaled, T>(t, panel, scales);
}

template <class Math, class T>
void DotTask(const LinearTask& t, const T* w) {
  BlockScales<Math> scales;
  // Widening x again for every few rows of W would cost more than memory likes.
  const bool stream =
      t.m <= Math::kTileRows && (sizeof(typename Math::X) == 2 || t.x_type == Element::kF32);
  const int64_t panel_rows = stream ? kStreamRows : kPanelRows;
  for (int64_t n = 0; n < t.n; n += panel_rows)
    for (int64_t k = 0; k < t.k; k += kBlockK<Math>) {
      const int64_t rows = Min(panel_rows, t.n - n);
      const int64_t columns = Min(kBlockK<Math>, t.k - k);
      const Segments segments = SegmentsOf(t.grid, k, columns);
      const int64_t next =
          k + columns < t.k ? columns / kValuesPer<T> : panel_rows * t.w_stride - k / kValuesPer<T>;
      const Panel<T> panel{
          w + n * t.w_stride + k / kValuesPer<T>, t.w_stride, n, rows, k, columns, segments,
          next * static_cast<int64_t>(sizeof(T))};
      if constexpr (sizeof(T) == 1) {  // others have no scales
        if (t.grid.scale != nullptr)
          LoadScales<typename Math::Lanes>(t.grid, n, rows, k, segments.count, scales);
        if (segments.count > 1) {
          DotBlock<Math, true, T>(t, panel, scales);
          continue;
        }
      }
      DotBlock<Math, false, T>(t, panel, scales);
    }
}

// Any x, any w.
template <class V>
void LinearF32(const LinearTask& t) {
  WithWeightType(t.w, t.w_type, [&](const auto* w) { DotTask<FloatMath<V>>(t, w); });
}

// Requires: t.x is bf16; t.w is bf16 or narrower.
template <class V>
void LinearBf16(const LinearTask& t) {
  if (t.w_type == Element::kBF16) return DotTask<PairMath<V>>(t, static_cast<const BF16*>(t.w));
  WithNarrowType(t.w, t.w_type, [&](const auto* w) { DotTask<PairMath<V>>(t, w); });
}

}  // namespace
}  // namespace latte::cpu
