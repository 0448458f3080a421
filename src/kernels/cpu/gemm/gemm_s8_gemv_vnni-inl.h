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
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/s8_chunk-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kMaxGemvM = 4;
constexpr int64_t kGemvPassK = 1 << 14;  // columns of a pass
constexpr int64_t kMaxGemvGroups = kGemvPassK / kMinGroupK;
constexpr int64_t kBatchSums = kSumLanes * kSumLanes;  // of 16 rows of B and one row of A

// Chunks whose sums fill one vector.
template <class Kind>
constexpr int64_t kBatchChunks = kSumLanes / Kind::kGroups;

using GemvScales = GroupScales<kSumLanes, kMaxGemvGroups>;

struct GemvScratch {
  GemvScales scales;
  // Per batch of chunks: [row of A][row of B][scale group][chunk].
  alignas(64) int32_t sums[kMaxGemvGroups / kSumLanes * kBatchSums];
};

// Integer sums of a batch of chunks from `first`, of a row of B with `values` valid columns and kM
// rows of A, to `to` as [row of A][16 rows of B][scale group][chunk]. Prefetches lines `ahead` bytes
// ahead.
template <class Kind, int64_t kM, bool kWhole>
inline void GemvDotBatch(const typename Kind::T* w, const AChunks& x, int64_t first, int64_t values,
                         int64_t ahead, CacheLevel level, int32_t* to) {
  using V = typename Kind::V;
  constexpr int64_t kBatch = kBatchChunks<Kind>;
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
      const typename V::Ints w0 =
          whole ? Kind::Layout::template Load<0>(from) : Kind::Layout::template Load<0>(from, left);
      const typename V::Ints w1 =
          whole ? Kind::Layout::template Load<1>(from) : Kind::Layout::template Load<1>(from, left);
      for (int64_t i = 0; i < kM; ++i) {
        const int8_t* const xi = codes + i * x_stride + (four + c) * kChunkK;
        lanes[i][c] = V::DotBytesAt(V::DotBytesAt(V::ZeroInts(), w0, xi), w1, xi + 64);
      }
    }
    for (int64_t i = 0; i < kM; ++i) quads[i][four / 4] = V::SumQuads(lanes[i]);
  }
  for (int64_t i = 0; i < kM; ++i)
    V::StoreBytes(to + i * kBatchSums, SumGroups<V, Kind::kGroups>(quads[i]));
}

// total + the sums of a batch of 16 rows of B and row i of A.
template <class Kind>
typename Kind::V::Vec GemvAddBatch(const AChunks& x, int64_t i, int64_t first,
                                   const GemvScales& scales, const int32_t* sums,
                                   typename Kind::V::Vec total) {
  using V = typename Kind::V;
  constexpr int64_t kBatch = kBatchChunks<Kind>;
  typename V::Ints groups[kSumLanes];
  for (int64_t row = 0; row < kSumLanes; ++row) groups[row] = V::LoadBytes(sums + row * kSumLanes);
  V::Transpose(groups);
  const int64_t count = Min(kBatch, x.chunks() - first);
#pragma GCC unroll 16
  for (int64_t c = 0; c < kBatch; ++c) {
    if (c == count) break;
    const int64_t at = x.At(i, first + c);
    const int64_t row = (first + c) * Kind::kGroups * kSumLanes;
    total = AddChunk<Kind, kSumLanes>(
        [&](int64_t group) { return groups[group * kBatch + c]; }, x.start + at * Kind::kGroups,
        x.scale[at], scales.scale + (Kind::kOneScale ? 0 : row), scales.zero + row, total);
  }
  return total;
}

// Rows [n, +rows) of B, at most 16, times all kM rows of A. Prefetches the scales of the next rows.
template <class Kind, int64_t kM>
void GemvRows16(const GemmTask& t, const typename Kind::T* w, const AChunks& x, int64_t n,
                int64_t rows, SequentialPrefetch& scale_prefetch, GemvScratch& s) {
  using V = typename Kind::V;
  using T = typename Kind::T;
  constexpr int64_t kBatch = kBatchChunks<Kind>;
  const CacheLevel level = t.tuning->prefetch_level;
  const PrefetchDistance distance = SequentialDistanceOf<T>(t);
  const auto sums_of = [&s](int64_t batch) { return s.sums + batch / kBatch * kM * kBatchSums; };
  for (int64_t row = 0; row < rows; ++row) {
    scale_prefetch.PrefetchNext();
    const auto* const from = w + (n + row) * t.w_stride + x.begin / kValuesPer<T>;
    for (int64_t span = 0; span < x.chunks(); span += kSumLanes) {
      const int64_t at = ByteAt<T>(t, n + row, x.begin + span * kChunkK);
      const int64_t ahead = distance.At(at);
      TouchPagesAhead<T>(t, distance, at,
                         Min(kSumLanes, x.chunks() - span) * Kind::Layout::kRowBytes);
      for (int64_t batch = span; batch < Min(span + kSumLanes, x.chunks()); batch += kBatch) {
        const auto* const w_batch = from + batch * Kind::Layout::kRowBytes;
        const int64_t values = x.k - batch * kChunkK;
        int32_t* const to = sums_of(batch) + row * kSumLanes;
        if (values >= kBatch * kChunkK)
          GemvDotBatch<Kind, kM, true>(w_batch, x, batch, values, ahead, level, to);
        else
          GemvDotBatch<Kind, kM, false>(w_batch, x, batch, values, ahead, level, to);
      }
    }
  }
  const bool last = x.begin + x.k == t.k;
  for (int64_t i = 0; i < kM; ++i) {
    float* const y = t.y + i * t.y_stride + n;
    typename V::Vec total = InitialTotal<V>(x.begin == 0, y, rows);
    for (int64_t batch = 0; batch < x.chunks(); batch += kBatch)
      total = GemvAddBatch<Kind>(x, i, batch, s.scales, sums_of(batch) + i * kBatchSums, total);
    StoreTotal<Kind>(t, last, s.scales.scale, n, rows, total, y);
  }
}

}  // namespace
}  // namespace latte::cpu
