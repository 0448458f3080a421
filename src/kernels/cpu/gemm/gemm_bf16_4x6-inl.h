// Some rows of x for gemm_bf16_packed_3x8-inl.h: rows of W are multiplied where they lie.
//
// Work      a tile is 4 rows of x × 6 of W, 24 registers of sums, over a block of K. Rows of x stay
//           in the L1 while a panel of 48 rows of W, which lies in the L2, passes. The last tiles
//           of a panel ask for the next one, a line of each row with every step: an even number of
//           lines per tile, spread over all of them, costs a mispredicted branch each (Zen 4: 0.85
//           of the peak for 0.78 of it). Where rows of x would lie in the same set of the L1, they
//           are laid out by steps first.
// Order     that of gemm_bf16_packed_3x8-inl.h.
// Limits    as gemm_bf16_packed_3x8-inl.h; scratch 380 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/bf16_pair-inl.h"
#include "src/kernels/cpu/common/multiply-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/gemm_f32-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kLeastSomeInputs = 16;  // fewer take as long in gemm_f32-inl.h
constexpr int64_t kMostSomeInputs = 95;   // from more on packing W costs less than it saves
constexpr int64_t kSomeTileInputs = 4;
constexpr int64_t kSomeTileOutputs = 6;
constexpr int64_t kSomePanelRows = 48;

// Rows of x of a tile: elements from row to row and from step to step.
struct SomeInputs {
  const BF16* x;
  int64_t row, step;
};

// Rows of W that tiles ask for.
struct SomeLines {
  const BF16* row = nullptr;
  int64_t stride = 0, rows = 0;
};

// Sums of a tile, by rows of W.
template <class V>
using SomeSums = typename V::Vec[kSomeTileOutputs][kSomeTileInputs];

template <class V, int64_t kM, class LoadX, class LoadW>
[[gnu::always_inline]] inline void AddSomeStep(const LoadX& load_x, const LoadW& load_w,
                                               SomeSums<V>& sums) {
  typename V::Pairs w[kSomeTileOutputs];
#pragma GCC unroll 6
  for (int64_t j = 0; j < kSomeTileOutputs; ++j) w[j] = V::HoldPairs(load_w(j));
#pragma GCC unroll 4
  for (int64_t i = 0; i < kM; ++i) {
    const typename V::Pairs x = load_x(i);
#pragma GCC unroll 6
    for (int64_t j = 0; j < kSomeTileOutputs; ++j) sums[j][i] = V::DotPairs(sums[j][i], x, w[j]);
  }
}

// out[j][i] = products of row i of x, kM of them there, and row j of W over k columns. A function
// of its own, so that sums and addresses have all registers.
template <class V, int64_t kM, bool kAsks>
[[gnu::noinline]] void SomeTile(SomeInputs x, const BF16* w, int64_t stride, int64_t k,
                                const SomeLines& ahead, Cache into,
                                float (&out)[kSomeTileOutputs][kSomeTileInputs]) {
  SomeSums<V> sums;
  SetZero<V>(sums);
  // Addresses are spelled out, or g++ 12 keeps one for each row.
  int64_t three = 3 * x.row;
  const BF16* from[2] = {w, w + 3 * stride};
  asm("" : "+r"(three), "+r"(from[0]), "+r"(from[1]));
  const auto row_of_x = [&](int64_t i) { return x.x + (i == 3 ? three : i * x.row); };
  const auto row_of_w = [&](int64_t j) { return from[j / 3] + j % 3 * stride; };
  const int64_t whole = k - k % V::kPairElements;
#pragma GCC unroll 1
  for (int64_t at = 0; at < whole; at += V::kPairElements) {
    if constexpr (kAsks) {
      const BF16* line = ahead.row + at;
#pragma GCC unroll 1
      for (int64_t i = 0; i < ahead.rows; ++i, line += ahead.stride) AskFor(line, 0, into);
    }
    AddSomeStep<V, kM>([&](int64_t i) { return V::LoadPairs(row_of_x(i)); },
                       [&](int64_t j) { return V::LoadPairs(row_of_w(j)); }, sums);
    x.x += x.step;
    for (const BF16*& p : from) p += V::kPairElements;
  }
  if (whole < k) {
    const int64_t left = k - whole;
    AddSomeStep<V, kM>([&](int64_t i) { return V::LoadPairsPartial(row_of_x(i), left); },
                       [&](int64_t j) { return V::LoadPairsPartial(row_of_w(j), left); }, sums);
  }
#pragma GCC unroll 3
  for (int64_t j = 0; j < kSomeTileOutputs; j += 2)
    V::StoreFourSums(out[j], out[j + 1], V::SumQuarters(sums[j]), V::SumQuarters(sums[j + 1]));
}

// Columns [begin, +k) of x, [run of rows][step][row][column].
template <class V>
void LayOutInputs(const LinearTask& t, int64_t begin, int64_t k, BF16* to) {
  ForEachRun<kSomeTileInputs>(t.m, [&](int64_t m, auto count) {
    const auto* const x = static_cast<const BF16*>(t.x) + m * t.x_stride + begin;
    for (int64_t at = 0; at < k; at += V::kPairElements)
      for (int64_t i = 0; i < decltype(count)::value; ++i, to += V::kPairElements)
        V::StorePairs(to, LoadPairsOf<V>(x + i * t.x_stride, at, k));
  });
}

