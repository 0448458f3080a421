// A × B of any types, computed in f32 (FMA) or bf16 (vdpbf16ps) as the Math of multiply-inl.h says;
// micro-kernel MR × 4 × one vector of K, all ISAs. Three kernels: GemmF32, any M; GemmF32Streams, M
// ≤ MR, for machines with many DRAM streams; DotSequential, small M in bf16.
//
// Packing   A and B are read in place. Types smaller than the arithmetic type are widened on load;
//           for large M a panel of B is widened once into scratch (260 KiB, in the L2).
// Blocking  Panels of 64 rows of B (8 for M ≤ MR) and K blocks of 4 KiB of a row of A. Up to MR
//           rows of A (24 KiB) stay in the L1 while a panel passes. MR = Math::kTileRows.
//
//                         K block                     accumulators
//                A  ┌──────────────┐ L1             B0 B1 B2 B3
//           MR rows │→ operand     │            A0 │ Σ  Σ  Σ  Σ │  MR × 4 registers,
//                   └──────────────┘            A1 │ Σ  Σ  Σ  Σ │  each a vector of partial sums
//                B  ┌──────────────┐            …  │            │
//             panel │→ 4 operands  │ L2
//                   └──────────────┘
// Scales    A K block splits into segments of one scale each. With one segment, the finished sum is
//           scaled. With several, a second accumulator holds scaled sums, so a tile has fewer rows
//           of A (Math::kScaledRows).
// Prefetch  M > MR: the next panel in memory order. Smaller M: a fixed distance ahead in memory
//           order, or, with many DRAM streams, each of several parallel rows its own lines.
// Epilogue  C (+)= sums, the bias after the last K block. int8 A is dequantised to f32 first.
// Order     Segments in order; a fixed tree over the lanes; K blocks in order; the bias last.
// Limits    K > 0; segments of 16 columns or more; scratch 260 KiB.
#pragma once

#include <cstdint>
#include <type_traits>

#include "src/kernels/cpu/blocks/block_weights-inl.h"
#include "src/kernels/cpu/common/multiply-inl.h"
#include "src/kernels/cpu/common/prefetch_weights-inl.h"
#include "src/kernels/cpu/common/scales-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kDotNr = 4;  // NR
constexpr int64_t kPanelN = 64;
constexpr int64_t kSmallMPanelN = 8;  // for M ≤ MR: a panel is read from end to end
template <class Math>
constexpr int64_t kBlockK = 4096 / static_cast<int64_t>(sizeof(typename Math::X));
// Row stride of scratch in elements: an odd number of cache lines, as in ScratchStride.
template <class Math>
constexpr int64_t kBlockStride = kBlockK<Math> +
                                 64 / static_cast<int64_t>(sizeof(typename Math::X));
// Most segments of a K block that begins inside one; a segment has at least 16 columns.
template <class Math>
constexpr int64_t kMaxSegments = kBlockK<Math> / 16 + 16;
template <class Math>
constexpr int64_t kMaxResidentABlocks = (kMaxResidentA + kBlockK<Math> - 1) / kBlockK<Math>;
template <class Math>
using BlockScales = PanelScales<kPanelN, kMaxSegments<Math>>;

// Tiles along M above which widening a panel once is faster than widening it in each tile.
template <class Math, class T>
constexpr int64_t kMinWidenTiles = sizeof(T) == 2 ? 10 : 2;
template <class Math, class T>
constexpr bool kIsWidened = kIsBlock<T> || sizeof(T) < sizeof(typename Math::X);

// Rows of A in the type X of a Math, in place or in scratch.
template <class X>
struct ARows {
  const X* data;
  int64_t stride;
};

// Rows [row_begin, +rows) and columns [k_begin, +k) of B; w points to the first element.
template <class T>
struct Panel {
  const T* w;
  int64_t stride;
  int64_t row_begin, rows;
  int64_t k_begin, k;
  Segments segments;
};

// to = int8 values times the scales of their groups.
template <class V>
void DequantizeRow(const I8* values, const float* scale, int64_t group, int64_t begin,
                   int64_t count, float* to) {
  for (int64_t at = 0; at < count;) {
    const int64_t g = (begin + at) / group;
    const int64_t end = Min(count, (g + 1) * group - begin);
    const typename V::Vec s = V::Set1(scale[g]);
    for (; at < end; at += V::kLanes) {
      const int64_t rest = end - at;
      StoreNext<V>(to + at, V::Mul(LoadNext<V>(values + at, rest), s), rest);
    }
    at = end;
  }
}

