// Loops of kernels for C = A·B (sum over N) whose instruction multiplies pairs: micro-kernel
// M×64×2.
//
// Packing   Two rows of B widen and interleave in registers; a pair of A is broadcast:
//
//             B   rows n, n + 1   │ a b c …     interleaved   │ a(n) a(n+1) │ b(n) b(n+1) │ …
//                                               A             │ x(n) x(n+1) │ the same    │ …
//
// Blocking  M ≤ 4: 16 rows of B × 64 columns at a time; sums of a block of rows stay in the L1.
//           M > 4: 64 columns of a block are interleaved into scratch once for 96 rows of A (16
//           KiB), 6 rows of A at a time.
// Prefetch  B in memory order, then the next product.
// Order     Pairs of rows in order within a block; blocks in order.
//
// A kernel is a type `Dot`:
//
//   Weight                            a value of B
//   Value                             of a widened pair and of A
//   Sum, SumValue                     a register of sums, and one of them in memory
//   Pairs                             a register of widened pairs
//   Scales                            of the rows and columns of a block
//   Row                               of A for a block: `x` [kPairBlockRows], padded with a zero to
//                                     pairs
//   Widener(const Weight*)(p, q, to)  columns [0, 64) of two rows as kPairVectors registers of
//                                     pairs
//   BlockRows(t, n)                   rows of the block at row n of B, at most kPairBlockRows
//   SetScales(t, block, to), SetRow(t, m, block, scales, to)
//   Zero, LoadSum, StoreSum, LoadPairs, StorePairs, Broadcast, Add(sum, w, x)
//   Store(sums, row, scales, column, first, y)    C (+)= the scaled sums of 64 columns
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch_weights-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm_t/gemm_t_f32-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kPairBlockRows = 128;  // most rows of a block
constexpr int64_t kPairColumns = 64;     // of a tile: a register of bytes
constexpr int64_t kPairVectors = 4;
constexpr int64_t kPairRowsAtOnce = 16;           // rows of B of a tile, M ≤ 4
constexpr int64_t kPairMaxK = 1024;               // columns of a pass: their sums stay in the L1
constexpr int64_t kPairPrefetchBytes = 16 << 10;  // prefetch distance in bytes of B
constexpr int64_t kPairMr = 6;                    // for M > 4
constexpr int64_t kPairMaxM = 96;                 // rows of A that are converted together

// Rows [n, +rows) of B. An odd last row pairs with itself and a zero of A.
template <class W>
struct PairBlock {
  const W* w;
  int64_t stride, n, rows;

  int64_t pairs() const { return (rows + 1) / 2; }
  bool first() const { return n == 0; }  // of the product
  const W* Row(int64_t i) const { return w + Min(i, rows - 1) * stride; }
};

// sums[m] (+)= pairs [begin, end) of the rows of a block × 64 columns from `column`, times kM rows
// of A. Not inlined: sums and tables need all registers.
template <class V, class Dot, int64_t kM>
[[gnu::noinline]] void AddPairRows(const PairBlock<typename Dot::Weight>& block, int64_t column,
                                   int64_t begin, int64_t end, const typename Dot::Row* x,
                                   SequentialPrefetch::Run ahead, typename Dot::SumValue* sums,
                                   int64_t sums_stride) {
  SequentialPrefetch::Run lines = ahead;
  const typename Dot::Widener widen(block.w);
  typename Dot::Sum sum[kM][kPairVectors];
#pragma GCC unroll 4
  for (int64_t m = 0; m < kM; ++m)
#pragma GCC unroll 4
    for (int64_t j = 0; j < kPairVectors; ++j)
      sum[m][j] = begin == 0 ? Dot::Zero() : Dot::LoadSum(sums + m * sums_stride + j * V::kLanes);
  for (int64_t pair = begin; pair < end; ++pair) {
    lines.PrefetchNext();
    lines.PrefetchNext();
    typename Dot::Pairs w[kPairVectors];
    widen(block.Row(2 * pair) + column, block.Row(2 * pair + 1) + column, w);
#pragma GCC unroll 4
    for (int64_t m = 0; m < kM; ++m) {
      const typename Dot::Pairs xm = Dot::Broadcast(x[m].x + 2 * pair);
#pragma GCC unroll 4
      for (int64_t j = 0; j < kPairVectors; ++j) sum[m][j] = Dot::Add(sum[m][j], w[j], xm);
    }
  }
#pragma GCC unroll 4
  for (int64_t m = 0; m < kM; ++m)
#pragma GCC unroll 4
    for (int64_t j = 0; j < kPairVectors; ++j)
      Dot::StoreSum(sums + m * sums_stride + j * V::kLanes, sum[m][j]);
}

