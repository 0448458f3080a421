// s8×s8 micro-kernel 8×8, K unrolled by 8 (vpdpbusd), 5 ≤ M ≤ 8, one scale per row of B,
// AVX512_VNNI.
//
// Packing   A is packed once per task as [K/128][K/8][8 rows][8 bytes], so a register holds 8
//           columns of 8 rows. B is read in place: one 8-byte broadcast per row and K step.
// Blocking  Two adjacent lanes sum up one output; sums of two rows of B fold into one register per
//           chunk. Totals of 8 rows of B stay in registers over all of K. vpdpbusd takes one
//           unsigned operand. M < 8: A is offset by 128 and a spare row of 128s yields the
//           compensation. M = 8: B is offset by 128, sums start from −128·rowsum(A).
// Prefetch  Each row of B prefetches the row that takes its place.
// Epilogue  Scale of A per chunk; scale of B and the bias once per output.
// Order     that of int8_scales-inl.h.
// Limits    M ≤ 8; K ≤ 8192 and a multiple of 128; N ≥ 16; scratch 73 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/gemm_s8_bcast_vnni-inl.h"
#include "src/kernels/cpu/gemm/s8_chunk-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kTile8x8 = 8;  // MR and NR
constexpr int64_t kMaxK8x8 = 1 << 13;
constexpr int64_t kSteps8x8 = kChunkK / kTile8x8;

struct AChunk8x8 {
  alignas(64) int8_t codes[kSteps8x8][64];
  alignas(64) int32_t start[kSumLanes];  // initial sums if B is the unsigned operand
  // Scale of the row of A of each lane of folded sums.
  alignas(64) float scale[kSumLanes];
};

// Lane 4q + j of folded sums: row 2q + j % 2 of A, row j / 2 of two rows of B.
constexpr int64_t MOfLane8x8(int64_t lane) { return lane / 4 * 2 + lane % 2; }

struct Scratch8x8 {
  AChunk8x8 x[kMaxK8x8 / kChunkK];
  alignas(64) float scales[kSumLanes];
  alignas(64) float totals[kSumLanes / 2][kSumLanes];  // of two rows of B each
};

// kUnsignedA: A is the unsigned operand, and its last row yields the compensation.
template <class V, bool kUnsignedA>
void PackA8x8(const GemmTask& t, AChunk8x8* to) {
  for (int64_t k = 0; k < t.k; k += kChunkK, ++to) {
    typename V::Ints sum = V::ZeroInts();
    for (int64_t half = 0; half < 2; ++half) {
      typename V::Ints rows[kTile8x8];
      for (int64_t i = 0; i < kTile8x8; ++i) {
        const auto* const x = static_cast<const int8_t*>(t.x) + i * t.x_stride + k + 64 * half;
        rows[i] = i < t.m ? V::LoadBytes(x) : V::ZeroInts();
        if (kUnsignedA) rows[i] = V::FlipSigns(rows[i]);
      }
      typename V::Ints even[4], odd[4];
      for (int64_t j = 0; j < 4; ++j) {
        even[j] = V::InterleaveS64Low(rows[2 * j], rows[2 * j + 1]);
        odd[j] = V::InterleaveS64High(rows[2 * j], rows[2 * j + 1]);
      }
      V::TransposeInts128(even);
      V::TransposeInts128(odd);
      for (int64_t j = 0; j < 4; ++j) {
        V::StoreBytes(to->codes[half * kTile8x8 + 2 * j], even[j]);
        V::StoreBytes(to->codes[half * kTile8x8 + 2 * j + 1], odd[j]);
        if (!kUnsignedA) sum = V::AddInts(sum, V::SumBytes(even[j], odd[j]));
      }
    }
    V::StoreBytes(to->start, V::TimesInt(sum, -S8Layout<V, I8>::kZero));
    for (int64_t lane = 0; lane < kSumLanes; ++lane) {
      const int64_t row = MOfLane8x8(lane);
      to->scale[lane] = row < t.m ? t.x_scale[row * t.x_scale_stride + k / t.x_group] : 0;
    }
  }
}