// Rows of the next panel, handed out to the last tiles of this one.
class SomeAhead {
 public:
  SomeAhead(const Panel<BF16>& next, int64_t tiles)
      : left_{next.w, next.stride, next.rows}, per_tile_((next.rows + tiles - 1) / tiles) {
    wait_ = tiles - (per_tile_ == 0 ? 0 : (next.rows + per_tile_ - 1) / per_tile_);
  }
  SomeLines Next() {
    if (wait_-- > 0) return {};
    const SomeLines out{left_.row, left_.stride, Min(per_tile_, left_.rows)};
    for (int64_t i = 0; i < out.rows; ++i)  // as LinesInOrder
      ReadOnce(reinterpret_cast<const char*>(out.row + i * out.stride));
    left_.row += out.rows * out.stride;
    left_.rows -= out.rows;
    return out;
  }

 private:
  SomeLines left_;
  int64_t per_tile_;
  int64_t wait_;  // tiles
};

// All rows of x, laid out or null, and a panel. The last tile takes rows before it again; of the
// task there are as many as a tile has.
template <class V>
void SomePanel(const LinearTask& t, const Panel<BF16>& panel, const BF16* laid_out,
               const Panel<BF16>& next) {
  const bool biased = t.bias != nullptr && panel.k_begin + panel.k == t.k;
  const bool first = panel.k_begin == 0;
  const int64_t across = (panel.rows + kSomeTileOutputs - 1) / kSomeTileOutputs;
  SomeAhead ahead(next, (t.m + kSomeTileInputs - 1) / kSomeTileInputs * across);
  ForEachRun<kSomeTileInputs>(t.m, [&](int64_t m, auto count) {
    constexpr int64_t kM = decltype(count)::value;
    SomeInputs x{static_cast<const BF16*>(t.x) + m * t.x_stride + panel.k_begin, t.x_stride,
                 V::kPairElements};
    if (laid_out != nullptr)
      x = {laid_out + m * RoundUp(panel.k, V::kPairElements), V::kPairElements,
           kM * V::kPairElements};
    float* const y = t.y + m * t.y_stride + panel.row_begin;
    for (int64_t i = 0; i < kM; ++i)
      for (int64_t n = 0; n < panel.rows; n += 16) AskToWrite(y + i * t.y_stride + n);
    alignas(64) float sums[kM][kSomeTileOutputs + kSomePanelRows];  // from a tile before it on
    for (int64_t tile = 0; tile < across; ++tile) {
      const int64_t n = Min(tile * kSomeTileOutputs, panel.rows - kSomeTileOutputs);
      const BF16* const w = panel.w + n * panel.stride;
      float of_tile[kSomeTileOutputs][kSomeTileInputs];
      const SomeLines lines = ahead.Next();
      if (lines.rows == 0)
        SomeTile<V, kM, false>(x, w, panel.stride, panel.k, lines, t.ask_into, of_tile);
      else
        SomeTile<V, kM, true>(x, w, panel.stride, panel.k, lines, t.ask_into, of_tile);
      for (int64_t j = 0; j < kSomeTileOutputs; ++j)
        for (int64_t i = 0; i < kM; ++i) sums[i][kSomeTileOutputs + n + j] = of_tile[j][i];
    }
    const float* const bias = biased ? t.bias + panel.row_begin : nullptr;
    for (int64_t i = 0; i < kM; ++i)
      StoreDots(sums[i] + kSomeTileOutputs, bias, panel.rows, first, y + i * t.y_stride);
  });
}

template <class V>
struct SomeScratch {
  alignas(64) BF16 x[kMostSomeInputs * kBlockK<PairMath<V>>];
};

// Requires: rows of x as above, kSomeTileOutputs rows of W or more.
template <class V>
[[gnu::noinline]] void SomePanels(const LinearTask& t) {
  constexpr int64_t kBlock = kBlockK<PairMath<V>>;
  BF16* const x = InScratch<SomeScratch<V>>(t.scratch).x;
  const bool lays_out = t.x_stride * static_cast<int64_t>(sizeof(BF16)) % (kPage / 2) == 0;
  const auto panel_at = [](const LinearTask& of, int64_t n, int64_t k) {
    const auto* const w = static_cast<const BF16*>(of.w) + n * of.w_stride + k;
    return Panel<BF16>{w, of.w_stride,           n, Min(kSomePanelRows, of.n - n),
                       k, Min(kBlock, of.k - k), {}};
  };
  for (int64_t k = 0; k < t.k; k += kBlock) {
    if (lays_out) LayOutInputs<V>(t, k, Min(kBlock, t.k - k), x);
    for (int64_t n = 0; n < t.n; n += kSomePanelRows) {
      Panel<BF16> next = {};
      if (n + kSomePanelRows < t.n)
        next = panel_at(t, n + kSomePanelRows, k);
      else if (k + kBlock < t.k)
        next = panel_at(t, 0, k + kBlock);
      else if (t.next != nullptr && t.next->w_type == Element::kBF16)
        next = panel_at(*t.next, 0, 0);
      SomePanel<V>(t, panel_at(t, n, k), lays_out ? x : nullptr, next);
    }
  }
}

}  // namespace
}  // namespace latte::cpu
