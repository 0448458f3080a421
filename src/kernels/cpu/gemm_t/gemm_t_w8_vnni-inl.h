// linear_t of int8 weights whose rows have one scale each, in words: integers, exact within a block
// of rows of W.
//
// Work      A row of x times the scales of the rows of W is brought to a fixed point of 16 bits
//           below the largest of its products. Two rows of W are widened to words and zipped, and
//           multiplied by a pair of x that is the same for all columns:
//
//             W   rows n, n + 1   │ a b c …     zipped   │ a(n) a(n+1) │ b(n) b(n+1) │ …
//                                               x        │ x(n) x(n+1) │ the same     │ …
//
//           Few rows of x: 16 rows of W, 64 columns at a time, beside all of them; sums of a block
//           stay in the L1. Many: 64 columns of a block are zipped into scratch once, 16 KiB, and
//           up to six rows of x at a time walk down them with their sums in registers. Lines are
//           asked for in memory's order, then those of the product that is next.
// Roofline  32 multiply-adds an instruction, twice what f32 has. Few rows of x: bound by memory.
// Rounding  of x·scale to a multiple of 2^−14 of the power of two not above the largest, so by at
//           most 2^−15 of the largest itself; of each block's sum twice.
// Order     none within a block of rows of W; blocks in order. For every tile, task and thread
//           count.
// Limits    columns and scales as SupportsInts says; stack 80 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/fixed_point-inl.h"
#include "src/kernels/cpu/common/prefetch_sequential-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm_t/gemm_t_f32-inl.h"
#include "src/kernels/cpu/gemm_t/prefetch_products-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kWordRows = 128;    // of W in a block: sums of as many products fit 32 bits
constexpr int64_t kWordColumns = 64;  // at once
constexpr int64_t kWordVectors = 4;
constexpr int64_t kWordRowsAtOnce = 16;        // where they lie
constexpr int64_t kWordTaskColumns = 1024;     // whose sums stay in the L1
constexpr int64_t kWordAheadBytes = 16 << 10;  // of W, asked for before they are used
constexpr int64_t kWordTileRows = 6;           // of x beside zipped rows
constexpr int kWordBits = 15;

// Rows [n, +rows) of W. What an even number of them lacks is the last again, beside a zero of x.
struct WordBlock {
  const I8* w;
  int64_t stride, n, rows;

  int64_t pairs() const { return (rows + 1) / 2; }
  const I8* Row(int64_t i) const { return w + Min(i, rows - 1) * stride; }
};

// A row of x times the scales of a block's rows, and what one of its units means.
struct WordRow {
  alignas(64) int16_t x[kWordRows];
  float unit;
};

// scales: of the block's rows. What a pair lacks becomes zero.
template <class V>
void SetWordRow(const LinearTTask& t, int64_t m, const WordBlock& block, const float* scales,
                WordRow& to) {
  alignas(64) float scratch[kWordRows];
  const float* const x = FloatInput<V>(t, m, block.n, block.rows, scratch);
  alignas(64) float products[kWordRows];
  typename V::Vec largest = V::Zero();
  for (int64_t i = 0; i < block.rows; i += V::kLanes) {
    const int64_t rest = block.rows - i;
    const typename V::Vec product = V::Mul(LoadNext<V>(x + i, rest), LoadNext<V>(scales + i, rest));
    largest = V::MaxMagnitude(largest, product);
    V::Store(products + i, product);
  }
  const FixedPoint point = FixedPointOf<kWordBits>(V::LargestMagnitude(largest));
  const typename V::Vec by = V::Set1(point.from_float);
  for (int64_t i = 0; i < block.rows; i += V::kLanes)
    V::StoreSignedWords(to.x + i, V::Mul(V::Load(products + i), by));
  to.unit = point.to_float;
}

// Columns [0, 64) of two rows as words, zipped: of every 32 columns first each lower four of eight,
// then each upper four. ColumnsInOrder brings sums of them into order.
template <class V>
[[gnu::always_inline]] inline void ZipWords(const I8* p, const I8* q,
                                            typename V::Ints (&out)[kWordVectors]) {
#pragma GCC unroll 2
  for (int64_t i = 0; i < 2; ++i) {
    const typename V::Ints first = V::WidenSigned(p + 32 * i);
    const typename V::Ints second = V::WidenSigned(q + 32 * i);
    out[2 * i] = V::ZipWordsLow(first, second);
    out[2 * i + 1] = V::ZipWordsHigh(first, second);
  }
}
template <class V>
[[gnu::always_inline]] inline void ColumnsInOrder(typename V::Ints (&sums)[kWordVectors]) {
#pragma GCC unroll 2
  for (int64_t i = 0; i < kWordVectors; i += 2) {
    const typename V::Ints low = V::ZipQuartersLow(sums[i], sums[i + 1]);
    sums[i + 1] = V::ZipQuartersHigh(sums[i], sums[i + 1]);
    sums[i] = low;
  }
}

