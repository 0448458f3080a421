// bf16 A × fp8, int8 or 4-bit B, micro-kernel MR ≤ 6 × 8 × 16, vdpbf16ps, AVX512_BF16. Three
// kernels: GemmBf16W8, any M; GemmBf16W8Gemv, M = 1; GemmBf16W8Streams, M ≤ 6.
//
// Packing   B is widened to bf16 on load; for large M a panel is widened and packed once into
//           scratch (290 KiB, in the L2) for tiles of 6 × 4. A is read in place.
// Blocking  Panels and K blocks as in gemm_f32-inl.h. Two rows of B share an accumulator:
//           lanes 0–7 belong to one, 8–15 to the other. A scale group of 128 columns then needs one
//           scaling per 8 dot products.
//
//            step of 16 columns     B0   row 0: k … k+15 │ row 1: k … k+15
//                                   A0   k … k+15        │ the same
//
//           GEMV: A in the L1, 4 rows of B in memory order. Streams: 8 rows of B in parallel, for
//           machines with many DRAM streams. Segments of normal e4m3 values widen in half the
//           instructions.
// Scales    One accumulator per segment and one for scaled segments; a tile of 8 rows keeps the
//           latter in memory. Weights without scales have scale 1.
// Order     Per K block: segments in order, 8 partial sums each (pair i of columns in sum i mod 8);
//           a fixed tree over the 8; K blocks in order; the bias last.
// Limits    as gemm_f32-inl.h.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/multiply-inl.h"
#include "src/kernels/cpu/common/prefetch_weights-inl.h"
#include "src/kernels/cpu/common/scales-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/gemm_bf16_packed_3x8-inl.h"
#include "src/kernels/cpu/gemm/gemm_bf16_w8_operands-inl.h"
#include "src/kernels/cpu/gemm/gemm_f32-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kRowPairs = 4;      // registers of two rows of B in a tile that reads B in place
constexpr int64_t kGemvRowPairs = 2;  // the same for M = 1
// Most accumulators of a tile that leave registers for as many scaled ones.
constexpr int64_t kMaxSumsInRegisters = 12;

// sums[i][j] = x[i,begin:end]·(two rows j); calls prefetch(at) at every K step.
template <class V, int64_t kM, int64_t kN, class Rows, class Prefetch>
[[gnu::always_inline]] inline void AddSegment(const ARows<BF16>& x, const Rows& rows, int64_t begin,
                                              int64_t end, const Prefetch& prefetch,
                                              typename V::Vec (&sums)[kM][kN]) {
  SetZero<V>(sums);
  int64_t at = begin;
  for (; at + kRowStep<V> <= end; at += kRowStep<V>) {
    prefetch(at);
    typename V::Pairs w[kN];
    for (int64_t j = 0; j < kN; ++j) w[j] = rows.Load(j, at);
    for (int64_t i = 0; i < kM; ++i) {
      const typename V::Pairs xi = V::LoadSame(x.data + i * x.stride + at);
      for (int64_t j = 0; j < kN; ++j) sums[i][j] = V::DotPairs(sums[i][j], xi, w[j]);
    }
  }
  if (at == end) return;
  prefetch(at);
  typename V::Pairs w[kN];
  for (int64_t j = 0; j < kN; ++j) w[j] = rows.Partial(j, at, end - at);
  for (int64_t i = 0; i < kM; ++i) {
    const typename V::Pairs xi = V::LoadSamePartial(x.data + i * x.stride + at, end - at);
    for (int64_t j = 0; j < kN; ++j) sums[i][j] = V::DotPairs(sums[i][j], xi, w[j]);
  }
}

