// linear: bf16 activations and bf16 weights, multiplied in pairs of bf16.
//
// Work      tasks, panels and blocks as in linear-inl.h, whose dot form few rows of x take. For
//           many, a panel's block is packed once into scratch (256 KiB, in L2): each register
//           holds one quarter of a step of 32 columns, of four rows of W. Beside a quarter of a
//           row of x, four times, its sums belong to four outputs:
//
//             W   row 0 │ a0 b0 c0 d0        packed │ a0 a1 a2 a3        sums │ Σ0 Σ1 Σ2 Σ3
//                 row 1 │ a1 b1 c1 d1               │ b0 b1 b2 b3
//                 row 2 │ a2 b2 c2 d2               │ c0 c1 c2 c3        x    │ a  a  a  a
//                 row 3 │ a3 b3 c3 d3               │ d0 d1 d2 d3
//
//           A tile is 3 rows of x × 8 of W: 24 registers of sums, of which 18 additions leave 6
//           before lanes are added. Tiles of 6 × 4 read 28 registers for 24 products, and a load
//           takes as long as a product (Zen 4). W lies in one stream, whatever its stride.
// Order     per block of K 16 partial sums, pair i of columns in sum i mod 16; quarters first,
//           (a + c) + (b + d), then (0 + 2) + (1 + 3) of the four that are left; blocks in order,
//           the bias last. For every tile, task and thread count.
// Limits    as linear-inl.h.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/element-inl.h"
#include "src/kernels/cpu/linear-inl.h"
#include "src/kernels/cpu/math-inl.h"
#include "src/kernels/cpu/rows_in_order-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/tiles-inl.h"

namespace latte::cpu {
namespace {

// Rows of x from which on packing W costs less than it saves.
constexpr int64_t kPackedInputs = 96;
constexpr int64_t kQuarters = 4;
constexpr int64_t kFours = 2;  // of rows of W in a tile
constexpr int64_t kPackedOutputs = 4 * kFours;
constexpr int64_t kPackedInputRows = 3;
constexpr int64_t kAskedByTile = 64;  // lines at least, about one with a step
template <class V>
constexpr int64_t kQuarter = V::kPairElements / kQuarters;
// Elements of a step of a tile.
template <class V>
constexpr int64_t kPackedStep = kPackedOutputs* V::kPairElements;

// Rows of a tile from n on, [step, four rows, quarter, row, column]. One over the edge repeats the
// last row; behind the last column there are zeros.
template <class V>
void PackRows(const Panel<BF16>& panel, int64_t n, BF16* to) {
  for (int64_t j = 0; j < kFours; ++j) {
    const BF16* row[4];
    for (int64_t i = 0; i < 4; ++i)
      row[i] = panel.w + Min(n + 4 * j + i, panel.rows - 1) * panel.stride;
    BF16* step = to + j * kQuarters * V::kPairElements;
    const auto pack = [&](const auto& load) {
      typename V::Pairs rows[4];
      for (int64_t i = 0; i < 4; ++i) rows[i] = load(row[i]);
      V::TransposeQuarters(rows);
      for (int64_t q = 0; q < kQuarters; ++q) V::StorePairs(step + q * V::kPairElements, rows[q]);
      step += kPackedStep<V>;
    };
    const int64_t next = 4 * panel.stride * static_cast<int64_t>(sizeof(BF16));
    int64_t at = 0;
    for (; at + V::kPairElements <= panel.k; at += V::kPairElements)
      pack([at, next](const BF16* p) {
        Prefetch(p + at, next);  // some of what was asked for is not there, or no longer
        return V::LoadPairs(p + at);
      });
    const int64_t rest = panel.k - at;
    if (rest > 0) pack([at, rest](const BF16* p) { return V::LoadPairsPartial(p + at, rest); });
  }
}

// Sums of a tile: rows of x, fours of rows of W, quarters.
template <class V, int64_t kM>
using PackedSums = typename V::Vec[kM][kFours][kQuarters];

// Loops are unrolled by name: else g++ 12 keeps sums in memory around them.
template <class V, int64_t kM, class LoadX>
[[gnu::always_inline]] inline void AddPackedStep(const BF16* w, const LoadX& load_x,
                                                 PackedSums<V, kM>& sums) {
#pragma GCC unroll 4
  for (int64_t q = 0; q < kQuarters; ++q) {
    typename V::Pairs wq[kFours];
#pragma GCC unroll 4
    for (int64_t j = 0; j < kFours; ++j)
      wq[j] = V::HoldPairs(V::LoadPairs(w + (j * kQuarters + q) * V::kPairElements));
#pragma GCC unroll 4
    for (int64_t i = 0; i < kM; ++i) {
      const typename V::Pairs xq = load_x(i, q);
#pragma GCC unroll 4
      for (int64_t j = 0; j < kFours; ++j) sums[i][j][q] = V::DotPairs(sums[i][j][q], xq, wq[j]);
    }
  }
}

// out[i] = products of row i of x and a tile's rows of W over k columns. A function of its own, so
// that sums and addresses have all registers.
template <class V, int64_t kM>
[[gnu::noinline]] void PackedTile(const BF16* x, int64_t x_stride, const BF16* w, int64_t k,
                                  LineRuns::Run ahead, float (&out)[kM][kPackedOutputs]) {
  PackedSums<V, kM> sums;
  const BF16* row[kM];
#pragma GCC unroll 4
  for (int64_t i = 0; i < kM; ++i) {
    row[i] = x + i * x_stride;
    asm("" : "+r"(row[i]));  // else there is an offset in a register for every quarter
#pragma GCC unroll 4
    for (int64_t j = 0; j < kFours; ++j)
#pragma GCC unroll 4
      for (int64_t q = 0; q < kQuarters; ++q) sums[i][j][q] = V::Zero();
  }
  const int64_t whole = k - k % V::kPairElements;
  int64_t asked = 0;
  for (int64_t at = 0; at < whole; at += V::kPairElements) {
    if (asked < ahead.count) ahead.Ask(asked++);
    AddPackedStep<V, kM>(
        w, [&](int64_t i, int64_t q) { return V::LoadFourTimes(row[i] + at + q * kQuarter<V>); },
        sums);
    w += kPackedStep<V>;
  }
  if (whole < k) {
    typename V::Pairs rest[kM];
#pragma GCC unroll 4
    for (int64_t i = 0; i < kM; ++i) rest[i] = V::LoadPairsPartial(row[i] + whole, k - whole);
    AddPackedStep<V, kM>(
        w, [&](int64_t i, int64_t q) { return V::QuarterFourTimes(rest[i], q); }, sums);
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < kM; ++i) {
    typename V::Vec fours[kFours];
#pragma GCC unroll 4
    for (int64_t j = 0; j < kFours; ++j)
      fours[j] = V::Add(V::Add(sums[i][j][0], sums[i][j][2]), V::Add(sums[i][j][1], sums[i][j][3]));
    V::StoreFourSums(out[i], out[i] + 4, fours[0], fours[1]);
  }
  while (asked < ahead.count) ahead.Ask(asked++);
}

// Lines of the block that is next, asked for by the last tiles of this one: rows of x that passed
// afterwards would push them out of the L2.
struct PackedAhead {
  LineRuns lines;
  int64_t per_tile = 0;
  int64_t wait = 0;  // tiles

