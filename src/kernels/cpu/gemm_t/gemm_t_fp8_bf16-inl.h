// bf16 C = A·B with e4m3 B (sum over N), micro-kernel M×64×2, vdpbf16ps, any M, AVX512_BF16 + VBMI.
//
// Packing   Two rows of B interleave bytewise, and a table lookup widens them to bf16 pairs; a pair
//           of A is broadcast:
//
//             B   rows n, n + 1   │ a b c …     interleaved   │ a(n) a(n+1) │ b(n) b(n+1) │ …
//                                               A             │ x(n) x(n+1) │ the same    │ …
//
// Blocking  M ≤ 4: 16 rows of B × 64 columns at a time; sums of a scale block stay in the L1. M >
//           4: 64 columns of a block are interleaved into scratch once (16 KiB), 6 rows of A at a
//           time.
// Prefetch  B in memory order, then the next product.
// Epilogue  Sums over a block of rows that share scales are scaled once, at its end.
// Order     Per block of rows: pairs of rows in order; blocks in order.
// Limits    columns and segments as SupportsFp8Bf16; stack 40 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/multiply-inl.h"
#include "src/kernels/cpu/common/prefetch_weights-inl.h"
#include "src/kernels/cpu/common/scales-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm_t/gemm_t_f32-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kPairColumns = 64;  // of a tile: a register of bytes
constexpr int64_t kBlockPairs = 64;   // most pairs of rows of a block
constexpr int64_t kPairsAtOnce = 8;   // pairs of rows of a tile, M ≤ 4
constexpr int64_t kPairUnit = 16;     // columns of one scale
constexpr int64_t kPairVectors = kPairColumns / kPairUnit;
constexpr int64_t kPairTaskColumns = 1024;  // columns of a pass: their sums stay in the L1
constexpr int64_t kBf16PrefetchBytes = 16 << 10;
constexpr int64_t kBf16Mr = 6;  // for M > 4

// Rows [n, +rows) of B, which share scales. An odd last row pairs with itself and a zero of A.
template <class T>
struct PairBlock {
  const T* w;
  int64_t stride, n, rows;
  bool first;  // of the product

  int64_t pairs() const { return (rows + 1) / 2; }
  const T* Row(int64_t i) const { return w + Min(i, rows - 1) * stride; }
};

// A row of A for the rows of a block, zero-padded to pairs.
struct PairInputs {
  alignas(64) BF16 x[2 * kBlockPairs];

  template <class T>
  void Set(const GemmTTask& t, int64_t m, const PairBlock<T>& block) {
    const BF16* const from = static_cast<const BF16*>(t.x) + m * t.x_stride + block.n;
    __builtin_memcpy(x, from, static_cast<uint64_t>(block.rows) * sizeof(BF16));
    if (block.rows % 2 != 0) x[block.rows] = BF16{0};
  }
};

// Scales of a block, one per kPairUnit columns.
struct PairScales {
  float scale[kPairTaskColumns / kPairUnit];
};

template <class V>
void SetPairScales(const GemmTTask& t, int64_t n, PairScales& to) {
  const int64_t units = t.k / kPairUnit;
  if (t.grid.scale == nullptr) {
    for (int64_t i = 0; i < units; ++i) to.scale[i] = 1;
    return;
  }
  const Segments segments = SegmentsOf(t.grid, 0, t.k);
  float of_segments[kPairTaskColumns / kPairUnit];
  const int64_t at =
      (t.grid.row_begin + n) / t.grid.rows * t.grid.stride + t.grid.column_begin / t.grid.columns;
  WithType(t.grid.scale, t.grid.type,
           [&](const auto* scale) { WidenRow<V>(scale + at, segments.count, of_segments); });
  ForEachSegment(segments, [&](int64_t segment, int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; c += kPairUnit) to.scale[c / kPairUnit] = of_segments[segment];
  });
}

// C (+)= sums · scales of 64 columns; sums have the column order of InterleaveTwoRows.
template <class V>
void StoreScaled(typename V::Vec (&sums)[kPairVectors], const float* scales, bool first, float* y) {
  V::Transpose128(sums);
  for (int64_t i = 0; i < kPairVectors; ++i, y += V::kLanes) {
    const typename V::Vec scale = V::Set1(scales[i]);
    V::Store(y, first ? V::Mul(sums[i], scale) : V::Fma(sums[i], scale, V::Load(y)));
  }
}