// Totals of eight rows of B, `stride` bytes apart, over all chunks, two rows per register. Each row
// prefetches lines `prefetch_offset` bytes ahead, which is cheaper here than memory order.
template <class V, bool kUnsignedA>
[[gnu::noinline]] void TileS8Vnni8x8c8(const char* w, int64_t stride, const AChunk8x8* x,
                                       int64_t chunks, int64_t prefetch_offset, CacheLevel level,
                                       float (*to)[kSumLanes]) {
  constexpr int64_t kLineSteps = 64 / kTile8x8;
  typename V::Vec totals[kTile8x8 / 2];
#pragma GCC unroll 4
  for (int64_t i = 0; i < kTile8x8 / 2; ++i) totals[i] = V::Zero();
  StridedRows<V, kTile8x8> rows(w, stride);
#pragma GCC unroll 1
  for (int64_t chunk = 0; chunk < chunks; ++chunk, ++x) {
    typename V::Ints sums[kTile8x8];
#pragma GCC unroll 8
    for (int64_t i = 0; i < kTile8x8; ++i)
      sums[i] = kUnsignedA ? V::ZeroInts() : V::LoadBytes(x->start);
#pragma GCC unroll 1
    for (int64_t step = 0; step < kSteps8x8; ++step) {
      if (step % kLineSteps == 0) {
#pragma GCC unroll 8
        for (int64_t i = 0; i < kTile8x8; ++i) Prefetch(rows[i], prefetch_offset, level);
        asm volatile("");  // g++ 12 removes a loop that only prefetches
      }
      const typename V::Ints xs = V::LoadBytes(x->codes[step]);
#pragma GCC unroll 8
      for (int64_t i = 0; i < kTile8x8; ++i) {
        const typename V::Ints wi = V::SetEight(rows[i]);
        sums[i] =
            kUnsignedA ? V::DotBytes(sums[i], xs, wi) : V::DotBytes(sums[i], V::FlipSigns(wi), xs);
      }
      rows.Advance(kTile8x8);
    }
    const typename V::Vec scale = V::Load(x->scale);
#pragma GCC unroll 4
    for (int64_t i = 0; i < kTile8x8 / 2; ++i) {
      typename V::Ints sum = V::AddPairs(sums[2 * i], sums[2 * i + 1]);
      if (kUnsignedA) sum = V::SubInts(sum, V::LastOfEights(sum));
      totals[i] = V::Fma(V::ToFloat(sum), scale, totals[i]);
    }
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < kTile8x8 / 2; ++i) V::Store(to[i], totals[i]);
}

// Stores C for rows [n, +16) of B.
template <class Kind>
void Store8x8(const GemmTask& t, int64_t n, const Scratch8x8& s) {
  using V = typename Kind::V;
  typename V::Vec rows[kSumLanes];
  for (int64_t i = 0; i < kSumLanes; i += 2)
    V::SplitEights(V::Load(s.totals[i / 2]), rows[i], rows[i + 1]);
  V::Transpose(rows);
  for (int64_t i = 0; i < t.m; ++i)
    StoreTotal<Kind>(t, true, s.scales, n, kSumLanes, rows[i], t.y + i * t.y_stride + n);
}

// Requires: M ≤ kTile8x8, N ≥ 16, one scale per row of B. The last tile may repeat rows of the one
// before it.
template <class Kind, bool kUnsignedA>
[[gnu::noinline]] void GemmS8Vnni8x8(const GemmTask& t) {
  using V = typename Kind::V;
  auto& s = ScratchAs<Scratch8x8>(t.scratch);
  PackA8x8<V, kUnsignedA>(t, s.x);
  const int64_t chunks = t.k / kChunkK;
  for (int64_t n = 0; n < t.n; n += kSumLanes) {
    const int64_t first = Min(n, t.n - kSumLanes);
    const auto* const w = static_cast<const char*>(t.w) + first * t.w_stride;
    LoadGroupScales<V, kChunkK, kSumLanes>(t.grid, first, kSumLanes, 0, 1, s.scales);
    int64_t prefetch_offset = kSumLanes * t.w_stride;
    if (n + kSumLanes >= t.n && t.next != nullptr)
      prefetch_offset = static_cast<const char*>(t.next->w) - w;
    for (int64_t i = 0; i < kSumLanes; i += kTile8x8)
      TileS8Vnni8x8c8<V, kUnsignedA>(w + i * t.w_stride, t.w_stride, s.x, chunks, prefetch_offset,
                                     t.tuning->prefetch_level, s.totals + i / 2);
    Store8x8<Kind>(t, first, s);
  }
}

}  // namespace
}  // namespace latte::cpu
