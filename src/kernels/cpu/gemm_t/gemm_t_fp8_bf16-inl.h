// linear_t of e4m3 weights in blocks of rows that share their scales, multiplied in pairs of bf16.
//
// Work      sums over the rows of a block need no scale; they are scaled once, when it ends. So two
//           rows of W are zipped as they lie, bytes of one beside bytes of the other, looked up as
//           pairs of bf16 and multiplied by a pair of x that is the same for all columns:
//
//             W   rows n, n + 1   │ a b c …     zipped   │ a(n) a(n+1) │ b(n) b(n+1) │ …
//                                               x        │ x(n) x(n+1) │ the same     │ …
//
//           Few rows of x: 16 rows of W, 64 columns at a time, beside all of them; sums of a block
//           stay in the L1, lines are asked for in memory's order, at the end of W those of the
//           product that is next. Many: 64 columns of a block are zipped into scratch once, 16 KiB,
//           and up to six rows of x at a time walk down them with their sums in registers.
// Rounding  that of dot products of pairs (avx512_bf16-inl.h); of each block's sum twice.
// Order     per block of rows of W, pairs of rows in order from zero on, a last one without its
//           second; blocks in order. For every tile, task and thread count.
// Limits    columns and segments as SupportsF8Pairs says; stack 40 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/multiply-inl.h"
#include "src/kernels/cpu/common/prefetch_sequential-inl.h"
#include "src/kernels/cpu/common/scales-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm_t/gemm_t_f32-inl.h"
#include "src/kernels/cpu/gemm_t/prefetch_products-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kPairColumns = 64;  // of W at once: a register of bytes
constexpr int64_t kBlockPairs = 64;   // of rows of W in a block
constexpr int64_t kPairsAtOnce = 8;   // where they lie
constexpr int64_t kPairUnit = 16;     // columns of one scale
constexpr int64_t kPairVectors = kPairColumns / kPairUnit;
constexpr int64_t kPairTaskColumns = 1024;  // whose sums stay in the L1
constexpr int64_t kPairsAheadBytes = 16 << 10;
constexpr int64_t kPairTileRows = 6;  // of x beside zipped rows

// Rows [n, +rows) of W, which share scales; what an even number of them lacks is the last again,
// beside a zero of x.
template <class T>
struct PairBlock {
  const T* w;
  int64_t stride, n, rows;
  bool first;  // of the product

  int64_t pairs() const { return (rows + 1) / 2; }
  const T* Row(int64_t i) const { return w + Min(i, rows - 1) * stride; }
};

// Pairs of one row of x beside the rows of a block.
struct PairInputs {
  alignas(64) BF16 x[2 * kBlockPairs];

  template <class T>
  void Set(const LinearTTask& t, int64_t m, const PairBlock<T>& block) {
    const BF16* const from = static_cast<const BF16*>(t.x) + m * t.x_stride + block.n;
    __builtin_memcpy(x, from, static_cast<uint64_t>(block.rows) * sizeof(BF16));
    if (block.rows % 2 != 0) x[block.rows] = BF16{0};
  }
};

// Scales of a task's columns in the rows of a block, for every kPairUnit columns.
struct PairScales {
  float scale[kPairTaskColumns / kPairUnit];
};