// y (+)= what sums of 64 columns mean.
template <class V>
void StoreWordSums(typename V::Ints (&sums)[kWordVectors], float unit, bool first, float* y) {
  ColumnsInOrder<V>(sums);
  for (int64_t i = 0; i < kWordVectors; ++i, y += V::kLanes) {
    const typename V::Vec value = V::Mul(V::ToFloat(sums[i]), V::Set1(unit));
    V::Store(y, first ? value : V::Add(V::Load(y), value));
  }
}

// sums[m] (+)= pairs [begin, end) of a block's rows, 64 columns from `column` on, times kM rows of
// x. A function of its own, so that sums have all registers.
template <class V, int64_t kM>
[[gnu::noinline]] void AddWordRows(const WordBlock& block, int64_t column, int64_t begin,
                                   int64_t end, const WordRow* x, LineRuns::Run ahead,
                                   int32_t* sums, int64_t sums_stride) {
  LinesByRow lines(ahead);
  typename V::Ints sum[kM][kWordVectors];
#pragma GCC unroll 4
  for (int64_t m = 0; m < kM; ++m)
#pragma GCC unroll 4
    for (int64_t j = 0; j < kWordVectors; ++j)
      sum[m][j] = begin == 0 ? V::ZeroInts() : V::LoadBytes(sums + m * sums_stride + j * V::kLanes);
  for (int64_t pair = begin; pair < end; ++pair) {
    lines.Ask();
    lines.Ask();
    typename V::Ints w[kWordVectors];
    ZipWords<V>(block.Row(2 * pair) + column, block.Row(2 * pair + 1) + column, w);
#pragma GCC unroll 4
    for (int64_t m = 0; m < kM; ++m) {
      const typename V::Ints xm = V::SetFour(x[m].x + 2 * pair);
#pragma GCC unroll 4
      for (int64_t j = 0; j < kWordVectors; ++j) sum[m][j] = V::DotWords(sum[m][j], w[j], xm);
    }
  }
#pragma GCC unroll 4
  for (int64_t m = 0; m < kM; ++m)
#pragma GCC unroll 4
    for (int64_t j = 0; j < kWordVectors; ++j)
      V::StoreBytes(sums + m * sums_stride + j * V::kLanes, sum[m][j]);
}

// y (+)= a block times all rows of x, where W lies.
template <class V, int64_t kM>
void StreamWords(const LinearTTask& t, const WordBlock& block, const WordRow* x,
                 ProductLines<I8>& ahead) {
  alignas(64) int32_t sums[kM * kWordTaskColumns];
  for (int64_t pair = 0; pair < block.pairs(); pair += kWordRowsAtOnce / 2) {
    const int64_t end = Min(pair + kWordRowsAtOnce / 2, block.pairs());
    for (int64_t column = 0; column < t.k; column += kWordColumns)
      AddWordRows<V, kM>(block, column, pair, end, x, ahead.Next(), sums + column, t.k);
  }
  for (int64_t m = 0; m < kM; ++m)
    for (int64_t column = 0; column < t.k; column += kWordColumns) {
      typename V::Ints sum[kWordVectors];
      for (int64_t j = 0; j < kWordVectors; ++j)
        sum[j] = V::LoadBytes(sums + m * t.k + column + j * V::kLanes);
      StoreWordSums<V>(sum, x[m].unit, block.n == 0, t.y + m * t.y_stride + column);
    }
}