// The same, two K steps at a time.
template <class V, int64_t kM, int64_t kN, class Rows, class Prefetch>
[[gnu::always_inline]] inline void AddTwoSteps(const ARows<BF16>& x, const Rows& rows,
                                               int64_t begin, int64_t end, const Prefetch& prefetch,
                                               typename V::Vec (&sums)[kM][kN]) {
  constexpr int64_t kStep = kRowStep<V>;
  SetZero<V>(sums);
  for (int64_t at = begin; at < end; at += 2 * kStep) {
    prefetch(at);
    prefetch(at + kStep);
    for (int64_t j = 0; j < kN; ++j) {
      const auto [first, second] = rows.LoadBoth(j, at);
      for (int64_t i = 0; i < kM; ++i) {
        const BF16* const xi = x.data + i * x.stride + at;
        sums[i][j] = V::DotPairs(sums[i][j], V::LoadSame(xi), first);
        sums[i][j] = V::DotPairs(sums[i][j], V::LoadSame(xi + kStep), second);
      }
    }
  }
}

// The same with the fastest operands that the values of the segment allow.
template <class V, int64_t kM, int64_t kN, class Rows, class Prefetch>
[[gnu::always_inline]] inline void AddOperands(const ARows<BF16>& x, const Rows& rows,
                                               int64_t begin, int64_t end, const Prefetch& prefetch,
                                               typename V::Vec (&sums)[kM][kN]) {
  rows.template WithOperands<kM * kN>(
      begin, end, [&](const auto& operands) __attribute__((always_inline)) {
        if constexpr (requires { operands.LoadBoth(0, begin); })
          AddTwoSteps<V>(x, operands, begin, end, prefetch, sums);
        else
          AddSegment<V>(x, operands, begin, end, prefetch, sums);
      });
}

// totals[i][j] = x[i,:]·(two rows j) over a K block, with scales. Calls prefetch_segment() once per
// segment and prefetch(at) once per K step. A large tile keeps its totals in memory: g++ 12 must
// not know the address, or it keeps some totals in registers and spills sums of the segment.
template <class V, int64_t kM, int64_t kN, class Rows, class PrefetchSegment, class Prefetch>
[[gnu::always_inline]] inline void TileBf16W8(const ARows<BF16>& x, Rows rows, const Segments& s,
                                              const PrefetchSegment& prefetch_segment,
                                              const Prefetch& prefetch,
                                              float (&totals)[kM][kN][V::kLanes]) {
  const auto start = [&](int64_t segment, int64_t begin, int64_t end) {
    prefetch_segment();
    rows.StartSegment(segment, begin, end);
  };
  const auto scale = [&](int64_t j, int64_t segment) {
    return V::SetHalves(rows.scale[2 * j] + segment, rows.scale[2 * j + 1] + segment);
  };
  if constexpr (kM * kN > kMaxSumsInRegisters) {
    float(*to)[kN][V::kLanes] = totals;
    asm("" : "+r"(to) : : "memory");
    for (int64_t i = 0; i < kM; ++i)
      for (int64_t j = 0; j < kN; ++j) V::Store(to[i][j], V::Zero());
    ForEachSegment(s, [&](int64_t segment, int64_t begin, int64_t end) {
      start(segment, begin, end);
      typename V::Vec sums[kM][kN];
      AddOperands<V>(x, rows, begin, end, prefetch, sums);
      for (int64_t j = 0; j < kN; ++j) {
        const typename V::Vec sj = scale(j, segment);
        for (int64_t i = 0; i < kM; ++i)
          V::Store(to[i][j], V::Fma(sums[i][j], sj, V::Load(to[i][j])));
      }
    });
  } else {
    typename V::Vec total[kM][kN];
    SetZero<V>(total);
    ForEachSegment(s, [&](int64_t segment, int64_t begin, int64_t end) {
      start(segment, begin, end);
      typename V::Vec sums[kM][kN];
      AddOperands<V>(x, rows, begin, end, prefetch, sums);
      for (int64_t j = 0; j < kN; ++j) {
        const typename V::Vec sj = scale(j, segment);
        for (int64_t i = 0; i < kM; ++i) total[i][j] = V::Fma(sums[i][j], sj, total[i][j]);
      }
    });
    for (int64_t i = 0; i < kM; ++i)
      for (int64_t j = 0; j < kN; ++j) V::Store(totals[i][j], total[i][j]);
  }
}

