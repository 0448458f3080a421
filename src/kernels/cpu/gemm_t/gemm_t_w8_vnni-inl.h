// C = A·B with int8 B, one scale per row (sum over N), micro-kernel M×64×2, vpdpwssd, any M,
// AVX512_VNNI.
//
// Packing   A times the scales of the rows of B becomes fixed point of 15 bits below the largest
//           product of the block. Two rows of B widen to s16 and interleave; a pair of A is
//           broadcast:
//
//             B   rows n, n + 1   │ a b c …     interleaved   │ a(n) a(n+1) │ b(n) b(n+1) │ …
//                                               A             │ x(n) x(n+1) │ the same    │ …
//
// Blocking  M ≤ 4: 16 rows of B × 64 columns at a time; sums of a block of 128 rows stay in the L1.
//           M > 4: 64 columns are interleaved into scratch once (16 KiB), 6 rows of A at a time.
// Prefetch  B in memory order, then the next product.
// Rounding  A·scale to 2^−14 of the power of two not above the largest; the sum of each block
//           is rounded twice to f32.
// Order     Exact within a block of 128 rows of B; blocks in order.
// Limits    columns and scales as SupportsVnni; stack 80 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/fixed_point-inl.h"
#include "src/kernels/cpu/common/prefetch_weights-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm_t/gemm_t_f32-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kS16BlockN = 128;  // rows of a block: as many products fit into s32
constexpr int64_t kS16Columns = 64;  // of a tile
constexpr int64_t kS16Vectors = 4;
constexpr int64_t kS16RowsAtOnce = 16;           // rows of B of a tile, M ≤ 4
constexpr int64_t kS16MaxK = 1024;               // columns of a pass: their sums stay in the L1
constexpr int64_t kS16PrefetchBytes = 16 << 10;  // prefetch distance in bytes of B
constexpr int64_t kS16Mr = 6;                    // for M > 4
constexpr int kS16Bits = 15;

// Rows [n, +rows) of B. An odd last row pairs with itself and a zero of A.
struct S16Block {
  const I8* w;
  int64_t stride, n, rows;

  int64_t pairs() const { return (rows + 1) / 2; }
  const I8* Row(int64_t i) const { return w + Min(i, rows - 1) * stride; }
};

// A row of A times the scales of the rows of a block, in fixed point, and the value of one unit.
struct S16Row {
  alignas(64) int16_t x[kS16BlockN];
  float unit;
};

// scales: of the rows of the block. An odd row count is padded with zero.
template <class V>
void QuantizeS16Row(const GemmTTask& t, int64_t m, const S16Block& block, const float* scales,
                    S16Row& to) {
  alignas(64) float scratch[kS16BlockN];
  const float* const x = FloatInput<V>(t, m, block.n, block.rows, scratch);
  alignas(64) float products[kS16BlockN];
  typename V::Vec largest = V::Zero();
  for (int64_t i = 0; i < block.rows; i += V::kLanes) {
    const int64_t rest = block.rows - i;
    const typename V::Vec product = V::Mul(LoadNext<V>(x + i, rest), LoadNext<V>(scales + i, rest));
    largest = V::MaxMagnitude(largest, product);
    V::Store(products + i, product);
  }
  const FixedPoint point = FixedPointOf<kS16Bits>(V::LargestMagnitude(largest));
  const typename V::Vec by = V::Set1(point.from_float);
  for (int64_t i = 0; i < block.rows; i += V::kLanes)
    V::StoreSignedWords(to.x + i, V::Mul(V::Load(products + i), by));
  to.unit = point.to_float;
}

// Columns [0, 64) of two rows as interleaved s16: of every 32 columns the lower four of each eight
// first, then the upper four. ColumnsInOrder restores the column order of the sums.
template <class V>
[[gnu::always_inline]] inline void InterleaveRowsS16(const I8* p, const I8* q,
                                                     typename V::Ints (&out)[kS16Vectors]) {
#pragma GCC unroll 2
  for (int64_t i = 0; i < 2; ++i) {
    const typename V::Ints first = V::WidenSigned(p + 32 * i);
    const typename V::Ints second = V::WidenSigned(q + 32 * i);
    out[2 * i] = V::InterleaveS16Low(first, second);
    out[2 * i + 1] = V::InterleaveS16High(first, second);
  }
}
template <class V>
[[gnu::always_inline]] inline void ColumnsInOrder(typename V::Ints (&sums)[kS16Vectors]) {
#pragma GCC unroll 2
  for (int64_t i = 0; i < kS16Vectors; i += 2) {
    const typename V::Ints low = V::Interleave128Low(sums[i], sums[i + 1]);
    sums[i + 1] = V::Interleave128High(sums[i], sums[i + 1]);
    sums[i] = low;
  }
}