// y (+)= zipped rows, [pair of rows][vector][lane][2], times kM rows of x.
template <class V, int64_t kM>
[[gnu::noinline]] void ZippedWordTile(const int16_t* zipped, int64_t pairs, const WordRow* x,
                                      bool first, float* y, int64_t y_stride) {
  typename V::Ints sum[kM][kWordVectors];
#pragma GCC unroll 6
  for (int64_t m = 0; m < kM; ++m)
#pragma GCC unroll 4
    for (int64_t j = 0; j < kWordVectors; ++j) sum[m][j] = V::ZeroInts();
  for (int64_t pair = 0; pair < pairs; ++pair) {
    typename V::Ints w[kWordVectors];
#pragma GCC unroll 4
    for (int64_t j = 0; j < kWordVectors; ++j, zipped += 2 * V::kLanes) w[j] = V::LoadBytes(zipped);
#pragma GCC unroll 6
    for (int64_t m = 0; m < kM; ++m) {
      const typename V::Ints xm = V::SetFour(x[m].x + 2 * pair);
#pragma GCC unroll 4
      for (int64_t j = 0; j < kWordVectors; ++j) sum[m][j] = V::DotWords(sum[m][j], w[j], xm);
    }
  }
  for (int64_t m = 0; m < kM; ++m) StoreWordSums<V>(sum[m], x[m].unit, first, y + m * y_stride);
}

// y (+)= a block times rows [m, +count) of x, six at a time.
template <class V>
void ZippedWords(const LinearTTask& t, const WordBlock& block, const WordRow* x, int64_t m,
                 int64_t count, ProductLines<I8>& ahead) {
  alignas(64) int16_t zipped[kWordRows * kWordColumns];
  for (int64_t column = 0; column < t.k; column += kWordColumns) {
    int16_t* to = zipped;
    for (int64_t pair = 0; pair < block.pairs(); ++pair) {
      typename V::Ints w[kWordVectors];
      ZipWords<V>(block.Row(2 * pair) + column, block.Row(2 * pair + 1) + column, w);
      for (int64_t j = 0; j < kWordVectors; ++j, to += 2 * V::kLanes) V::StoreBytes(to, w[j]);
    }
    ForEachRun<kWordTileRows>(count, [&](int64_t i, auto rows) {
      const LineRuns::Run lines = ahead.Next();
      for (int64_t line = 0; line < lines.count; ++line) lines.Ask(line);
      asm volatile("");  // as in LinesByRow
      ZippedWordTile<V, decltype(rows)::value>(zipped, block.pairs(), x + i, block.n == 0,
                                               t.y + (m + i) * t.y_stride + column, t.y_stride);
    });
  }
}

constexpr int64_t kWordInputs = 96;  // rows of x that are brought to a fixed point together

// Requires: t.k ≤ kWordTaskColumns.
template <class V>
void MultiplyWords(const LinearTTask& t, const I8* w) {
  alignas(64) float scales[kWordRows];
  WordRow x[kWordInputs];
  const int64_t chunks = t.k / kWordColumns;
  const bool few = t.m <= kStreamRowsOfX;
  const int64_t blocks = (t.n + kWordRows - 1) / kWordRows;
  int64_t tiles = 0;
  for (int64_t m = 0; m < t.m; m += kWordInputs)
    tiles += (Min(kWordInputs, t.m - m) + kWordTileRows - 1) / kWordTileRows;
  // Many rows of x: all of the next product while this one is multiplied.
  ProductLines<I8> ahead =
      few ? ProductLines<I8>(t, w, 0, t.k, kWordAheadBytes, kWordRowsAtOnce, chunks)
          : ProductLines<I8>(t, w, 0, t.k, t.n * t.k, t.n, blocks * tiles * chunks);
  for (int64_t n = 0; n < t.n; n += kWordRows) {
    const WordBlock block{w + n * t.w_stride, t.w_stride, n, Min(kWordRows, t.n - n)};
    LoadScalesDown<V>(t.grid, n, block.rows, 1, scales);
    for (int64_t m = 0; m < t.m; m += kWordInputs) {
      const int64_t count = Min(kWordInputs, t.m - m);
      for (int64_t i = 0; i < count; ++i) SetWordRow<V>(t, m + i, block, scales, x[i]);
      if (!few)
        ZippedWords<V>(t, block, x, m, count, ahead);
      else
        WithConstant<kStreamRowsOfX>(
            t.m, [&](auto rows) { StreamWords<V, decltype(rows)::value>(t, block, x, ahead); });
    }
  }
}

// Requires: t.w is I8 with one scale per row; t.batches is 1.
template <class V>
void LinearTInt8(const LinearTTask& task) {
  LinearTTask t = task;
  for (int64_t begin = 0; begin < task.k; begin += kWordTaskColumns) {
    t.k = Min(kWordTaskColumns, task.k - begin);
    t.y = task.y + begin;
    if (task.next_w != nullptr) t.next_w = static_cast<const I8*>(task.next_w) + begin;
    MultiplyWords<V>(t, static_cast<const I8*>(task.w) + begin);
  }
}

}  // namespace
}  // namespace latte::cpu