// Stores C of row m of A and 2·kN rows of the panel from row n.
template <class V, int64_t kN, class T>
inline void StoreTotals(const GemmTask& t, const Panel<T>& panel, int64_t m, int64_t n,
                        const float (&totals)[kN][V::kLanes]) {
  const bool biased = t.bias != nullptr && panel.k_begin + panel.k == t.k;
  const int64_t column = panel.row_begin + n;
  const float* const bias = biased ? t.bias + column : nullptr;
  const bool first = panel.k_begin == 0;
  float* const y = t.y + m * t.y_stride + column;
  typename V::Vec total[kN];
  for (int64_t j = 0; j < kN; ++j) total[j] = V::Load(totals[j]);
  float sums[2 * kN];
  V::StoreHalfSums(sums, total);
  if (panel.rows - n >= 2 * kN)
    StoreDots(sums, bias, 2 * kN, first, y);
  else
    StoreDots(sums, bias, panel.rows - n, first, y);
}

inline ARows<BF16> AAt(const GemmTask& t, int64_t m, int64_t k) {
  return {static_cast<const BF16*>(t.x) + m * t.x_stride + k, t.x_stride};
}

template <class V, class T>
void PanelBf16W8(const GemmTask& t, const Panel<T>& panel, const W8Scales<V>& scales,
                 SequentialPrefetch& ahead) {
  ForEachRun<V::kTileRows>(t.m, [&](int64_t m, auto count) {
    constexpr int64_t kM = decltype(count)::value;
    const ARows<BF16> x = AAt(t, m, panel.k_begin);
    for (int64_t n = 0; n < panel.rows; n += 2 * kRowPairs) {
      const BInPlace<V, kRowPairs, T> rows(panel, scales, n, 0);
      alignas(64) float totals[kM][kRowPairs][V::kLanes];
      TileBf16W8<V>(
          x, rows, panel.segments, [] {}, [&](int64_t) { ahead.PrefetchNext(); }, totals);
      for (int64_t i = 0; i < kM; ++i) StoreTotals<V>(t, panel, m + i, n, totals[i]);
    }
  });
}

// Packs the rows of a tile from row n as [step, two rows, column, pair].
template <class V, class T>
void PackWidenedRows(const Panel<T>& panel, const W8Scales<V>& scales, int64_t n, BF16* to) {
  BInPlace<V, kWidenedRowPairs, T> rows(panel, scales, n, 0);
  constexpr int64_t kStep = kWidenedRowPairs * V::kPairElements;
  const auto tables = V::ByteTablesOf(panel.w);
  ForEachSegment(panel.segments, [&](int64_t segment, int64_t begin, int64_t end) {
    rows.StartSegment(segment, begin, end);
    int64_t at = begin;
    if constexpr (kIsF8<T>)
      for (; at + 2 * kRowStep<V> <= end; at += 2 * kRowStep<V>, to += 2 * kStep)
        for (int64_t j = 0; j < kWidenedRowPairs; ++j) {
          const auto [first, second] =
              V::LoadTwoTwice(rows.w[j].first + at, rows.w[j].second + at, tables);
          V::StorePairs(to + j * V::kPairElements, first);
          V::StorePairs(to + kStep + j * V::kPairElements, second);
        }
    for (; at < end; at += kRowStep<V>)
      for (int64_t j = 0; j < kWidenedRowPairs; ++j, to += V::kPairElements)
        V::StorePairs(to,
                      at + kRowStep<V> <= end ? rows.Load(j, at) : rows.Partial(j, at, end - at));
  });
}

template <class V>
struct WidenedW8Scratch {
  alignas(64) BF16 wide[kPanelN / (2 * kWidenedRowPairs) * kWidenedRows<V>];
};