// sums[m] (+)= pairs [begin, end) of the rows of a block × 64 columns from `column`, times kM rows of A.
// Not inlined: sums and tables need all registers.
template <class V, int64_t kM, class T>
[[gnu::noinline]] void AddPairRows(const PairBlock<T>& block, int64_t column, int64_t begin,
                                   int64_t end, const PairInputs* x, SequentialPrefetch::Run ahead,
                                   float* sums, int64_t sums_stride) {
  SequentialPrefetch::Run lines = ahead;
  const typename V::ByteTables tables = V::ByteTablesOf(block.w);
  typename V::Vec sum[kM][kPairVectors];
#pragma GCC unroll 4
  for (int64_t m = 0; m < kM; ++m)
#pragma GCC unroll 4
    for (int64_t j = 0; j < kPairVectors; ++j)
      sum[m][j] = begin == 0 ? V::Zero() : V::Load(sums + m * sums_stride + j * V::kLanes);
  for (int64_t pair = begin; pair < end; ++pair) {
    lines.PrefetchNext();
    lines.PrefetchNext();
    typename V::Pairs w[kPairVectors];
    V::InterleaveTwoRows(block.Row(2 * pair) + column, block.Row(2 * pair + 1) + column, tables, w);
#pragma GCC unroll 4
    for (int64_t m = 0; m < kM; ++m) {
      const typename V::Pairs xm = V::SetPair(x[m].x + 2 * pair);
#pragma GCC unroll 4
      for (int64_t j = 0; j < kPairVectors; ++j) sum[m][j] = V::DotPairs(sum[m][j], xm, w[j]);
    }
  }
#pragma GCC unroll 4
  for (int64_t m = 0; m < kM; ++m)
#pragma GCC unroll 4
    for (int64_t j = 0; j < kPairVectors; ++j)
      V::Store(sums + m * sums_stride + j * V::kLanes, sum[m][j]);
}

// C (+)= a block in place times kM rows of A.
template <class V, int64_t kM, class T>
void SmallMBf16(const GemmTTask& t, const PairBlock<T>& block, const PairScales& scales,
                SequentialPrefetch& weights, SequentialPrefetch& next_scales) {
  PairInputs x[kM];
  for (int64_t m = 0; m < kM; ++m) x[m].Set(t, m, block);
  alignas(64) float sums[kM * kPairTaskColumns];
  const int64_t chunks = t.k / kPairColumns;
  for (int64_t pair = 0; pair < block.pairs(); pair += kPairsAtOnce) {
    const int64_t end = Min(pair + kPairsAtOnce, block.pairs());
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      next_scales.PrefetchNext();
      AddPairRows<V, kM>(block, chunk * kPairColumns, pair, end, x, weights.Next(),
                         sums + chunk * kPairColumns, t.k);
    }
  }
  for (int64_t m = 0; m < kM; ++m)
    for (int64_t column = 0; column < t.k; column += kPairColumns) {
      typename V::Vec sum[kPairVectors];
      for (int64_t j = 0; j < kPairVectors; ++j)
        sum[j] = V::Load(sums + m * t.k + column + j * V::kLanes);
      StoreScaled<V>(sum, scales.scale + column / kPairUnit, block.first,
                     t.y + m * t.y_stride + column);
    }
}

// C (+)= interleaved rows, [pair of rows][register][lane][2], times kM rows of A.
template <class V, int64_t kM>
[[gnu::noinline]] void TileBf16Interleaved(const BF16* interleaved, int64_t pairs,
                                           const PairInputs* x, const float* scales, bool first,
                                           float* y, int64_t y_stride) {
  typename V::Vec sum[kM][kPairVectors];
  SetZero<V>(sum);
  for (int64_t pair = 0; pair < pairs; ++pair) {
    typename V::Pairs w[kPairVectors];
#pragma GCC unroll 4
    for (int64_t j = 0; j < kPairVectors; ++j, interleaved += V::kPairElements)
      w[j] = V::LoadPairs(interleaved);
#pragma GCC unroll 6
    for (int64_t m = 0; m < kM; ++m) {
      const typename V::Pairs xm = V::SetPair(x[m].x + 2 * pair);
#pragma GCC unroll 4
      for (int64_t j = 0; j < kPairVectors; ++j) sum[m][j] = V::DotPairs(sum[m][j], xm, w[j]);
    }
  }
  for (int64_t m = 0; m < kM; ++m) StoreScaled<V>(sum[m], scales, first, y + m * y_stride);
}

