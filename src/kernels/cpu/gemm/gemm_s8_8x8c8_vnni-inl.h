// Five to eight rows of x and W of 8 bits with one scale per row, for gemm_s8_vnni-inl.h: eight
// bytes of a row of W in every place, beside eight bytes of eight rows of x.
//
//   x  [chunk][step: 8 columns][row of x][column]      a register: 8 columns of 8 rows
//
// Work      a step multiplies eight bytes of each of eight rows of W, where they lie, by one
//           register of x; two lanes make a sum, so that those of two rows of W become one register
//           in three instructions, where gemm_s8_16xm_vnni-inl.h takes nine for four rows of W and
//           each row of x. Totals stay in registers over all of K. x is the unsigned operand, 128
//           larger than it is: where a row of x is left over it holds 128 in all columns, and its
//           sums are what that adds. Beside eight rows of x W is made unsigned instead.
// Order     as int8_scales-inl.h says.
// Limits    what FitEights asks for; scratch 73 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/gemm_s8_bcast_vnni-inl.h"
#include "src/kernels/cpu/gemm/s8_chunk-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kEights = 8;               // rows of x, and rows of W of a tile
constexpr int64_t kLeastEights = 5;          // rows of x that are there
constexpr int64_t kEightsColumns = 1 << 13;  // the most
constexpr int64_t kEightsSteps = kByteChunk / kEights;

struct EightsChunk {
  alignas(64) int8_t codes[kEightsSteps][64];
  alignas(64) int32_t start[kSumLanes];  // what sums start from, beside unsigned W
  // Of the row of x of each lane of folded sums.
  alignas(64) float scale[kSumLanes];
};

// Lane 4q + j of folded sums: row 2q + j % 2 of x, row j / 2 of two of W.
constexpr int64_t kEightsRowOfX(int64_t lane) { return lane / 4 * 2 + lane % 2; }

struct EightsScratch {
  EightsChunk x[kEightsColumns / kByteChunk];
  alignas(64) float scales[kSumLanes];
  alignas(64) float totals[kSumLanes / 2][kSumLanes];  // of two rows of W each
};

// kOnes: x is unsigned, and its last row what that adds.
template <class V, bool kOnes>
void PackEights(const LinearTask& t, EightsChunk* to) {
  for (int64_t k = 0; k < t.k; k += kByteChunk, ++to) {
    typename V::Ints sum = V::ZeroInts();
    for (int64_t half = 0; half < 2; ++half) {
      typename V::Ints rows[kEights];
      for (int64_t i = 0; i < kEights; ++i) {
        const auto* const x = static_cast<const int8_t*>(t.x) + i * t.x_stride + k + 64 * half;
        rows[i] = i < t.m ? V::LoadBytes(x) : V::ZeroInts();
        if (kOnes) rows[i] = V::FlipSigns(rows[i]);
      }
      typename V::Ints even[4], odd[4];
      for (int64_t j = 0; j < 4; ++j) {
        even[j] = V::ZipLongsLow(rows[2 * j], rows[2 * j + 1]);
        odd[j] = V::ZipLongsHigh(rows[2 * j], rows[2 * j + 1]);
      }
      V::TurnQuarters(even);
      V::TurnQuarters(odd);
      for (int64_t j = 0; j < 4; ++j) {
        V::StoreBytes(to->codes[half * kEights + 2 * j], even[j]);
        V::StoreBytes(to->codes[half * kEights + 2 * j + 1], odd[j]);
        if (!kOnes) sum = V::AddInts(sum, V::SumBytes(even[j], odd[j]));
      }
    }
    V::StoreBytes(to->start, V::TimesInt(sum, -ByteOrder<V, I8>::kZero));
    for (int64_t lane = 0; lane < kSumLanes; ++lane) {
      const int64_t row = kEightsRowOfX(lane);
      to->scale[lane] = row < t.m ? t.x_scale[row * t.x_scale_stride + k / t.x_group] : 0;
    }
  }
}