template <class V, class T>
[[gnu::noinline]] void WidenedPanelBf16W8(const GemmTask& t, const Panel<T>& panel,
                                          const W8Scales<V>& scales, SequentialPrefetch& ahead) {
  constexpr int64_t kRows = 2 * kWidenedRowPairs;
  BF16* const wide = ScratchAs<WidenedW8Scratch<V>>(t.scratch).wide;
  for (int64_t n = 0; n < panel.rows; n += kRows)
    PackWidenedRows<V>(panel, scales, n, wide + n / kRows * kWidenedRows<V>);
  ForEachRun<V::kTileRows>(t.m, [&](int64_t m, auto count) {
    constexpr int64_t kM = decltype(count)::value;
    const ARows<BF16> x = AAt(t, m, panel.k_begin);
    for (int64_t n = 0; n < panel.rows; n += kRows) {
      const float* scale[kRows];
      for (int64_t j = 0; j < kRows; ++j) scale[j] = scales.Row(Min(n + j, panel.rows - 1));
      const BWidened<V> rows{wide + n / kRows * kWidenedRows<V>, nullptr, scale};
      alignas(64) float totals[kM][kWidenedRowPairs][V::kLanes];
      TileBf16W8<V>(
          x, rows, panel.segments, [&] { ahead.PrefetchNext(); }, [](int64_t) {}, totals);
      for (int64_t i = 0; i < kM; ++i) StoreTotals<V>(t, panel, m + i, n, totals[i]);
    }
  });
}

// Loads the scales of `rows` rows of a K block to rows from to_row.
template <class V>
void SetScales(const GemmTask& t, int64_t row_begin, int64_t rows, int64_t k_begin, int64_t count,
               int64_t to_row, W8Scales<V>& to) {
  if (t.grid.scale != nullptr)
    return LoadScales<V>(t.grid, row_begin, rows, k_begin, count, to_row, to);
  float* const one = to.Own(to_row);
  *one = 1;
  for (int64_t i = to_row; i < to_row + rows; ++i) {
    to.row[i] = one;
    to.zero[i] = nullptr;
  }
}

template <class V>
int64_t RowSteps(const Segments& s) {
  int64_t steps = 0;
  ForEachSegment(s, [&](int64_t, int64_t begin, int64_t end) {
    steps += (end - begin + kRowStep<V> - 1) / kRowStep<V>;
  });
  return steps;
}

// Loops over panels of B and K blocks, as DotPanels does.
template <class V, class T>
void PanelsBf16W8(const GemmTask& t, const T* w, W8Scales<V>& scales) {
  constexpr int64_t kBlock = kBlockK<PairMath<V>>;
  const bool small_m = t.m <= V::kTileRows;
  const int64_t tiles = (t.m + V::kTileRows - 1) / V::kTileRows;
  const auto prefetches = [tiles](int64_t rows, int64_t tile_rows, int64_t tile_sums) {
    return tiles * ((rows + tile_rows - 1) / tile_rows) * tile_sums;
  };
  const int64_t panel_rows = small_m ? kSmallMPanelN : kPanelN;
  for (int64_t n = 0; n < t.n; n += panel_rows) {
    const int64_t rows = Min(panel_rows, t.n - n);
    SequentialPrefetch ahead;
    if (small_m)
      ahead = SequentialPrefetchOf<T>(
          t, n + rows, panel_rows, 0, t.k, t.tuning->prefetch_level,
          prefetches(rows, 2 * kRowPairs, RowSteps<V>(SegmentsOf(t.grid, 0, t.k))));
    for (int64_t k = 0; k < t.k; k += kBlock) {
      const int64_t columns = Min(kBlock, t.k - k);
      const Segments segments = SegmentsOf(t.grid, k, columns);
      const int64_t steps = RowSteps<V>(segments);
      const bool widen = tiles > kMinWidenTiles<PairMath<V>, T> && steps <= kWidenedSteps;
      const int64_t next = k + columns;
      if (!small_m)
        ahead =
            SequentialPrefetchOf<T>(t, next < t.k ? n : n + rows, panel_rows, next < t.k ? next : 0,
                                    kBlock, t.tuning->prefetch_level,
                                    widen ? prefetches(rows, 2 * kWidenedRowPairs, segments.count)
                                          : prefetches(rows, 2 * kRowPairs, steps));
      const Panel<T> panel{
          w + n * t.w_stride + k / kValuesPer<T>, t.w_stride, n, rows, k, columns, segments};
      SetScales<V>(t, n, rows, k, segments.count, 0, scales);
      if (widen)
        WidenedPanelBf16W8<V, T>(t, panel, scales, ahead);
      else
        PanelBf16W8<V, T>(t, panel, scales, ahead);
    }
  }
}