// C (+)= a block times all rows of A, six at a time.
template <class V, class T>
void LargeMBf16(const GemmTTask& t, const PairBlock<T>& block, const PairScales& scales,
                SequentialPrefetch& weights, SequentialPrefetch& next_scales) {
  alignas(64) BF16 interleaved[kBlockPairs * kPairVectors * V::kPairElements];
  const typename V::ByteTables tables = V::ByteTablesOf(block.w);
  for (int64_t column = 0; column < t.k; column += kPairColumns) {
    BF16* to = interleaved;
    for (int64_t pair = 0; pair < block.pairs(); ++pair) {
      typename V::Pairs w[kPairVectors];
      V::InterleaveTwoRows(block.Row(2 * pair) + column, block.Row(2 * pair + 1) + column, tables,
                           w);
      for (int64_t j = 0; j < kPairVectors; ++j, to += V::kPairElements) V::StorePairs(to, w[j]);
    }
    ForEachRun<kBf16Mr>(t.m, [&](int64_t m, auto count) {
      constexpr int64_t kM = decltype(count)::value;
      const SequentialPrefetch::Run lines = weights.Next();
      next_scales.PrefetchNext();
      for (int64_t i = 0; i < lines.count; ++i) lines.PrefetchLine(i);
      asm volatile("");  // g++ 12 removes a loop that only prefetches
      PairInputs x[kM];
      for (int64_t i = 0; i < kM; ++i) x[i].Set(t, m + i, block);
      TileBf16Interleaved<V, kM>(interleaved, block.pairs(), x, scales.scale + column / kPairUnit,
                                 block.first, t.y + m * t.y_stride + column, t.y_stride);
    });
  }
}

// Calls f(block) for blocks of rows that share scales, at most kBlockPairs pairs.
template <class T, class F>
void ForEachPairBlock(const GemmTTask& t, const T* w, const F& f) {
  for (int64_t n = 0; n < t.n;) {
    int64_t rows = Min(t.n - n, 2 * kBlockPairs);
    if (t.grid.scale != nullptr)
      rows = Min(rows, t.grid.rows - (t.grid.row_begin + n) % t.grid.rows);
    f(PairBlock<T>{w + n * t.w_stride, t.w_stride, n, rows, n == 0});
    n += rows;
  }
}

// Requires: t.k ≤ kPairTaskColumns.
template <class V, class T>
void MultiplyByColumns(const GemmTTask& t, const T* w) {
  PairScales scales;
  const int64_t chunks = t.k / kPairColumns;
  const bool small_m = t.m <= kMaxSmallM;
  int64_t blocks = 0;
  ForEachPairBlock(t, w, [&](const PairBlock<T>&) { ++blocks; });
  // M > 4: prefetches all of the next product while this one is multiplied.
  const int64_t ahead = small_m ? RowsAhead<T>(t, t.k, kBf16PrefetchBytes, 2 * kPairsAtOnce) : t.n;
  const int64_t steps = chunks * (small_m ? (t.n + 2 * kPairsAtOnce - 1) / (2 * kPairsAtOnce)
                                          : blocks * ((t.m + kBf16Mr - 1) / kBf16Mr));
  SequentialPrefetch weights = ProductPrefetchOf(t, w, 0, t.k, ahead, steps);
  SequentialPrefetch next_scales = ProductScalePrefetchOf(t, 0, t.k, steps);
  ForEachPairBlock(t, w, [&](const PairBlock<T>& block) {
    SetPairScales<V>(t, block.n, scales);
    if (!small_m) return LargeMBf16<V>(t, block, scales, weights, next_scales);
    WithConstant<kMaxSmallM>(t.m, [&](auto rows) {
      SmallMBf16<V, decltype(rows)::value>(t, block, scales, weights, next_scales);
    });
  });
}

template <class V, class T>
void GemmTFp8Of(const GemmTTask& task) {
  GemmTTask t = task;
  for (int64_t begin = 0; begin < task.k; begin += kPairTaskColumns) {
    t.k = Min(kPairTaskColumns, task.k - begin);
    t.y = task.y + begin;
    t.grid.column_begin = task.grid.column_begin + begin;
    if (task.next_w != nullptr) t.next_w = static_cast<const T*>(task.next_w) + begin;
    MultiplyByColumns<V>(t, static_cast<const T*>(task.w) + begin);
  }
}

// Requires: t.x is bf16, t.w e4m3; t.batches is 1.
template <class V>
void GemmTFp8Bf16(const GemmTTask& t) {
  if (t.w_type == Element::kF8E4M3) return GemmTFp8Of<V, F8>(t);
  GemmTFp8Of<V, F8Fnuz>(t);
}

}  // namespace
}  // namespace latte::cpu
