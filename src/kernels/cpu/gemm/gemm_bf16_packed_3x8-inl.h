// bf16 A × bf16 B, micro-kernel 3×8×32, vdpbf16ps, large M, AVX512_BF16.
//
// Packing   A panel of 64 or 128 rows of B is packed per K block into scratch (in the L2) as [K
//           step] [256-bit half][two rows][row][column]: a register holds half a K step of two
//           rows. A is read in place; half a K step of a row is broadcast to both 256-bit lanes.
//
//              B   row 0 │ a0 b0        packed │ a0 a1        accumulator │ Σ0 Σ1
//                  row 1 │ a1 b1               │ b0 b1        A           │ a  a
//
// Blocking  24 accumulators, halved by 12 additions before the lane reduction, for 14 loads per 24
//           dot products. Sums of a row of tiles stay in the L1 until the whole panel is done;
//           lines of C are prefetched for writing meanwhile.
// Epilogue  C (+)= sums, the bias after the last K block.
// Order     Per K block 16 partial sums, pair i of columns in sum i mod 16; the four 128-bit lanes
//           first, (a + c) + (b + d), then (0 + 2) + (1 + 3); K blocks in order; the bias last.
// Limits    as gemm_f32-inl.h; scratch 512 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/multiply-inl.h"
#include "src/kernels/cpu/common/prefetch_weights-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/gemm_bf16_4x6-inl.h"
#include "src/kernels/cpu/gemm/gemm_f32-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kPanelN3x8 = 128;
// With prefetches into the L2, which then holds this panel and the next one.
constexpr int64_t kPanelN3x8L2 = 64;
constexpr int64_t kStepLanes3x8 = 2;
constexpr int64_t kRowPairs3x8 = 4;  // in a tile
constexpr int64_t kNr3x8 = 2 * kRowPairs3x8;
constexpr int64_t kMr3x8 = 3;
template <class V>
constexpr int64_t kLane256 = V::kPairElements / kStepLanes3x8;
// Packed elements of a K step of a tile.
template <class V>
constexpr int64_t kStep3x8 = kNr3x8* V::kPairElements;

// Packs the rows of a tile from row n. Rows behind the panel repeat its last row; columns behind K
// are zero.
template <class V>
void PackB3x8(const Panel<BF16>& panel, int64_t n, BF16* to) {
  const auto row = [&](int64_t i) { return panel.w + Min(n + i, panel.rows - 1) * panel.stride; };
  for (int64_t j = 0; j < kRowPairs3x8; ++j) {
    const BF16* const p = row(2 * j);
    const BF16* const q = row(2 * j + 1);
    BF16* step = to + j * V::kPairElements;
    const auto store = [&step](typename V::Pairs first, typename V::Pairs second) {
      V::StorePairs(step, first);
      V::StorePairs(step + kRowPairs3x8 * V::kPairElements, second);
      step += kStep3x8<V>;
    };
    const int64_t next = 2 * panel.stride * static_cast<int64_t>(sizeof(BF16));
    int64_t at = 0;
    for (; at + V::kPairElements <= panel.k; at += V::kPairElements) {
      PrefetchL2(p + at, next);  // some prefetched lines have not arrived or are evicted
      PrefetchL2(q + at, next);
      store(V::LoadTwo(p + at, q + at), V::LoadTwo(p + at + kLane256<V>, q + at + kLane256<V>));
    }
    if (at == panel.k) continue;
    const int64_t first = Min(panel.k - at, kLane256<V>);
    const int64_t second = panel.k - at - first;
    store(V::LoadTwoPartial(p + at, q + at, first),
          V::LoadTwoPartial(p + at + first, q + at + first, second));
  }
}

// Accumulators of a tile, [row of A][two rows of B][256-bit half of a K step].
template <class V, int64_t kM>
using Sums3x8 = typename V::Vec[kM][kRowPairs3x8][kStepLanes3x8];

// Explicit unrolling: g++ 12 otherwise spills the accumulators.
template <class V, int64_t kM, class LoadX>
[[gnu::always_inline]] inline void AddStep3x8(const BF16* w, const LoadX& load_x,
                                              Sums3x8<V, kM>& sums) {
#pragma GCC unroll 2
  for (int64_t h = 0; h < kStepLanes3x8; ++h) {
    typename V::Pairs wh[kRowPairs3x8];
#pragma GCC unroll 4
    for (int64_t j = 0; j < kRowPairs3x8; ++j)
      wh[j] = V::HoldPairs(V::LoadPairs(w + (h * kRowPairs3x8 + j) * V::kPairElements));
#pragma GCC unroll 4
    for (int64_t i = 0; i < kM; ++i) {
      const typename V::Pairs xh = load_x(i, h);
#pragma GCC unroll 4
      for (int64_t j = 0; j < kRowPairs3x8; ++j)
        sums[i][j][h] = V::DotPairs(sums[i][j][h], xh, wh[j]);
    }
  }
}

