// linear: products of activations with weights that lie as they are in the file.
//
// Work      launch_gemm.cc cuts products into tasks. A task walks W in panels of 64 rows and K in
//           blocks of 4 KiB of x; up to kTileRows rows of x lie in L1 (24 KiB) while a panel
//           passes. Weights narrower than x's type become operands as they are loaded, or, for
//           many rows of x, once into scratch (260 KiB, in L2) that all of them use. One tile's
//           rows of x that fit into L1 take rows of W one after the other; else lines of the next
//           panel are asked for while this one is multiplied (prefetch_sequential-inl.h). Where memory
//           likes many streams, four rows of W lie side by side (prefetch_strided-inl.h).
//
//                        K block                     sums of a tile
//               x  ┌──────────────┐ L1             W0 W1 W2 W3
//        tile rows │→ operand     │            x0 │ Σ  Σ  Σ  Σ │  kTileRows × 4 registers,
//                  └──────────────┘            x1 │ Σ  Σ  Σ  Σ │  each a vector of partial sums
//               W  ┌──────────────┐            …  │            │
//            panel │→ 4 operands  │ L2
//                  └──────────────┘
// Scales    a block of K falls into segments of one scale each. With several, each sum is two: of
//           the segment, and of segments times their scales. The latter lie in memory, or, of f32,
//           a tile has half the rows. With one (scales per row), the finished sum is multiplied.
// Rounding  a weight's value without its scale is exact in the type it is multiplied in; sums,
//           scales and their products are f32. Int8 activations in f32 are rounded once more, by
//           their scale.
// Order     per block of K: segments in order, in each one vector of partial sums; a fixed tree
//           over the vector; blocks in order, the bias last. For every tile, task and thread count.
// Limits    K > 0; segments of 16 columns or more; scratch 260 KiB.
#pragma once

#include <cstdint>
#include <type_traits>

#include "src/kernels/cpu/common/multiply-inl.h"
#include "src/kernels/cpu/common/prefetch_sequential-inl.h"
#include "src/kernels/cpu/common/prefetch_strided-inl.h"
#include "src/kernels/cpu/common/scales-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kPanelN = 64;
constexpr int64_t kSmallMPanelN = 8;  // rows of W at once for few rows of long x
// Values of x with which rows of W pass one after the other: they should stay in L1.
constexpr int64_t kMaxResidentA = 12 << 10;
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
constexpr int64_t kMaxResidentABlocks = (kMaxResidentA + kBlockK<Math> - 1) / kBlockK<Math>;
template <class Math>
using BlockScales = PanelScales<kPanelN, kMaxSegments<Math>>;

// Tiles of x from which on widening a panel first is faster than widening it in each tile.
template <class Math, class T>
constexpr int64_t kMinWidenTiles = sizeof(T) == 2 ? 10 : 2;

// Rows of activations as a Math takes them: in place or in scratch.
template <class X>
struct ARows {
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
};