template <class V>
void SetPairScales(const LinearTTask& t, int64_t n, PairScales& to) {
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

// y (+)= sums · scales of 64 columns; sums as ZipRows orders their columns.
template <class V>
void StoreScaled(typename V::Vec (&sums)[kPairVectors], const float* scales, bool first, float* y) {
  V::TurnLanes(sums);
  for (int64_t i = 0; i < kPairVectors; ++i, y += V::kLanes) {
    const typename V::Vec scale = V::Set1(scales[i]);
    V::Store(y, first ? V::Mul(sums[i], scale) : V::Fma(sums[i], scale, V::Load(y)));
  }
}

// sums[m] (+)= pairs [begin, end) of a block's rows, 64 columns from `column` on, times kM rows of
// x. A function of its own, so that sums and tables have all registers.
template <class V, int64_t kM, class T>
[[gnu::noinline]] void AddPairRows(const PairBlock<T>& block, int64_t column, int64_t begin,
                                   int64_t end, const PairInputs* x, LineRuns::Run ahead,
                                   float* sums, int64_t sums_stride) {
  LinesByRow lines(ahead);
  const typename V::ByteTables tables = V::ByteTablesOf(block.w);
  typename V::Vec sum[kM][kPairVectors];
#pragma GCC unroll 4
  for (int64_t m = 0; m < kM; ++m)
#pragma GCC unroll 4
    for (int64_t j = 0; j < kPairVectors; ++j)
      sum[m][j] = begin == 0 ? V::Zero() : V::Load(sums + m * sums_stride + j * V::kLanes);
  for (int64_t pair = begin; pair < end; ++pair) {
    lines.Ask();
    lines.Ask();
    typename V::Pairs w[kPairVectors];
    V::ZipRows(block.Row(2 * pair) + column, block.Row(2 * pair + 1) + column, tables, w);
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

// y (+)= a block times kM rows of x, where W lies.
template <class V, int64_t kM, class T>
void StreamBlock(const LinearTTask& t, const PairBlock<T>& block, const PairScales& scales,
                 ProductLines<T>& ahead) {
  PairInputs x[kM];
  for (int64_t m = 0; m < kM; ++m) x[m].Set(t, m, block);
  alignas(64) float sums[kM * kPairTaskColumns];
  const int64_t chunks = t.k / kPairColumns;
  for (int64_t pair = 0; pair < block.pairs(); pair += kPairsAtOnce) {
    const int64_t end = Min(pair + kPairsAtOnce, block.pairs());
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      AddPairRows<V, kM>(block, chunk * kPairColumns, pair, end, x, ahead.Next(),
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

// y (+)= zipped rows, [pair of rows][vector][lane][2], times kM rows of x.
template <class V, int64_t kM>
[[gnu::noinline]] void ZippedTile(const BF16* zipped, int64_t pairs, const PairInputs* x,
                                  const float* scales, bool first, float* y, int64_t y_stride) {
  typename V::Vec sum[kM][kPairVectors];
  SetZero<V>(sum);
  for (int64_t pair = 0; pair < pairs; ++pair) {
    typename V::Pairs w[kPairVectors];
#pragma GCC unroll 4
    for (int64_t j = 0; j < kPairVectors; ++j, zipped += V::kPairElements)
      w[j] = V::LoadPairs(zipped);
#pragma GCC unroll 6
    for (int64_t m = 0; m < kM; ++m) {
      const typename V::Pairs xm = V::SetPair(x[m].x + 2 * pair);
#pragma GCC unroll 4
      for (int64_t j = 0; j < kPairVectors; ++j) sum[m][j] = V::DotPairs(sum[m][j], xm, w[j]);
    }
  }
  for (int64_t m = 0; m < kM; ++m) StoreScaled<V>(sum[m], scales, first, y + m * y_stride);
}

// y (+)= a block times all rows of x, six at a time.
template <class V, class T>
void ZippedBlock(const LinearTTask& t, const PairBlock<T>& block, const PairScales& scales,
                 ProductLines<T>& ahead) {
  alignas(64) BF16 zipped[kBlockPairs * kPairVectors * V::kPairElements];
  const typename V::ByteTables tables = V::ByteTablesOf(block.w);
  for (int64_t column = 0; column < t.k; column += kPairColumns) {
    BF16* to = zipped;
    for (int64_t pair = 0; pair < block.pairs(); ++pair) {
      typename V::Pairs w[kPairVectors];
      V::ZipRows(block.Row(2 * pair) + column, block.Row(2 * pair + 1) + column, tables, w);
      for (int64_t j = 0; j < kPairVectors; ++j, to += V::kPairElements) V::StorePairs(to, w[j]);
    }
    ForEachRun<kPairTileRows>(t.m, [&](int64_t m, auto count) {
      constexpr int64_t kM = decltype(count)::value;
      const LineRuns::Run lines = ahead.Next();
      for (int64_t i = 0; i < lines.count; ++i) lines.Ask(i);
      asm volatile("");  // as in LinesByRow
      PairInputs x[kM];
      for (int64_t i = 0; i < kM; ++i) x[i].Set(t, m + i, block);
      ZippedTile<V, kM>(zipped, block.pairs(), x, scales.scale + column / kPairUnit, block.first,
                        t.y + m * t.y_stride + column, t.y_stride);
    });
  }
}

// Calls f(block) for runs of rows that share scales, kBlockPairs pairs at most.
template <class T, class F>
void ForEachPairBlock(const LinearTTask& t, const T* w, const F& f) {
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
void MultiplyByColumns(const LinearTTask& t, const T* w) {
  PairScales scales;
  const int64_t chunks = t.k / kPairColumns;
  if (t.m <= kStreamRowsOfX) {
    ProductLines<T> ahead(t, w, 0, t.k, kPairsAheadBytes, 2 * kPairsAtOnce, chunks);
    return ForEachPairBlock(t, w, [&](const PairBlock<T>& block) {
      SetPairScales<V>(t, block.n, scales);
      WithConstant<kStreamRowsOfX>(
          t.m, [&](auto rows) { StreamBlock<V, decltype(rows)::value>(t, block, scales, ahead); });
    });
  }
  int64_t blocks = 0;
  ForEachPairBlock(t, w, [&](const PairBlock<T>&) { ++blocks; });
  const int64_t tiles = (t.m + kPairTileRows - 1) / kPairTileRows;
  // All of the next product while this one is multiplied.
  ProductLines<T> ahead(t, w, 0, t.k, t.n * t.k, t.n, blocks * tiles * chunks);
  ForEachPairBlock(t, w, [&](const PairBlock<T>& block) {
    SetPairScales<V>(t, block.n, scales);
    ZippedBlock<V>(t, block, scales, ahead);
  });
}

template <class V, class T>
void LinearTOfF8(const LinearTTask& task) {
  LinearTTask t = task;
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
void LinearTPairs(const LinearTTask& t) {
  if (t.w_type == Element::kF8) return LinearTOfF8<V, F8>(t);
  LinearTOfF8<V, F8Fnuz>(t);
}

}  // namespace
}  // namespace latte::cpu