// Totals of eight rows of W, `stride` bytes apart, over all chunks, two rows in a register. Lines
// `ahead` bytes behind each row are asked for: in memory's order they cost four cycles a chunk and
// row of W more.
template <class V, bool kOnes>
[[gnu::noinline]] void MultiplyEights(const char* w, int64_t stride, const EightsChunk* x,
                                      int64_t chunks, int64_t ahead, Cache into,
                                      float (*to)[kSumLanes]) {
  constexpr int64_t kLineSteps = 64 / kEights;
  typename V::Vec totals[kEights / 2];
#pragma GCC unroll 4
  for (int64_t i = 0; i < kEights / 2; ++i) totals[i] = V::Zero();
  NearRows<V, kEights> rows(w, stride);
#pragma GCC unroll 1
  for (int64_t chunk = 0; chunk < chunks; ++chunk, ++x) {
    typename V::Ints sums[kEights];
#pragma GCC unroll 8
    for (int64_t i = 0; i < kEights; ++i) sums[i] = kOnes ? V::ZeroInts() : V::LoadBytes(x->start);
#pragma GCC unroll 1
    for (int64_t step = 0; step < kEightsSteps; ++step) {
      if (step % kLineSteps == 0) {
#pragma GCC unroll 8
        for (int64_t i = 0; i < kEights; ++i) AskFor(rows[i], ahead, into);
        asm volatile("");  // g++ 12 drops what does nothing but this
      }
      const typename V::Ints xs = V::LoadBytes(x->codes[step]);
#pragma GCC unroll 8
      for (int64_t i = 0; i < kEights; ++i) {
        const typename V::Ints wi = V::SetEight(rows[i]);
        sums[i] = kOnes ? V::DotBytes(sums[i], xs, wi) : V::DotBytes(sums[i], V::FlipSigns(wi), xs);
      }
      rows.Advance(kEights);
    }
    const typename V::Vec scale = V::Load(x->scale);
#pragma GCC unroll 4
    for (int64_t i = 0; i < kEights / 2; ++i) {
      typename V::Ints sum = V::AddPairs(sums[2 * i], sums[2 * i + 1]);
      if (kOnes) sum = V::SubInts(sum, V::LastOfEights(sum));
      totals[i] = V::Fma(V::ToFloat(sum), scale, totals[i]);
    }
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < kEights / 2; ++i) V::Store(to[i], totals[i]);
}

// Writes rows [n, +16) of W.
template <class Kind>
void StoreEights(const LinearTask& t, int64_t n, const EightsScratch& s) {
  using V = typename Kind::V;
  typename V::Vec rows[kSumLanes];
  for (int64_t i = 0; i < kSumLanes; i += 2)
    V::SplitEights(V::Load(s.totals[i / 2]), rows[i], rows[i + 1]);
  V::Transpose(rows);
  for (int64_t i = 0; i < t.m; ++i)
    StoreTotal<Kind>(t, true, s.scales, n, kSumLanes, rows[i], t.y + i * t.y_stride + n);
}

inline bool FitEights(const LinearTask& t) {
  return t.m >= kLeastEights && t.m <= kEights && t.n >= kSumLanes && t.k <= kEightsColumns &&
         t.k % kByteChunk == 0;
}

// Requires: FitEights, one scale per row of W. The last rows of W may be multiplied twice.
template <class Kind, bool kOnes>
[[gnu::noinline]] void MultiplyByEights(const LinearTask& t) {
  using V = typename Kind::V;
  auto& s = InScratch<EightsScratch>(t.scratch);
  PackEights<V, kOnes>(t, s.x);
  const int64_t chunks = t.k / kByteChunk;
  for (int64_t n = 0; n < t.n; n += kSumLanes) {
    const int64_t first = Min(n, t.n - kSumLanes);
    const auto* const w = static_cast<const char*>(t.w) + first * t.w_stride;
    PrepareRunScales<V, kByteChunk, kSumLanes>(t.grid, first, kSumLanes, 0, 1, s.scales);
    int64_t ahead = kSumLanes * t.w_stride;
    if (n + kSumLanes >= t.n && t.next != nullptr) ahead = static_cast<const char*>(t.next->w) - w;
    for (int64_t i = 0; i < kSumLanes; i += kEights)
      MultiplyEights<V, kOnes>(w + i * t.w_stride, t.w_stride, s.x, chunks, ahead, t.ask_into,
                               s.totals + i / 2);
    StoreEights<Kind>(t, first, s);
  }
}

}  // namespace
}  // namespace latte::cpu