// C (+)= the sums of 64 columns × unit.
template <class V>
void StoreS16Sums(typename V::Ints (&sums)[kS16Vectors], float unit, bool first, float* y) {
  ColumnsInOrder<V>(sums);
  for (int64_t i = 0; i < kS16Vectors; ++i, y += V::kLanes) {
    const typename V::Vec value = V::Mul(V::ToFloat(sums[i]), V::Set1(unit));
    V::Store(y, first ? value : V::Add(V::Load(y), value));
  }
}

// sums[m] (+)= pairs [begin, end) of the rows of a block × 64 columns from `column`, times kM rows of A.
// Not inlined: the sums need all registers.
template <class V, int64_t kM>
[[gnu::noinline]] void AddS16Rows(const S16Block& block, int64_t column, int64_t begin, int64_t end,
                                  const S16Row* x, SequentialPrefetch::Run ahead, int32_t* sums,
                                  int64_t sums_stride) {
  SequentialPrefetch::Run lines = ahead;
  typename V::Ints sum[kM][kS16Vectors];
#pragma GCC unroll 4
  for (int64_t m = 0; m < kM; ++m)
#pragma GCC unroll 4
    for (int64_t j = 0; j < kS16Vectors; ++j)
      sum[m][j] = begin == 0 ? V::ZeroInts() : V::LoadBytes(sums + m * sums_stride + j * V::kLanes);
  for (int64_t pair = begin; pair < end; ++pair) {
    lines.PrefetchNext();
    lines.PrefetchNext();
    typename V::Ints w[kS16Vectors];
    InterleaveRowsS16<V>(block.Row(2 * pair) + column, block.Row(2 * pair + 1) + column, w);
#pragma GCC unroll 4
    for (int64_t m = 0; m < kM; ++m) {
      const typename V::Ints xm = V::SetFour(x[m].x + 2 * pair);
#pragma GCC unroll 4
      for (int64_t j = 0; j < kS16Vectors; ++j) sum[m][j] = V::DotWords(sum[m][j], w[j], xm);
    }
  }
#pragma GCC unroll 4
  for (int64_t m = 0; m < kM; ++m)
#pragma GCC unroll 4
    for (int64_t j = 0; j < kS16Vectors; ++j)
      V::StoreBytes(sums + m * sums_stride + j * V::kLanes, sum[m][j]);
}

// C (+)= a block in place times all rows of A.
template <class V, int64_t kM>
void SmallMS16(const GemmTTask& t, const S16Block& block, const S16Row* x,
               SequentialPrefetch& weights, SequentialPrefetch& next_scales) {
  alignas(64) int32_t sums[kM * kS16MaxK];
  for (int64_t pair = 0; pair < block.pairs(); pair += kS16RowsAtOnce / 2) {
    const int64_t end = Min(pair + kS16RowsAtOnce / 2, block.pairs());
    for (int64_t column = 0; column < t.k; column += kS16Columns) {
      next_scales.PrefetchNext();
      AddS16Rows<V, kM>(block, column, pair, end, x, weights.Next(), sums + column, t.k);
    }
  }
  for (int64_t m = 0; m < kM; ++m)
    for (int64_t column = 0; column < t.k; column += kS16Columns) {
      typename V::Ints sum[kS16Vectors];
      for (int64_t j = 0; j < kS16Vectors; ++j)
        sum[j] = V::LoadBytes(sums + m * t.k + column + j * V::kLanes);
      StoreS16Sums<V>(sum, x[m].unit, block.n == 0, t.y + m * t.y_stride + column);
    }
}

// C (+)= interleaved rows, [pair of rows][register][lane][2], times kM rows of A.
template <class V, int64_t kM>
[[gnu::noinline]] void TileS16(const int16_t* interleaved, int64_t pairs, const S16Row* x,
                               bool first, float* y, int64_t y_stride) {
  typename V::Ints sum[kM][kS16Vectors];
#pragma GCC unroll 6
  for (int64_t m = 0; m < kM; ++m)
#pragma GCC unroll 4
    for (int64_t j = 0; j < kS16Vectors; ++j) sum[m][j] = V::ZeroInts();
  for (int64_t pair = 0; pair < pairs; ++pair) {
    typename V::Ints w[kS16Vectors];
#pragma GCC unroll 4
    for (int64_t j = 0; j < kS16Vectors; ++j, interleaved += 2 * V::kLanes)
      w[j] = V::LoadBytes(interleaved);
#pragma GCC unroll 6
    for (int64_t m = 0; m < kM; ++m) {
      const typename V::Ints xm = V::SetFour(x[m].x + 2 * pair);
#pragma GCC unroll 4
      for (int64_t j = 0; j < kS16Vectors; ++j) sum[m][j] = V::DotWords(sum[m][j], w[j], xm);
    }
  }
  for (int64_t m = 0; m < kM; ++m) StoreS16Sums<V>(sum[m], x[m].unit, first, y + m * y_stride);
}