// Totals of one row of A and 2·kGemvRowPairs rows of a panel; prefetches in the memory order of
// these rows, `ahead` bytes ahead of `from`. Not inlined: the lookup tables need all registers.
template <class V, class T>
[[gnu::noinline]] void TileGemvBf16W8(const ARows<BF16>& x,
                                      const BInPlace<V, kGemvRowPairs, T>& rows, const Segments& s,
                                      const T* from, int64_t ahead, CacheLevel level,
                                      float (&totals)[1][kGemvRowPairs][V::kLanes]) {
  const auto prefetch = [=](int64_t k) {
    Prefetch(from + 2 * kGemvRowPairs * k / kValuesPer<T>, ahead, level);
  };
  TileBf16W8<V>(
      x, rows, s, [] {}, prefetch, totals);
}

// M = 1: four rows of B at a time in memory order, as DotSequential does.
template <class V, class T>
void GemvBf16W8(const GemmTask& t, const T* w, W8Scales<V>& scales) {
  constexpr int64_t kBlock = kBlockK<PairMath<V>>;
  constexpr int64_t kRows = 2 * kGemvRowPairs;
  const int64_t blocks = (t.k + kBlock - 1) / kBlock;
  const PrefetchDistance distance = SequentialDistanceOf<T>(t, kRows);
  const int64_t panel_rows = kPanelN / blocks / kRows * kRows;
  for (int64_t n = 0; n < t.n; n += panel_rows) {
    const int64_t rows = Min(panel_rows, t.n - n);
    Panel<T> panel[kMaxResidentABlocks<PairMath<V>>];
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t k = b * kBlock;
      const int64_t columns = Min(kBlock, t.k - k);
      panel[b] = {w + n * t.w_stride + k / kValuesPer<T>, t.w_stride, n, rows, k, columns,
                  SegmentsOf(t.grid, k, columns)};
      SetScales<V>(t, n, rows, k, panel[b].segments.count, b * panel_rows, scales);
    }
    for (int64_t row = 0; row < rows; row += kRows)
      for (int64_t b = 0; b < blocks; ++b) {
        const BInPlace<V, kGemvRowPairs, T> source(panel[b], scales, row, b * panel_rows);
        const int64_t before = kRows * panel[b].k_begin;
        alignas(64) float totals[1][kGemvRowPairs][V::kLanes];
        TileGemvBf16W8<V>(AAt(t, 0, panel[b].k_begin), source, panel[b].segments,
                          w + (n + row) * t.w_stride + before / kValuesPer<T>,
                          distance.At(ByteAt<T>(t, n + row, before)), t.tuning->prefetch_level,
                          totals);
        StoreTotals<V>(t, panel[b], 0, row, totals[0]);
      }
  }
}

