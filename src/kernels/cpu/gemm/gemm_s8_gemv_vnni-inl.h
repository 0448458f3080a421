// s8×s8 and s8×u4 micro-kernel M×16×128 (vpdpbusd), M ≤ 4, AVX512_VNNI.
//
// Packing   A in chunks (s8_chunk-inl.h), in the L1. B is read in place, row by row in memory
//           order, each row over a whole pass of 16,384 columns.
// Blocking  Dot products of a chunk leave 16 partial sums; sums of 16 chunks (four, with four
//           scale groups) reduce together, and a 16×16 transpose puts rows of B into lanes.
// Prefetch  Each load prefetches a fixed distance ahead.
// Epilogue  Scales of A and B per chunk; the bias after the last pass.
// Order     that of int8_scales-inl.h.
// Limits    as gemm_s8_vnni-inl.h.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch_weights-inl.h"
#include "src/kernels/cpu/gemm/s8_chunk-inl.h"
#include "src/kernels/cpu/gemm/s8_gemv-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

template <class KindType>
struct GemvVnni {
  using Kind = KindType;
  using A = AChunks;
  static constexpr int64_t kLanes = kSumLanes;
  static constexpr int64_t kColumns = 1 << 14;  // of a pass
  static constexpr int64_t kMaxGroups = kColumns / kMinGroupK;

  static int64_t PassK(int64_t) { return kColumns; }
  static int64_t RowStep(const A&) { return kColumns / kChunkK; }
  static void PackA(const GemmTask& t, A& x) { PackAChunks<Kind, false>(t, x); }

  static int64_t Ahead(const GemmTask& t, const PrefetchDistance& distance, const A& x, int64_t row,
                       int64_t span) {
    using T = typename Kind::T;
    const int64_t at = ByteAt<T>(t, row, x.begin + span * kChunkK);
    TouchMemoryPagesAhead<T>(t, distance, at,
                             Min(kLanes, x.chunks() - span) * Kind::Layout::kRowBytes);
    return distance.At(at);
  }
  static constexpr int64_t PlaceOf(int64_t chunk, int64_t group) {
    return group * (kLanes / Kind::kGroups) + chunk;
  }

  // Integer sums of a batch of chunks from `first`, of a row of B with `values` valid columns and
  // kM rows of A, to `to` as [row of A][16 rows of B][scale group][chunk]. Prefetches lines `ahead`
  // bytes ahead.
  template <int64_t kM, bool kWhole>
  static inline void DotBatch(const typename Kind::T* w, const A& x, int64_t first, int64_t values,
                              int64_t ahead, CacheLevel level, int32_t* to) {
    using V = typename Kind::V;
    constexpr int64_t kBatch = kLanes / Kind::kGroups;
    typename V::Ints quads[kM][kBatch / 4];
    const int8_t* const codes = x.codes + x.At(0, first) * kChunkK;
    const int64_t x_stride = x.row_step * kChunkK;
    // Not unrolled: g++ would issue all prefetches of the batch first.
#pragma GCC unroll 1
    for (int64_t four = 0; four < kBatch; four += 4) {
      typename V::Ints lanes[kM][4];
#pragma GCC unroll 4
      for (int64_t c = 0; c < 4; ++c) {
        const int64_t left = values - (four + c) * kChunkK;
        if (!kWhole && left <= 0) {
          for (int64_t i = 0; i < kM; ++i) lanes[i][c] = V::ZeroInts();
          continue;
        }
        const auto* const from = w + (four + c) * Kind::Layout::kRowBytes;
        for (int64_t at = 0; at < Kind::Layout::kRowBytes; at += kCacheLine)
          Prefetch(from + at, ahead, level);
        const bool whole = kWhole || left >= kChunkK;
        const typename V::Ints w0 = whole ? Kind::Layout::template Load<0>(from)
                                          : Kind::Layout::template Load<0>(from, left);
        const typename V::Ints w1 = whole ? Kind::Layout::template Load<1>(from)
                                          : Kind::Layout::template Load<1>(from, left);
        for (int64_t i = 0; i < kM; ++i) {
          const int8_t* const xi = codes + i * x_stride + (four + c) * kChunkK;
          lanes[i][c] = V::DotBytesAt(V::DotBytesAt(V::ZeroInts(), w0, xi), w1, xi + 64);
        }
      }
      for (int64_t i = 0; i < kM; ++i) quads[i][four / 4] = V::SumQuads(lanes[i]);
    }
    for (int64_t i = 0; i < kM; ++i)
      V::StoreBytes(to + i * kLanes * kLanes, SumGroups<V, Kind::kGroups>(quads[i]));
  }
};

}  // namespace
}  // namespace latte::cpu
