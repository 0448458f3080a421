// bf16 A × bf16 B, micro-kernel 4×6×32, vdpbf16ps, M ≤ 95, AVX512_BF16; also the entries of
// gemm_f32-inl.h for these types.
//
// Packing   B is read in place. A is packed by K steps only if the stride of its rows is a multiple
//           of half a page, where the rows would map to the same L1 set.
// Blocking  24 accumulators over a K block. A stays in the L1 while a panel of 48 rows of B (in the
//           L2) passes.
// Prefetch  The last tiles of a panel prefetch the next panel: every K step fetches a line of each
//           row assigned to the tile. A fixed number per step avoids mispredicted branches.
// Epilogue  C (+)= sums, the bias after the last K block.
// Order     that of gemm_bf16_packed_3x8-inl.h.
// Limits    as gemm_bf16_packed_3x8-inl.h; N ≥ 6; scratch 380 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/bf16_pair-inl.h"
#include "src/kernels/cpu/common/multiply-inl.h"
#include "src/kernels/cpu/common/prefetch-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/gemm_f32-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kMaxM4x6 = 95;  // above, packing B pays off
constexpr int64_t kMr4x6 = 4;
constexpr int64_t kNr4x6 = 6;
constexpr int64_t kPanelN4x6 = 48;

// The rows of A of a tile; strides in elements.
struct A4x6 {
  const BF16* x;
  int64_t row, step;
};

// Accumulators of a tile, [row of B][row of A].
template <class V>
using Sums4x6 = typename V::Vec[kNr4x6][kMr4x6];

template <class V, int64_t kM, class LoadX, class LoadW>
[[gnu::always_inline]] inline void AddStep4x6(const LoadX& load_x, const LoadW& load_w,
                                              Sums4x6<V>& sums) {
  typename V::Pairs w[kNr4x6];
#pragma GCC unroll 6
  for (int64_t j = 0; j < kNr4x6; ++j) w[j] = V::HoldPairs(load_w(j));
#pragma GCC unroll 4
  for (int64_t i = 0; i < kM; ++i) {
    const typename V::Pairs x = load_x(i);
#pragma GCC unroll 6
    for (int64_t j = 0; j < kNr4x6; ++j) sums[j][i] = V::DotPairs(sums[j][i], x, w[j]);
  }
}

// out[j][i] = A[i]·B[j] over k columns for i < kM. Each K step prefetches a line of each row of
// `ahead`. Not inlined: accumulators and addresses need all registers.
template <class V, int64_t kM, bool kPrefetches>
[[gnu::noinline]] void TileBf16InPlace4x6(A4x6 x, const BF16* w, int64_t stride, int64_t k,
                                          const Panel<BF16>& ahead, CacheLevel into,
                                          float (&out)[kNr4x6][kMr4x6]) {
  Sums4x6<V> sums;
  SetZero<V>(sums);
  // Explicit base addresses: g++ 12 would keep one register per row.
  int64_t three = 3 * x.row;
  const BF16* from[2] = {w, w + 3 * stride};
  asm("" : "+r"(three), "+r"(from[0]), "+r"(from[1]));
  const auto row_of_x = [&](int64_t i) { return x.x + (i == 3 ? three : i * x.row); };
  const auto row_of_w = [&](int64_t j) { return from[j / 3] + j % 3 * stride; };
  const int64_t whole = k - k % V::kPairElements;
#pragma GCC unroll 1
  for (int64_t at = 0; at < whole; at += V::kPairElements) {
    if constexpr (kPrefetches) {
      const BF16* line = ahead.w + at;
#pragma GCC unroll 1
      for (int64_t i = 0; i < ahead.rows; ++i, line += ahead.stride) Prefetch(line, 0, into);
    }
    AddStep4x6<V, kM>([&](int64_t i) { return V::LoadPairs(row_of_x(i)); },
                      [&](int64_t j) { return V::LoadPairs(row_of_w(j)); }, sums);
    x.x += x.step;
    for (const BF16*& p : from) p += V::kPairElements;
  }
  if (whole < k) {
    const int64_t left = k - whole;
    AddStep4x6<V, kM>([&](int64_t i) { return V::LoadPairsPartial(row_of_x(i), left); },
                      [&](int64_t j) { return V::LoadPairsPartial(row_of_w(j), left); }, sums);
  }
#pragma GCC unroll 3
  for (int64_t j = 0; j < kNr4x6; j += 2)
    V::StoreFourSums(out[j], out[j + 1], V::SumQuarters(sums[j]), V::SumQuarters(sums[j + 1]));
}

// Packs columns [begin, +k) of A as [tile][K step][row][column].
template <class V>
void PackA4x6(const GemmTask& t, int64_t begin, int64_t k, BF16* to) {
  ForEachRun<kMr4x6>(t.m, [&](int64_t m, auto count) {
    const auto* const x = static_cast<const BF16*>(t.x) + m * t.x_stride + begin;
    for (int64_t at = 0; at < k; at += V::kPairElements)
      for (int64_t i = 0; i < decltype(count)::value; ++i, to += V::kPairElements)
        V::StorePairs(to, LoadRowPairs<V>(x + i * t.x_stride, at, k));
  });
}