// out[i] = A[i]·B over k columns for the rows of B of a tile. Not inlined: accumulators and
// addresses need all registers. Each K step prefetches a line from `prefetch` on: redundant
// prefetches cost less than a test of how many lines are left.
template <class V, int64_t kM, CacheLevel kInto>
[[gnu::noinline]] void TileBf16Packed3x8(const BF16* x, int64_t x_stride, const BF16* w, int64_t k,
                                         const BF16* prefetch, float* out) {
  Sums3x8<V, kM> sums;
  const BF16* row[kM];
#pragma GCC unroll 4
  for (int64_t i = 0; i < kM; ++i) {
    row[i] = x + i * x_stride;
    asm("" : "+r"(row[i]));  // g++ 12 would keep a second address register per row
#pragma GCC unroll 4
    for (int64_t j = 0; j < kRowPairs3x8; ++j)
#pragma GCC unroll 2
      for (int64_t h = 0; h < kStepLanes3x8; ++h) sums[i][j][h] = V::Zero();
  }
  const int64_t whole = k - k % V::kPairElements;
  for (int64_t at = 0; at < whole; at += V::kPairElements) {
    Prefetch(prefetch + at, 0, kInto);
    AddStep3x8<V, kM>(
        w, [&](int64_t i, int64_t h) { return V::LoadSame(row[i] + at + h * kLane256<V>); }, sums);
    w += kStep3x8<V>;
  }
  if (whole < k) {
    const int64_t first = Min(k - whole, kLane256<V>);
    const int64_t second = k - whole - first;
    AddStep3x8<V, kM>(
        w,
        [&](int64_t i, int64_t h) {
          return h == 0 ? V::LoadSamePartial(row[i] + whole, first)
                        : V::LoadSamePartial(row[i] + whole + first, second);
        },
        sums);
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < kM; ++i, out += kPanelN3x8) {
    typename V::Vec row_pairs[kRowPairs3x8];
#pragma GCC unroll 4
    for (int64_t j = 0; j < kRowPairs3x8; ++j) row_pairs[j] = V::Add(sums[i][j][0], sums[i][j][1]);
    V::StoreFourSums(out, out + 4, V::AddQuarters(row_pairs[0], row_pairs[1]),
                     V::AddQuarters(row_pairs[2], row_pairs[3]));
  }
}

// All rows of A times a packed panel. The last tiles prefetch the next panel of B, after `wait`
// tiles; earlier prefetches would be evicted from the L2 by A.
template <class V>
void Panel3x8(const GemmTask& t, const Panel<BF16>& panel, const BF16* packed,
              SequentialPrefetch& ahead, int64_t wait) {
  const bool biased = t.bias != nullptr && panel.k_begin + panel.k == t.k;
  const bool first = panel.k_begin == 0;
  const int64_t columns = RoundUp(panel.k, V::kPairElements);
  ForEachRun<kMr3x8>(t.m, [&](int64_t m, auto count) {
    constexpr int64_t kM = decltype(count)::value;
    alignas(64) float sums[kM][kPanelN3x8];
    const auto* const x = static_cast<const BF16*>(t.x) + m * t.x_stride + panel.k_begin;
    float* const y = t.y + m * t.y_stride + panel.row_begin;
    for (int64_t i = 0; i < kM; ++i)
      for (int64_t n = 0; n < panel.rows; n += 16) PrefetchW(y + i * t.y_stride + n);
    // The last tiles prefetch the next rows of A.
    const int64_t before_last = panel.rows - (m + 2 * kM <= t.m ? kM * kNr3x8 : 0);
    const BF16* next_x = x + kM * t.x_stride;
    for (int64_t n = 0; n < panel.rows; n += kNr3x8) {
      const BF16* const tile = packed + n * columns;
      if (wait-- <= 0)
        if (const SequentialPrefetch::Run lines = ahead.Next(); lines.count > 0) {
          TileBf16Packed3x8<V, kM, CacheLevel::kL2>(
              x, t.x_stride, tile, panel.k, reinterpret_cast<const BF16*>(lines.line), sums[0] + n);
          continue;
        }
      const BF16* const prefetch = n >= before_last ? next_x : x;
      if (n >= before_last) next_x += t.x_stride;
      TileBf16Packed3x8<V, kM, CacheLevel::kL1>(x, t.x_stride, tile, panel.k, prefetch,
                                                sums[0] + n);
    }
    const float* const bias = biased ? t.bias + panel.row_begin : nullptr;
    for (int64_t i = 0; i < kM; ++i)
      StoreDots(sums[i], bias, panel.rows, first, y + i * t.y_stride);
  });
}

template <class V>
struct Scratch3x8 {
  alignas(64) BF16 packed[kPanelN3x8 * kBlockK<PairMath<V>>];
};

// Loops over panels of B and K blocks, as DotPanels does.
template <class V>
[[gnu::noinline]] void GemmBf16Packed3x8(const GemmTask& t) {
  constexpr int64_t kBlock = kBlockK<PairMath<V>>;
  const auto* const w = static_cast<const BF16*>(t.w);
  const int64_t runs = (t.m + kMr3x8 - 1) / kMr3x8;
  BF16* const packed = ScratchAs<Scratch3x8<V>>(t.scratch).packed;
  const int64_t panel_rows =
      t.tuning->prefetch_level == CacheLevel::kL2 ? kPanelN3x8L2 : kPanelN3x8;
  for (int64_t n = 0; n < t.n; n += panel_rows) {
    const int64_t rows = Min(panel_rows, t.n - n);
    const int64_t tiles = runs * ((rows + kNr3x8 - 1) / kNr3x8);
    for (int64_t k = 0; k < t.k; k += kBlock) {
      const int64_t columns = Min(kBlock, t.k - k);
      const int64_t next = k + columns;
      SequentialPrefetch ahead = SequentialPrefetchOf<BF16>(
          t, next < t.k ? n : n + rows, panel_rows, next < t.k ? next : 0, kBlock, CacheLevel::kL2);
      // A tile prefetches as many lines as it has K steps.
      const int64_t wait =
          tiles - ahead.SetRunLength((BytesOf<BF16>(columns) + kCacheLine - 1) / kCacheLine);
      const Panel<BF16> panel{w + n * t.w_stride + k, t.w_stride, n, rows, k, columns, {}};
      for (int64_t row = 0; row < rows; row += kNr3x8)
        PackB3x8<V>(panel, row, packed + row * RoundUp(columns, V::kPairElements));
      Panel3x8<V>(t, panel, packed, ahead, wait);
    }
  }
}

}  // namespace
}  // namespace latte::cpu