// Eight bits times the scale of their group.
template <class V>
void DequantizeRow(const I8* codes, const float* scale, int64_t group, int64_t begin, int64_t count,
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
ARows<BF16> ABlockOf(const GemmTask& t, int64_t m, int64_t, int64_t begin, int64_t, BF16*) {
  return {static_cast<const BF16*>(t.x) + m * t.x_stride + begin, t.x_stride};
}
template <class Math>
ARows<float> ABlockOf(const GemmTask& t, int64_t m, int64_t rows, int64_t begin, int64_t count,
                      float* scratch) {
  using V = typename Math::Lanes;
  if (t.x_type == Element::kF32)
    return {static_cast<const float*>(t.x) + m * t.x_stride + begin, t.x_stride};
  for (int64_t i = 0; i < rows; ++i) {
    float* const to = scratch + i * kBlockStride<Math>;
    const int64_t at = (m + i) * t.x_stride + begin;
    if (t.x_type == Element::kI8)
      DequantizeRow<V>(static_cast<const I8*>(t.x) + at, t.x_scale + (m + i) * t.x_scale_stride,
                       t.x_group, begin, count, to);
    else
      WithType(t.x, t.x_type, [&](const auto* x) { WidenRow<V>(x + at, count, to); });
  }
  return {scratch, kBlockStride<Math>};
}

// sums[i][j] += x[i, begin:end]·w[j]; ask(at) is called at every step.
template <class Math, int64_t kM, int64_t kN, class T, class X, class PrefetchNext>
inline void AddDots(const ARows<X> x, const Weights<Math, T> (&w)[kN], int64_t begin, int64_t end,
                    const PrefetchNext& ask, typename Math::Vec (&sums)[kM][kN]) {
  int64_t at = begin;
  for (; at + Math::kStep <= end; at += Math::kStep) {
    ask(at);
    typename Math::Operand wide[kN];
    for (int64_t j = 0; j < kN; ++j) wide[j] = w[j].Load(at);
    for (int64_t i = 0; i < kM; ++i) {
      const typename Math::Operand xi = Math::Load(x.data + i * x.stride + at);
      for (int64_t j = 0; j < kN; ++j) sums[i][j] = Math::Dot(sums[i][j], xi, wide[j]);
    }
  }
  if (at == end) return;
  ask(at);
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

// total[i][j] = x[i,:]·w[j] over a block of one segment, without its scale.
template <class Math, int64_t kM, int64_t kN, class T, class PrefetchNext>
inline void OneSegmentTile(const ARows<typename Math::X>& x, TileRows<Math, kN, T> rows,
                           const Segments& s, const PrefetchNext& ask,
                           typename Math::Vec (&total)[kM][kN]) {
  SetZero<typename Math::Lanes>(total);
  for (int64_t j = 0; j < kN; ++j) rows.w[j].SetZero(rows.zero[j], 0);
  AddDots<Math>(x, rows.w, 0, s.k, ask, total);
}

// The same of several segments, with their scales.
template <class Math, int64_t kM, int64_t kN, class T, class PrefetchNext>
inline void SegmentsTile(const ARows<typename Math::X>& x, TileRows<Math, kN, T> rows,
                         const Segments& s, const PrefetchNext& ask,
                         typename Math::Vec (&total)[kM][kN]) {
  using V = typename Math::Lanes;
  SetZero<V>(total);
  ForEachSegment(s, [&](int64_t segment, int64_t begin, int64_t end) {
    typename Math::Vec acc[kM][kN];
    SetZero<V>(acc);
    for (int64_t j = 0; j < kN; ++j) rows.w[j].SetZero(rows.zero[j], segment);
    AddDots<Math>(x, rows.w, begin, end, ask, acc);
    for (int64_t j = 0; j < kN; ++j) {
      const typename Math::Vec scale = V::Set1(rows.scale[j][segment]);
      for (int64_t i = 0; i < kM; ++i) total[i][j] = V::Fma(acc[i][j], scale, total[i][j]);
    }
  });
}

// kScaled: the block has several segments.
template <bool kScaled, class Math, int64_t kM, int64_t kN, class T, class PrefetchNext>
inline void BlockTile(const ARows<typename Math::X>& x, const TileRows<Math, kN, T>& rows,
                      const Segments& s, const PrefetchNext& ask,
                      typename Math::Vec (&total)[kM][kN]) {
  if constexpr (kScaled)
    SegmentsTile<Math, kM, kN, T>(x, rows, s, ask, total);
  else
    OneSegmentTile<Math, kM, kN, T>(x, rows, s, ask, total);
}

// Sums of vectors, times the scales of their rows, if there are any, where the block has one each.
template <class Math, bool kScaled, int64_t kM>
inline void SumRows(const typename Math::Vec (&total)[kM][4], const float* const (&scale)[4],
                    float (&sums)[kM][4]) {
  Math::Sum(total, sums);
  if (kScaled || scale[0] == nullptr) return;
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < 4; ++j) sums[i][j] *= scale[j][0];
}

template <class Math, bool kScaled, int64_t kM, class T>
void DotRows(const GemmTask& t, const Panel<T>& panel, const BlockScales<Math>& scales,
             const ARows<typename Math::X>& x, int64_t m, SequentialPrefetch& ahead) {
  constexpr int64_t kN = 4;
  const bool first = panel.k_begin == 0;
  const bool biased = t.bias != nullptr && panel.k_begin + panel.k == t.k;
  const auto ask = [&ahead](int64_t) { ahead.PrefetchNext(); };
  for (int64_t n = 0; n < panel.rows; n += kN) {
    TileRows<Math, kN, T> rows;
    for (int64_t j = 0; j < kN; ++j) {
      const int64_t row = Min(n + j, panel.rows - 1);
      rows.w[j].p = panel.w + row * panel.stride;
      rows.scale[j] = t.grid.scale == nullptr ? nullptr : scales.Row(row);
      rows.zero[j] = t.grid.scale == nullptr ? nullptr : scales.zero[row];
    }
    typename Math::Vec total[kM][kN];
    BlockTile<kScaled, Math, kM, kN, T>(x, rows, panel.segments, ask, total);
    const int64_t column = panel.row_begin + n;
    const float* bias = biased ? t.bias + column : nullptr;
    float sums[kM][kN];
    SumRows<Math, kScaled>(total, rows.scale, sums);
    for (int64_t i = 0; i < kM; ++i)
      StoreFour(sums[i], bias, Min(kN, panel.rows - n), first, t.y + (m + i) * t.y_stride + column);
  }
}

template <class Math, bool kScaled, class T>
void DotPanel(const GemmTask& t, const Panel<T>& panel, const BlockScales<Math>& scales,
              SequentialPrefetch& ahead) {
  constexpr int64_t kRows = kScaled ? Math::kScaledRows : Math::kTileRows;
  alignas(64) typename Math::X scratch[kRows * kBlockStride<Math>];
  ForEachRun<kRows>(t.m, [&](int64_t m, auto rows) {
    constexpr int64_t kM = decltype(rows)::value;
    const auto x = ABlockOf<Math>(t, m, kM, panel.k_begin, panel.k, scratch);
    DotRows<Math, kScaled, kM>(t, panel, scales, x, m, ahead);
  });
}

template <class Math>
struct WidenedScratch {
  alignas(64) typename Math::X wide[kPanelN * kBlockStride<Math>];
};

template <class Math, bool kScaled, class T>
[[gnu::noinline]] void DotWidenedPanel(const GemmTask& t, const Panel<T>& panel,
                                       const BlockScales<Math>& scales, SequentialPrefetch& ahead) {
  using X = typename Math::X;
  X* const wide = ScratchAs<WidenedScratch<Math>>(t.scratch).wide;
  for (int64_t n = 0; n < panel.rows; ++n) {
    Weights<Math, T> w;
    w.p = panel.w + n * panel.stride;
    X* const to = wide + n * kBlockStride<Math>;
    // What a segment's last operand stores behind it is overwritten by the next segment.
    ForEachSegment(panel.segments, [&](int64_t segment, int64_t begin, int64_t end) {
      w.SetZero(t.grid.scale == nullptr ? nullptr : scales.zero[n], segment);
      for (int64_t at = begin; at < end; at += Math::kStep)
        Math::Store(to + at, at + Math::kStep <= end ? w.Load(at) : w.Partial(at, end - at));
    });
  }
  DotPanel<Math, kScaled, X>(t,
                             {wide, kBlockStride<Math>, panel.row_begin, panel.rows, panel.k_begin,
                              panel.k, panel.segments},
                             scales, ahead);
}

template <class Math, bool kScaled, class T>
void DotBlock(const GemmTask& t, const Panel<T>& panel, const BlockScales<Math>& scales,
              SequentialPrefetch& ahead) {
  constexpr int64_t kRows = kScaled ? Math::kScaledRows : Math::kTileRows;
  if constexpr (sizeof(T) < sizeof(typename Math::X)) {
    if (t.m > kMinWidenTiles<Math, T> * kRows)
      return DotWidenedPanel<Math, kScaled, T>(t, panel, scales, ahead);
  }
  DotPanel<Math, kScaled, T>(t, panel, scales, ahead);
}

// Steps in which rows of W and all of x are multiplied, over all columns of `segments`.
template <class Math>
int64_t StepsOf(const GemmTask& t, int64_t rows, const Segments& s) {
  const int64_t tile = s.count > 1 ? Math::kScaledRows : Math::kTileRows;
  return (t.m + tile - 1) / tile * ((rows + 3) / 4) * ((s.k + Math::kStep - 1) / Math::kStep);
}

// Panels of W and blocks of K. Of each block lines of the next one are asked for.
template <class Math, class T>
void DotPanels(const GemmTask& t, const T* w, BlockScales<Math>& scales) {
  // Few rows of x: few rows of W at once, so that they are read from end to end.
  const bool small_m = t.m <= Math::kTileRows;
  const int64_t panel_rows = small_m ? kSmallMPanelN : kPanelN;
  for (int64_t n = 0; n < t.n; n += panel_rows) {
    const int64_t rows = Min(panel_rows, t.n - n);
    SequentialPrefetch ahead;
    if (small_m)
      ahead = SequentialPrefetchOf<T>(t, n + rows, panel_rows, 0, t.k,
                                      StepsOf<Math>(t, rows, SegmentsOf(t.grid, 0, t.k)));
    for (int64_t k = 0; k < t.k; k += kBlockK<Math>) {
      const int64_t columns = Min(kBlockK<Math>, t.k - k);
      const Segments segments = SegmentsOf(t.grid, k, columns);
      const int64_t next = k + columns;
      if (!small_m)
        ahead =
            SequentialPrefetchOf<T>(t, next < t.k ? n : n + rows, panel_rows, next < t.k ? next : 0,
                                    kBlockK<Math>, StepsOf<Math>(t, rows, segments));
      const Panel<T> panel{
          w + n * t.w_stride + k / kValuesPer<T>, t.w_stride, n, rows, k, columns, segments};
      if constexpr (sizeof(T) == 1) {  // others have no scales
        if (t.grid.scale != nullptr)
          LoadScales<typename Math::Lanes>(t.grid, n, rows, k, segments.count, 0, scales);
        if (segments.count > 1) {
          DotBlock<Math, true, T>(t, panel, scales, ahead);
          continue;
        }
      }
      DotBlock<Math, false, T>(t, panel, scales, ahead);
    }
  }
}

// Few rows of x and rows of W one after the other; weights without scales.
template <class Math, int64_t kM, class T>
void DotSequential(const GemmTask& t, const T* w) {
  using V = typename Math::Lanes;
  const int64_t blocks = (t.k + kBlockK<Math> - 1) / kBlockK<Math>;
  const auto begin_of = [](int64_t b) { return b * kBlockK<Math>; };
  const auto total = [&](int64_t n, int64_t b, typename V::Vec(&to)[kM]) {
    const int64_t k = Min(kBlockK<Math>, t.k - begin_of(b));
    const ARows<typename Math::X> x =
        ABlockOf<Math>(t, 0, kM, begin_of(b), k, static_cast<typename Math::X*>(nullptr));
    TileRows<Math, 1, T> row = {};
    row.w[0].p = w + n * t.w_stride + begin_of(b);
    const PrefetchDistance ahead = PrefetchDistanceOf<T>(t, n, begin_of(b));
    ahead.TouchPages(row.w[0].p, k * static_cast<int64_t>(sizeof(T)));
    const auto ask = [&row, ahead](int64_t at) { ahead.PrefetchNext(row.w[0].p + at); };
    typename Math::Vec sums[kM][1];
    OneSegmentTile<Math, kM, 1, T>(x, row, {k, k, k, 1}, ask, sums);
    for (int64_t i = 0; i < kM; ++i) to[i] = sums[i][0];
  };
  const auto finish = [&](int64_t n, int64_t count, int64_t b, int64_t i,
                          const typename V::Vec(&totals)[4]) {
    const typename V::Vec of_row[1][4] = {{totals[0], totals[1], totals[2], totals[3]}};
    float sums[1][4];
    Math::Sum(of_row, sums);
    const bool biased = t.bias != nullptr && b + 1 == blocks;
    StoreFour(sums[0], biased ? t.bias + n : nullptr, count, b == 0, t.y + i * t.y_stride + n);
  };
  ForEachRowSequential<V, kM>(t.n, blocks, total, finish);
}

// Few rows of x and four rows of W side by side; weights without scales.
template <class Math, int64_t kM, class T, class X>
void DotMultiStream(const GemmTask& t, const T* w, const X* x) {
  constexpr int64_t kN = 4;
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));  // elements
  for (int64_t n = 0; n < t.n; n += kN) {
    const StridedPrefetch ahead = StridedPrefetchOf<T>(t, n, kN, 0, t.k);
    for (int64_t k = 0; k < t.k; k += kBlockK<Math>) {
      Weights<Math, T> rows[kN];
      for (int64_t j = 0; j < kN; ++j) rows[j].p = w + Min(n + j, t.n - 1) * t.w_stride + k;
      const auto ask = [&](int64_t at) {
        if (at % kLine != 0) return;
        const int64_t behind = ahead.Of((k + at) * static_cast<int64_t>(sizeof(T)));
        for (int64_t j = 0; j < kN; ++j) PrefetchL1(rows[j].p + at, behind);
        asm volatile("");  // g++ 12 drops a function that does nothing but this
      };
      typename Math::Vec total[kM][kN];
      SetZero<typename Math::Lanes>(total);
      const int64_t columns = Min(kBlockK<Math>, t.k - k);
      AddDots<Math>(ARows<X>{x + k, t.x_stride}, rows, 0, columns, ask, total);
      float sums[kM][kN];
      Math::Sum(total, sums);
      const bool biased = t.bias != nullptr && k + columns == t.k;
      for (int64_t i = 0; i < kM; ++i)
        StoreFour(sums[i], biased ? t.bias + n : nullptr, Min(kN, t.n - n), k == 0,
                  t.y + i * t.y_stride + n);
    }
  }
}