// Columns [begin, +count) of rows [m, +rows) of A.
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

// The same for blocks, whole ones from the first on.
template <class Math, int64_t kM, int64_t kN, class T, class X, class Prefetch>
requires kIsBlock<T>
inline void AddDots(const ARows<X> x, const Weights<Math, T> (&w)[kN], int64_t, int64_t end,
                    const Prefetch& prefetch, typename Math::Vec (&sums)[kM][kN]) {
  const T* rows[kN];
  for (int64_t j = 0; j < kN; ++j) rows[j] = w[j].p;
  AddBlockDots<typename Math::Lanes>(x, rows, end, prefetch, sums);
}
// sums[i][j] += x[i, begin:end]·w[j]; calls prefetch(at) at every K step.
template <class Math, int64_t kM, int64_t kN, class T, class X, class Prefetch>
inline void AddDots(const ARows<X> x, const Weights<Math, T> (&w)[kN], int64_t begin, int64_t end,
                    const Prefetch& prefetch, typename Math::Vec (&sums)[kM][kN]) {
  int64_t at = begin;
  for (; at + Math::kStep <= end; at += Math::kStep) {
    prefetch(at);
    typename Math::Operand wide[kN];
    for (int64_t j = 0; j < kN; ++j) wide[j] = w[j].Load(at);
    for (int64_t i = 0; i < kM; ++i) {
      const typename Math::Operand xi = Math::Load(x.data + i * x.stride + at);
      for (int64_t j = 0; j < kN; ++j) sums[i][j] = Math::Dot(sums[i][j], xi, wide[j]);
    }
  }
  if (at == end) return;
  prefetch(at);
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

// The rows of B of a tile. Rows behind the panel repeat its last row.
template <class Math, int64_t kN, class T>
struct TileRows {
  Weights<Math, T> w[kN];
  const float* scale[kN];
  const uint8_t* zero[kN];
};

// total[i][j] = x[i,:]·w[j] over a K block of one segment, without its scale.
template <class Math, int64_t kM, int64_t kN, class T, class Prefetch>
inline void OneSegmentTile(const ARows<typename Math::X>& x, TileRows<Math, kN, T> rows,
                           const Segments& s, const Prefetch& prefetch,
                           typename Math::Vec (&total)[kM][kN]) {
  SetZero<typename Math::Lanes>(total);
  for (int64_t j = 0; j < kN; ++j) rows.w[j].SetZero(rows.zero[j], 0);
  AddDots<Math>(x, rows.w, 0, s.k, prefetch, total);
}

// The same over several segments, with their scales.
template <class Math, int64_t kM, int64_t kN, class T, class Prefetch>
inline void SegmentsTile(const ARows<typename Math::X>& x, TileRows<Math, kN, T> rows,
                         const Segments& s, const Prefetch& prefetch,
                         typename Math::Vec (&total)[kM][kN]) {
  using V = typename Math::Lanes;
  SetZero<V>(total);
  ForEachSegment(s, [&](int64_t segment, int64_t begin, int64_t end) {
    typename Math::Vec acc[kM][kN];
    SetZero<V>(acc);
    for (int64_t j = 0; j < kN; ++j) rows.w[j].SetZero(rows.zero[j], segment);
    AddDots<Math>(x, rows.w, begin, end, prefetch, acc);
    for (int64_t j = 0; j < kN; ++j) {
      const typename Math::Vec scale = V::Set1(rows.scale[j][segment]);
      for (int64_t i = 0; i < kM; ++i) total[i][j] = V::Fma(acc[i][j], scale, total[i][j]);
    }
  });
}

// kScaled: the K block has several segments.
template <bool kScaled, class Math, int64_t kM, int64_t kN, class T, class Prefetch>
inline void BlockTile(const ARows<typename Math::X>& x, const TileRows<Math, kN, T>& rows,
                      const Segments& s, const Prefetch& prefetch,
                      typename Math::Vec (&total)[kM][kN]) {
  if constexpr (kScaled)
    SegmentsTile<Math, kM, kN, T>(x, rows, s, prefetch, total);
  else
    OneSegmentTile<Math, kM, kN, T>(x, rows, s, prefetch, total);
}

// Reduces the lanes; multiplies by the scale of the row if the K block has one segment.
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
  constexpr int64_t kN = kDotNr;
  const bool first = panel.k_begin == 0;
  const bool biased = t.bias != nullptr && panel.k_begin + panel.k == t.k;
  const auto prefetch = [&ahead](int64_t) { ahead.PrefetchNext(); };
  for (int64_t n = 0; n < panel.rows; n += kN) {
    TileRows<Math, kN, T> rows;
    for (int64_t j = 0; j < kN; ++j) {
      const int64_t row = Min(n + j, panel.rows - 1);
      rows.w[j].p = panel.w + row * panel.stride;
      rows.scale[j] = t.grid.scale == nullptr ? nullptr : scales.Row(row);
      rows.zero[j] = t.grid.scale == nullptr ? nullptr : scales.zero[row];
    }
    typename Math::Vec total[kM][kN];
    BlockTile<kScaled, Math, kM, kN, T>(x, rows, panel.segments, prefetch, total);
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
  BlockScales<Math> scales;
};

// to = row n of a panel.
template <class Math, class T>
void WidenPanelRow(const GemmTask& t, const Panel<T>& panel, const BlockScales<Math>& scales,
                   int64_t n, typename Math::X* to) {
  Weights<Math, T> w;
  w.p = panel.w + n * panel.stride;
  if constexpr (kIsBlock<T>) {
    WidenBlocks<typename Math::Lanes>(w.p, panel.k, to);
  } else {
    // The last operand of a segment may store past its end; the next segment overwrites that.
    ForEachSegment(panel.segments, [&](int64_t segment, int64_t begin, int64_t end) {
      w.SetZero(t.grid.scale == nullptr ? nullptr : scales.zero[n], segment);
      for (int64_t at = begin; at < end; at += Math::kStep)
        Math::Store(to + at, at + Math::kStep <= end ? w.Load(at) : w.Partial(at, end - at));
    });
  }
}

template <class Math, bool kScaled, class T>
[[gnu::noinline]] void DotWidenedPanel(const GemmTask& t, const Panel<T>& panel,
                                       const BlockScales<Math>& scales, SequentialPrefetch& ahead) {
  using X = typename Math::X;
  X* const wide = ScratchAs<WidenedScratch<Math>>(t.scratch).wide;
  for (int64_t n = 0; n < panel.rows; ++n)
    WidenPanelRow<Math>(t, panel, scales, n, wide + n * kBlockStride<Math>);
  DotPanel<Math, kScaled, X>(t,
                             {wide, kBlockStride<Math>, panel.row_begin, panel.rows, panel.k_begin,
                              panel.k, panel.segments},
                             scales, ahead);
}

template <class Math, bool kScaled, class T>
void DotBlock(const GemmTask& t, const Panel<T>& panel, const BlockScales<Math>& scales,
              SequentialPrefetch& ahead) {
  constexpr int64_t kRows = kScaled ? Math::kScaledRows : Math::kTileRows;
  if constexpr (kIsWidened<Math, T>) {
    if (t.m > kMinWidenTiles<Math, T> * kRows)
      return DotWidenedPanel<Math, kScaled, T>(t, panel, scales, ahead);
  }
  DotPanel<Math, kScaled, T>(t, panel, scales, ahead);
}

// K steps of `rows` rows of B times all of A, over the columns of `segments`.
template <class Math, class T>
int64_t StepsOf(const GemmTask& t, int64_t rows, const Segments& s) {
  const int64_t tile = s.count > 1 ? Math::kScaledRows : Math::kTileRows;
  return (t.m + tile - 1) / tile * ((rows + 3) / 4) *
         ((s.k + PrefetchStep<Math, T>() - 1) / PrefetchStep<Math, T>());
}

// Loops over panels of B and K blocks; each block prefetches the next one.
template <class Math, class T>
void DotPanels(const GemmTask& t, const T* w, BlockScales<Math>& scales) {
  const bool small_m = t.m <= Math::kTileRows;
  const int64_t panel_rows = small_m ? kSmallMPanelN : kPanelN;
  for (int64_t n = 0; n < t.n; n += panel_rows) {
    const int64_t rows = Min(panel_rows, t.n - n);
    SequentialPrefetch ahead;
    if (small_m)
      ahead = SequentialPrefetchOf<T>(t, n + rows, panel_rows, 0, t.k, t.tuning->prefetch_level,
                                      StepsOf<Math, T>(t, rows, SegmentsOf(t.grid, 0, t.k)));
    for (int64_t k = 0; k < t.k; k += kBlockK<Math>) {
      const int64_t columns = Min(kBlockK<Math>, t.k - k);
      const Segments segments = SegmentsOf(t.grid, k, columns);
      const int64_t next = k + columns;
      if (!small_m)
        ahead = SequentialPrefetchOf<T>(
            t, next < t.k ? n : n + rows, panel_rows, next < t.k ? next : 0, kBlockK<Math>,
            t.tuning->prefetch_level, StepsOf<Math, T>(t, rows, segments));
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

// Small M: one row of B at a time, in memory order; B has no scales.
template <class Math, int64_t kM, class T>
void DotSequential(const GemmTask& t, const T* w) {
  using V = typename Math::Lanes;
  const int64_t blocks = (t.k + kBlockK<Math> - 1) / kBlockK<Math>;
  const auto begin_of = [](int64_t b) { return b * kBlockK<Math>; };
  const CacheLevel level = t.tuning->prefetch_level;
  const PrefetchDistance distance = SequentialDistanceOf<T>(t);
  const auto total = [&](int64_t n, int64_t b, typename V::Vec(&to)[kM]) {
    const int64_t k = Min(kBlockK<Math>, t.k - begin_of(b));
    const ARows<typename Math::X> x =
        ABlockOf<Math>(t, 0, kM, begin_of(b), k, static_cast<typename Math::X*>(nullptr));
    TileRows<Math, 1, T> row = {};
    row.w[0].p = w + n * t.w_stride + begin_of(b);
    const int64_t byte = ByteAt<T>(t, n, begin_of(b));
    TouchMemoryPagesAhead<T>(t, distance, byte, BytesOf<T>(k));
    const auto prefetch = [&row, level, ahead = distance.At(byte)](int64_t at) {
      Prefetch(row.w[0].p + at, ahead, level);
    };
    typename Math::Vec sums[kM][1];
    OneSegmentTile<Math, kM, 1, T>(x, row, {k, k, k, 1}, prefetch, sums);
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

// Small M: four rows of B in parallel streams; B has no scales.
template <class Math, int64_t kM, class T, class X>
void DotMultiStream(const GemmTask& t, const T* w, const X* x) {
  constexpr int64_t kN = kDotNr;
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));  // elements
  for (int64_t n = 0; n < t.n; n += kN) {
    const PrefetchDistance distance = StridedDistanceOf<T>(t, n, kN, 0, t.k);
    for (int64_t k = 0; k < t.k; k += kBlockK<Math>) {
      Weights<Math, T> rows[kN];
      for (int64_t j = 0; j < kN; ++j) rows[j].p = w + Min(n + j, t.n - 1) * t.w_stride + k;
      const auto prefetch = [&](int64_t at) {
        if (at % kLine != 0) return;
        const int64_t ahead = distance.At(BytesOf<T>(k + at));
        for (int64_t j = 0; j < kN; ++j) PrefetchL1(rows[j].p + at, ahead);
        asm volatile("");  // g++ 12 removes a lambda that only prefetches
      };
      typename Math::Vec total[kM][kN];
      SetZero<typename Math::Lanes>(total);
      const int64_t columns = Min(kBlockK<Math>, t.k - k);
      AddDots<Math>(ARows<X>{x + k, t.x_stride}, rows, 0, columns, prefetch, total);
      float sums[kM][kN];
      Math::Sum(total, sums);
      const bool biased = t.bias != nullptr && k + columns == t.k;
      for (int64_t i = 0; i < kM; ++i)
        StoreFour(sums[i], biased ? t.bias + n : nullptr, Min(kN, t.n - n), k == 0,
                  t.y + i * t.y_stride + n);
    }
  }
}

// All types of A and B.
template <class V>
void GemmF32(const GemmTask& t) {
  if (IsBlockOperand(t.w_type))
    return WithBlockType(t.w, t.w_type, [&](const auto* w) {
      DotPanels<FloatMath<V>>(t, w, ScratchAs<WidenedScratch<FloatMath<V>>>(t.scratch).scales);
    });
  WithWeightType(t.w, t.w_type, [&]<class T>(const T* w) {
    constexpr bool kTwin = V::kTwinLoads && sizeof(T) == 1;
    using Math = std::conditional_t<kTwin, TwinMath<V>, FloatMath<V>>;
    DotPanels<Math>(t, w, ScratchAs<WidenedScratch<Math>>(t.scratch).scales);
  });
}

// Requires: A and B are f32, bf16 or f16; M ≤ V::kTileRows.
template <class V>
void GemmF32Streams(const GemmTask& t) {
  WithType(t.w, t.w_type, [&](const auto* w) {
    WithType(t.x, t.x_type, [&](const auto* x) {
      WithConstant<V::kTileRows>(
          t.m, [&](auto rows) { DotMultiStream<FloatMath<V>, decltype(rows)::value>(t, w, x); });
    });
  });
}

}  // namespace
}  // namespace latte::cpu