// Multiplies A (packed, or null: in place) by a panel. The last tile overlaps the tile before it.
// Requires: panel.rows ≥ kNr4x6.
template <class V>
void Panel4x6(const GemmTask& t, const Panel<BF16>& panel, const BF16* packed_a,
              const Panel<BF16>& next) {
  const bool biased = t.bias != nullptr && panel.k_begin + panel.k == t.k;
  const bool first = panel.k_begin == 0;
  const int64_t across = (panel.rows + kNr4x6 - 1) / kNr4x6;
  // The last tiles prefetch the next panel.
  const int64_t tiles = (t.m + kMr4x6 - 1) / kMr4x6 * across;
  const int64_t per_tile = Max((next.rows + tiles - 1) / tiles, 1);
  int64_t wait = tiles - (next.rows + per_tile - 1) / per_tile;
  Panel<BF16> ahead = next;  // the rows that a tile prefetches
  int64_t left = next.rows;
  ForEachRun<kMr4x6>(t.m, [&](int64_t m, auto count) {
    constexpr int64_t kM = decltype(count)::value;
    A4x6 x{static_cast<const BF16*>(t.x) + m * t.x_stride + panel.k_begin, t.x_stride,
           V::kPairElements};
    if (packed_a != nullptr)
      x = {packed_a + m * RoundUp(panel.k, V::kPairElements), V::kPairElements,
           kM * V::kPairElements};
    float* const y = t.y + m * t.y_stride + panel.row_begin;
    for (int64_t i = 0; i < kM; ++i)
      for (int64_t n = 0; n < panel.rows; n += 16) PrefetchW(y + i * t.y_stride + n);
    alignas(64) float sums[kM][kNr4x6 + kPanelN4x6];  // from a tile before it on
    for (int64_t tile = 0; tile < across; ++tile) {
      const int64_t n = Min(tile * kNr4x6, panel.rows - kNr4x6);
      const BF16* const w = panel.w + n * panel.stride;
      float tile_sums[kNr4x6][kMr4x6];
      ahead.rows = wait-- > 0 ? 0 : Min(per_tile, left);
      for (int64_t i = 0; i < ahead.rows; ++i)  // as SequentialPrefetch
        TouchMemoryPage(ahead.w + i * ahead.stride);
      if (ahead.rows == 0)
        TileBf16InPlace4x6<V, kM, false>(x, w, panel.stride, panel.k, ahead,
                                         t.tuning->prefetch_level, tile_sums);
      else
        TileBf16InPlace4x6<V, kM, true>(x, w, panel.stride, panel.k, ahead,
                                        t.tuning->prefetch_level, tile_sums);
      ahead.w += ahead.rows * ahead.stride;
      left -= ahead.rows;
      for (int64_t j = 0; j < kNr4x6; ++j)
        for (int64_t i = 0; i < kM; ++i) sums[i][kNr4x6 + n + j] = tile_sums[j][i];
    }
    const float* const bias = biased ? t.bias + panel.row_begin : nullptr;
    for (int64_t i = 0; i < kM; ++i)
      StoreDots(sums[i] + kNr4x6, bias, panel.rows, first, y + i * t.y_stride);
  });
}

template <class V>
struct Scratch4x6 {
  alignas(64) BF16 x[kMaxM4x6 * kBlockK<PairMath<V>>];
};

// Requires: M ≤ kMaxM4x6, N ≥ kNr4x6.
template <class V>
[[gnu::noinline]] void MultiplyInPlace4x6(const GemmTask& t) {
  constexpr int64_t kBlock = kBlockK<PairMath<V>>;
  BF16* const x = ScratchAs<Scratch4x6<V>>(t.scratch).x;
  const bool packs_a = t.x_stride * static_cast<int64_t>(sizeof(BF16)) % (kPage / 2) == 0;
  const auto panel_at = [](const GemmTask& of, int64_t n, int64_t k) {
    const auto* const w = static_cast<const BF16*>(of.w) + n * of.w_stride + k;
    return Panel<BF16>{w, of.w_stride, n, Min(kPanelN4x6, of.n - n), k, Min(kBlock, of.k - k), {}};
  };
  for (int64_t k = 0; k < t.k; k += kBlock) {
    if (packs_a) PackA4x6<V>(t, k, Min(kBlock, t.k - k), x);
    for (int64_t n = 0; n < t.n; n += kPanelN4x6) {
      Panel<BF16> next = {};
      if (n + kPanelN4x6 < t.n)
        next = panel_at(t, n + kPanelN4x6, k);
      else if (k + kBlock < t.k)
        next = panel_at(t, 0, k + kBlock);
      else if (t.next != nullptr && t.next->w_type == Element::kBF16)
        next = panel_at(*t.next, 0, 0);
      Panel4x6<V>(t, panel_at(t, n, k), packs_a ? x : nullptr, next);
    }
  }
}

// All bf16 B; with the bits of GemmBf16InPlace4x6.
template <class V>
void GemmBf16Panels(const GemmTask& t) {
  BlockScales<PairMath<V>> scales;
  DotPanels<PairMath<V>>(t, static_cast<const BF16*>(t.w), scales);
}

// Requires: M ≤ kMaxM4x6.
template <class V>
void GemmBf16InPlace4x6(const GemmTask& t) {
  if (t.n < kNr4x6) return GemmBf16Panels<V>(t);  // the last columns of C
  MultiplyInPlace4x6<V>(t);
}

// Requires: M ≤ V::kTileRows; A fits kMaxResidentA.
template <class V>
void GemmBf16SmallM(const GemmTask& t) {
  WithConstant<PairMath<V>::kTileRows>(t.m, [&](auto rows) {
    DotSequential<PairMath<V>, decltype(rows)::value>(t, static_cast<const BF16*>(t.w));
  });
}

}  // namespace
}  // namespace latte::cpu