  void Spread(int64_t tiles) {
    const int64_t all = lines.lines();
    if (all == 0) return;
    per_tile = lines.Even(Max(all / tiles + 1, kAskedByTile));
    wait = tiles - (all + per_tile - 1) / per_tile;
  }
  LineRuns::Run Next() { return wait-- > 0 ? LineRuns::Run{} : lines.Next(per_tile); }
};

// All rows of x and a packed panel.
template <class V>
void PackedPanel(const LinearTask& t, const Panel<BF16>& panel, const BF16* packed,
                 PackedAhead& ahead) {
  const bool biased = t.bias != nullptr && panel.k_begin + panel.k == t.k;
  const bool first = panel.k_begin == 0;
  const int64_t columns = RoundUp(panel.k, V::kPairElements);
  ForEachRun<kPackedInputRows>(t.m, [&](int64_t m, auto count) {
    constexpr int64_t kM = decltype(count)::value;
    const auto* const x = static_cast<const BF16*>(t.x) + m * t.x_stride + panel.k_begin;
    for (int64_t n = 0; n < panel.rows; n += kPackedOutputs) {
      float sums[kM][kPackedOutputs];
      PackedTile<V, kM>(x, t.x_stride, packed + n * columns, panel.k, ahead.Next(), sums);
      const int64_t column = panel.row_begin + n;
      const float* const bias = biased ? t.bias + column : nullptr;
      float* y = t.y + m * t.y_stride + column;
      for (int64_t i = 0; i < kM; ++i, y += t.y_stride) {
        if (panel.rows - n >= kPackedOutputs)
          StoreDots(sums[i], bias, kPackedOutputs, first, y);
        else
          StoreDots(sums[i], bias, panel.rows - n, first, y);
      }
    }
  });
}

// Panels of W and blocks of K, as DotPanels.
template <class V>
void PackedPanels(const LinearTask& t) {
  constexpr int64_t kBlock = kBlockK<PairMath<V>>;
  const auto* const w = static_cast<const BF16*>(t.w);
  const int64_t runs = (t.m + kPackedInputRows - 1) / kPackedInputRows;
  alignas(64) BF16 packed[kPanelRows * kBlock];
  for (int64_t n = 0; n < t.n; n += kPanelRows) {
    const int64_t rows = Min(kPanelRows, t.n - n);
    const int64_t tiles = runs * ((rows + kPackedOutputs - 1) / kPackedOutputs);
    for (int64_t k = 0; k < t.k; k += kBlock) {
      const int64_t columns = Min(kBlock, t.k - k);
      const int64_t next = k + columns;
      PackedAhead ahead{LinesOfRows<BF16, LineRuns>(t, next < t.k ? n : n + rows, kPanelRows,
                                                    next < t.k ? next : 0, kBlock, t.ask_into)};
      ahead.Spread(tiles);
      const Panel<BF16> panel{w + n * t.w_stride + k, t.w_stride, n, rows, k, columns, {}};
      for (int64_t row = 0; row < rows; row += kPackedOutputs)
        PackRows<V>(panel, row, packed + row * RoundUp(columns, V::kPairElements));
      PackedPanel<V>(t, panel, packed, ahead);
    }
  }
}

template <class V>
void LinearPairs(const LinearTask& t) {
  if (t.m >= kPackedInputs) return PackedPanels<V>(t);
  DotTask<PairMath<V>>(t, static_cast<const BF16*>(t.w));
}

}  // namespace
}  // namespace latte::cpu