// Totals of kM rows of A and eight rows of a panel. Each row prefetches its own lines; `from` is
// column `k` of the first row. Not inlined, as TileGemvBf16W8.
template <class V, int64_t kM, class T>
[[gnu::noinline]] void TileMultiStreamBf16W8(const ARows<BF16>& x,
                                             const CheckedBInPlace<V, kRowPairs, T>& rows,
                                             const Segments& s, const T* from, int64_t stride,
                                             int64_t k, PrefetchDistance distance,
                                             float (&totals)[kM][kRowPairs][V::kLanes]) {
  constexpr uint64_t kRows = 2 * kRowPairs;
  constexpr int64_t kStepBytes = kRowStep<V> / kValuesPer<T> * static_cast<int64_t>(sizeof(T));
  constexpr uint64_t kSteps = 64 / kStepBytes;  // of a line
  static_assert(kRows % kSteps == 0);
  const auto* const bytes = reinterpret_cast<const char*>(from);
  const auto prefetch = [=](int64_t at) {
    const uint64_t step = static_cast<uint64_t>(at) / kRowStep<V>;
    const auto line = static_cast<int64_t>(step / kSteps * 64);
    const char* row =
        bytes + line + static_cast<int64_t>(step % kSteps * (kRows / kSteps)) * stride;
    const int64_t ahead = distance.At(k + line);
    for (uint64_t i = 0; i < kRows / kSteps; ++i, row += stride) PrefetchL1(row, ahead);
    asm volatile("");  // see DotMultiStream
  };
  TileBf16W8<V>(
      x, rows, s, [] {}, prefetch, totals);
}

// Small M: eight rows of B in parallel streams, as DotMultiStream does.
template <class V, int64_t kM, class T>
void MultiStreamBf16W8(const GemmTask& t, const T* w, W8Scales<V>& scales) {
  constexpr int64_t kBlock = kBlockK<PairMath<V>>;
  constexpr int64_t kRows = 2 * kRowPairs;
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  for (int64_t n = 0; n < t.n; n += kRows) {
    const int64_t rows = Min(kRows, t.n - n);
    const PrefetchDistance distance = StridedDistanceOf<T>(t, n, rows, 0, t.k);
    for (int64_t k = 0; k < t.k; k += kBlock) {
      const int64_t columns = Min(kBlock, t.k - k);
      const Panel<T> panel{w + n * t.w_stride + k / kValuesPer<T>, t.w_stride, n, rows, k, columns,
                           SegmentsOf(t.grid, k, columns)};
      SetScales<V>(t, n, rows, k, panel.segments.count, 0, scales);
      const CheckedBInPlace<V, kRowPairs, T> source(panel, scales, 0, 0);
      alignas(64) float totals[kM][kRowPairs][V::kLanes];
      TileMultiStreamBf16W8<V, kM>(AAt(t, 0, k), source, panel.segments, panel.w,
                                   t.w_stride * kSize, BytesOf<T>(k), distance, totals);
      for (int64_t i = 0; i < kM; ++i) StoreTotals<V>(t, panel, i, 0, totals[i]);
    }
  }
}

// Requires of all: A is bf16; B is fp8, int8 or 4-bit.
template <class V>
void GemmBf16W8(const GemmTask& t) {
  WithNarrowType(t.w, t.w_type, [&](const auto* w) {
    W8Scales<V> scales;
    PanelsBf16W8<V>(t, w, scales);
  });
}

// Requires: M = 1, K ≤ kMaxResidentA.
template <class V>
void GemmBf16W8Gemv(const GemmTask& t) {
  WithNarrowType(t.w, t.w_type, [&](const auto* w) {
    W8Scales<V> scales;
    GemvBf16W8<V>(t, w, scales);
  });
}

// Requires: M ≤ V::kTileRows.
template <class V>
void GemmBf16W8Streams(const GemmTask& t) {
  WithNarrowType(t.w, t.w_type, [&](const auto* w) {
    W8Scales<V> scales;
    WithConstant<V::kTileRows>(
        t.m, [&](auto rows) { MultiStreamBf16W8<V, decltype(rows)::value>(t, w, scales); });
  });
}

}  // namespace
}  // namespace latte::cpu