// C (+)= a block times rows [m, +count) of A, six at a time.
template <class V>
void LargeMS16(const GemmTTask& t, const S16Block& block, const S16Row* x, int64_t m, int64_t count,
               SequentialPrefetch& weights, SequentialPrefetch& next_scales) {
  alignas(64) int16_t interleaved[kS16BlockN * kS16Columns];
  for (int64_t column = 0; column < t.k; column += kS16Columns) {
    int16_t* to = interleaved;
    for (int64_t pair = 0; pair < block.pairs(); ++pair) {
      typename V::Ints w[kS16Vectors];
      InterleaveRowsS16<V>(block.Row(2 * pair) + column, block.Row(2 * pair + 1) + column, w);
      for (int64_t j = 0; j < kS16Vectors; ++j, to += 2 * V::kLanes) V::StoreBytes(to, w[j]);
    }
    ForEachRun<kS16Mr>(count, [&](int64_t i, auto rows) {
      const SequentialPrefetch::Run lines = weights.Next();
      next_scales.PrefetchNext();
      for (int64_t line = 0; line < lines.count; ++line) lines.PrefetchLine(line);
      asm volatile("");  // g++ 12 removes a loop that only prefetches
      TileS16<V, decltype(rows)::value>(interleaved, block.pairs(), x + i, block.n == 0,
                                        t.y + (m + i) * t.y_stride + column, t.y_stride);
    });
  }
}

constexpr int64_t kS16MaxM = 96;  // rows of A that are converted to fixed point together

// Requires: t.k ≤ kS16MaxK.
template <class V>
void GemmTS16(const GemmTTask& t, const I8* w) {
  alignas(64) float scales[kS16BlockN];
  S16Row x[kS16MaxM];
  const int64_t chunks = t.k / kS16Columns;
  const bool small_m = t.m <= kMaxSmallM;
  const int64_t blocks = (t.n + kS16BlockN - 1) / kS16BlockN;
  int64_t tiles = 0;
  for (int64_t m = 0; m < t.m; m += kS16MaxM)
    tiles += (Min(kS16MaxM, t.m - m) + kS16Mr - 1) / kS16Mr;
  // M > 4: prefetches all of the next product while this one is multiplied.
  const int64_t ahead = small_m ? RowsAhead<I8>(t, t.k, kS16PrefetchBytes, kS16RowsAtOnce) : t.n;
  const int64_t steps =
      chunks * (small_m ? (t.n + kS16RowsAtOnce - 1) / kS16RowsAtOnce : blocks * tiles);
  SequentialPrefetch weights = ProductPrefetchOf(t, w, 0, t.k, ahead, steps);
  SequentialPrefetch next_scales = ProductScalePrefetchOf(t, 0, t.k, steps);
  for (int64_t n = 0; n < t.n; n += kS16BlockN) {
    const S16Block block{w + n * t.w_stride, t.w_stride, n, Min(kS16BlockN, t.n - n)};
    LoadRowScalesOf<V>(t.grid, n, block.rows, 1, scales);
    for (int64_t m = 0; m < t.m; m += kS16MaxM) {
      const int64_t count = Min(kS16MaxM, t.m - m);
      for (int64_t i = 0; i < count; ++i) QuantizeS16Row<V>(t, m + i, block, scales, x[i]);
      if (!small_m)
        LargeMS16<V>(t, block, x, m, count, weights, next_scales);
      else
        WithConstant<kMaxSmallM>(t.m, [&](auto rows) {
          SmallMS16<V, decltype(rows)::value>(t, block, x, weights, next_scales);
        });
    }
  }
}

// Requires: t.w is I8 with one scale per row; t.batches is 1.
template <class V>
void GemmTW8Vnni(const GemmTTask& task) {
  GemmTTask t = task;
  for (int64_t begin = 0; begin < task.k; begin += kS16MaxK) {
    t.k = Min(kS16MaxK, task.k - begin);
    t.y = task.y + begin;
    if (task.next_w != nullptr) t.next_w = static_cast<const I8*>(task.next_w) + begin;
    GemmTS16<V>(t, static_cast<const I8*>(task.w) + begin);
  }
}

}  // namespace
}  // namespace latte::cpu