// Calls f with the x of a task if a Math loads it as it is; returns whether it does.
template <class Math, class F>
bool WithFloatA(const GemmTask& t, const F& f) {
  if constexpr (sizeof(typename Math::X) == 2) {
    f(static_cast<const BF16*>(t.x));
    return true;
  } else {
    if (t.x_type == Element::kI8) return false;
    WithType(t.x, t.x_type, f);
    return true;
  }
}

template <class Math, class T>
void DotTask(const GemmTask& t, const T* w) {
  if constexpr (sizeof(T) > 1) {
    if (t.many_dram_streams && t.m <= Math::kTileRows && WithFloatA<Math>(t, [&](const auto* x) {
          WithConstant<Math::kTileRows>(
              t.m, [&](auto rows) { DotMultiStream<Math, decltype(rows)::value>(t, w, x); });
        }))
      return;
  }
  if constexpr (sizeof(typename Math::X) == 2) {
    if (t.m <= Math::kTileRows && t.m * t.k <= kMaxResidentA) {
      return WithConstant<Math::kTileRows>(
          t.m, [&](auto rows) { DotSequential<Math, decltype(rows)::value>(t, w); });
    }
  }
  BlockScales<Math> scales;
  DotPanels<Math>(t, w, scales);
}

// Any x, any w.
template <class V>
void GemmF32(const GemmTask& t) {
  WithWeightType(t.w, t.w_type, [&]<class T>(const T* w) {
    constexpr bool kTwin = V::kTwinLoads && sizeof(T) == 1;
    DotTask<std::conditional_t<kTwin, TwinMath<V>, FloatMath<V>>>(t, w);
  });
}

}  // namespace
}  // namespace latte::cpu