// C (+)= a block in place times kM rows of A, which are all rows.
template <class V, class Dot, int64_t kM>
void SmallMPairs(const GemmTTask& t, const PairBlock<typename Dot::Weight>& block,
                 const typename Dot::Scales& scales, const typename Dot::Row* x,
                 SequentialPrefetch& weights, SequentialPrefetch& next_scales) {
  alignas(64) typename Dot::SumValue sums[kM * kPairMaxK];
  for (int64_t pair = 0; pair < block.pairs(); pair += kPairRowsAtOnce / 2) {
    const int64_t end = Min(pair + kPairRowsAtOnce / 2, block.pairs());
    for (int64_t column = 0; column < t.k; column += kPairColumns) {
      next_scales.PrefetchNext();
      AddPairRows<V, Dot, kM>(block, column, pair, end, x, weights.Next(), sums + column, t.k);
    }
  }
  for (int64_t m = 0; m < kM; ++m)
    for (int64_t column = 0; column < t.k; column += kPairColumns) {
      typename Dot::Sum sum[kPairVectors];
      for (int64_t j = 0; j < kPairVectors; ++j)
        sum[j] = Dot::LoadSum(sums + m * t.k + column + j * V::kLanes);
      Dot::Store(sum, x[m], scales, column, block.first(), t.y + m * t.y_stride + column);
    }
}

// C (+)= 64 columns of interleaved rows, [pair of rows][register][lane][2], times kM rows of A.
template <class V, class Dot, int64_t kM>
[[gnu::noinline]] void TilePairs(const typename Dot::Value* interleaved,
                                 const PairBlock<typename Dot::Weight>& block,
                                 const typename Dot::Scales& scales, int64_t column,
                                 const typename Dot::Row* x, float* y, int64_t y_stride) {
  typename Dot::Sum sum[kM][kPairVectors];
#pragma GCC unroll 6
  for (int64_t m = 0; m < kM; ++m)
#pragma GCC unroll 4
    for (int64_t j = 0; j < kPairVectors; ++j) sum[m][j] = Dot::Zero();
  for (int64_t pair = 0; pair < block.pairs(); ++pair) {
    typename Dot::Pairs w[kPairVectors];
#pragma GCC unroll 4
    for (int64_t j = 0; j < kPairVectors; ++j, interleaved += 2 * V::kLanes)
      w[j] = Dot::LoadPairs(interleaved);
#pragma GCC unroll 6
    for (int64_t m = 0; m < kM; ++m) {
      const typename Dot::Pairs xm = Dot::Broadcast(x[m].x + 2 * pair);
#pragma GCC unroll 4
      for (int64_t j = 0; j < kPairVectors; ++j) sum[m][j] = Dot::Add(sum[m][j], w[j], xm);
    }
  }
  for (int64_t m = 0; m < kM; ++m)
    Dot::Store(sum[m], x[m], scales, column, block.first(), y + m * y_stride);
}

// C (+)= a block times rows [m, +count) of A, six at a time.
template <class V, class Dot>
void LargeMPairs(const GemmTTask& t, const PairBlock<typename Dot::Weight>& block,
                 const typename Dot::Scales& scales, const typename Dot::Row* x, int64_t m,
                 int64_t count, SequentialPrefetch& weights, SequentialPrefetch& next_scales) {
  alignas(64) typename Dot::Value interleaved[kPairBlockRows * kPairColumns];
  const typename Dot::Widener widen(block.w);
  for (int64_t column = 0; column < t.k; column += kPairColumns) {
    typename Dot::Value* to = interleaved;
    for (int64_t pair = 0; pair < block.pairs(); ++pair) {
      typename Dot::Pairs w[kPairVectors];
      widen(block.Row(2 * pair) + column, block.Row(2 * pair + 1) + column, w);
      for (int64_t j = 0; j < kPairVectors; ++j, to += 2 * V::kLanes) Dot::StorePairs(to, w[j]);
    }
    ForEachRun<kPairMr>(count, [&](int64_t i, auto rows) {
      const SequentialPrefetch::Run lines = weights.Next();
      next_scales.PrefetchNext();
      for (int64_t line = 0; line < lines.count; ++line) lines.PrefetchLine(line);
      asm volatile("");  // g++ 12 removes a loop that only prefetches
      TilePairs<V, Dot, decltype(rows)::value>(interleaved, block, scales, column, x + i,
                                               t.y + (m + i) * t.y_stride + column, t.y_stride);
    });
  }
}

// Calls f(block) for the blocks of rows of B, in order.
template <class Dot, class F>
void ForEachPairBlock(const GemmTTask& t, const typename Dot::Weight* w, const F& f) {
  for (int64_t n = 0; n < t.n;) {
    const int64_t rows = Min(t.n - n, Dot::BlockRows(t, n));
    f(PairBlock<typename Dot::Weight>{w + n * t.w_stride, t.w_stride, n, rows});
    n += rows;
  }
}

// The prefetches of a product, which are spread over its tiles.
template <class Dot>
int64_t PairTiles(const GemmTTask& t, const typename Dot::Weight* w) {
  const int64_t chunks = t.k / kPairColumns;
  if (t.m <= kMaxSmallM) return chunks * ((t.n + kPairRowsAtOnce - 1) / kPairRowsAtOnce);
  int64_t blocks = 0;
  ForEachPairBlock<Dot>(t, w, [&](const auto&) { ++blocks; });
  int64_t tiles = 0;
  for (int64_t m = 0; m < t.m; m += kPairMaxM)
    tiles += (Min(kPairMaxM, t.m - m) + kPairMr - 1) / kPairMr;
  return chunks * blocks * tiles;
}

// Requires: t.k ≤ kPairMaxK.
template <class V, class Dot>
void MultiplyPairs(const GemmTTask& t, const typename Dot::Weight* w) {
  using W = typename Dot::Weight;
  typename Dot::Scales scales;
  typename Dot::Row x[kPairMaxM];
  const bool small_m = t.m <= kMaxSmallM;
  const int64_t steps = PairTiles<Dot>(t, w);
  // M > 4: prefetches all of the next product while this one is multiplied.
  const int64_t ahead = small_m ? RowsAhead<W>(t, t.k, kPairPrefetchBytes, kPairRowsAtOnce) : t.n;
  SequentialPrefetch weights = ProductPrefetchOf(t, w, 0, t.k, ahead, steps);
  SequentialPrefetch next_scales = ProductScalePrefetchOf(t, 0, t.k, steps);
  ForEachPairBlock<Dot>(t, w, [&](const PairBlock<W>& block) {
    Dot::SetScales(t, block, scales);
    for (int64_t m = 0; m < t.m; m += kPairMaxM) {
      const int64_t count = Min(kPairMaxM, t.m - m);
      for (int64_t i = 0; i < count; ++i) Dot::SetRow(t, m + i, block, scales, x[i]);
      if (!small_m) {
        LargeMPairs<V, Dot>(t, block, scales, x, m, count, weights, next_scales);
        continue;
      }
      WithConstant<kMaxSmallM>(t.m, [&](auto rows) {
        SmallMPairs<V, Dot, decltype(rows)::value>(t, block, scales, x, weights, next_scales);
      });
    }
  });
}

// Requires: t.batches is 1, t.w is of Dot::Weight, t.k a multiple of kPairColumns.
template <class V, class Dot>
void GemmTPairs(const GemmTTask& task) {
  using W = typename Dot::Weight;
  GemmTTask t = task;
  for (int64_t begin = 0; begin < task.k; begin += kPairMaxK) {
    t.k = Min(kPairMaxK, task.k - begin);
    t.y = task.y + begin;
    t.grid.column_begin = task.grid.column_begin + begin;
    if (task.next_w != nullptr) t.next_w = static_cast<const W*>(task.next_w) + begin;
    MultiplyPairs<V, Dot>(t, static_cast<const W*>(task.w) + begin);
  }
}

}  // namespace
}  // namespace latte::cpu
