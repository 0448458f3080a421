// Few rows of x for gemm_s8_vnni-inl.h: rows of W are multiplied where they lie, one after the
// other, each over all of a pass.
//
// Work      dot products of chunks, whose lanes are summed for 16 chunks (of four runs: four)
//           together; those of 16 rows of W are transposed, so that lanes are rows of W, and added.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch_sequential-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/s8_chunk-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kMaxGemvM = 4;         // of x
constexpr int64_t kGemvPassK = 1 << 14;  // of a pass
constexpr int64_t kMaxGemvGroups = kGemvPassK / kMinGroupK;
constexpr int64_t kBatchSums = kSumLanes * kSumLanes;  // of 16 rows of W and one of x

// Chunks whose sums make one vector.
template <class Kind>
constexpr int64_t kBatchChunks = kSumLanes / Kind::kGroups;

using GemvScales = GroupScales<kSumLanes, kMaxGemvGroups>;

struct GemvScratch {
  GemvScales scales;
  // Of groups: [row of x][row of W][run][chunk].
  alignas(64) int32_t sums[kMaxGemvGroups / kSumLanes * kBatchSums];
};

// Sums of the chunks of a group from `first` on, of a row of W and kM rows of x; `values` of it are
// there. Lines ahead are asked for. To `to`, [row of x][16 rows of W][run]
// [chunk].
template <class Kind, int64_t kM, bool kWhole>
inline void GemvDotBatch(const typename Kind::T* w, const AChunks& x, int64_t first, int64_t values,
                         const PrefetchDistance& ahead, int32_t* to) {
  using V = typename Kind::V;
  constexpr int64_t kBatch = kBatchChunks<Kind>;
  typename V::Ints quads[kM][kBatch / 4];
  const int8_t* const codes = x.codes + x.At(0, first) * kChunkK;
  const int64_t x_stride = x.row_step * kChunkK;
  // Unrolled, all of a group's lines would be asked for first.
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
      for (int64_t at = 0; at < Kind::Layout::kRowBytes; at += 64) ahead.PrefetchNext(from + at);
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

// total + a group's sums of 16 rows of W and row i of x.
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

// Rows [n, +rows) of W, 16 at most, and kM rows of x, all there are. Lines of the next ones' scales
// are asked for.
template <class Kind, int64_t kM>
void GemvRows16(const GemmTask& t, const typename Kind::T* w, const AChunks& x, int64_t n,
                int64_t rows, SequentialPrefetch& scale_prefetch, GemvScratch& s) {
  using V = typename Kind::V;
  constexpr int64_t kBatch = kBatchChunks<Kind>;
  const auto sums_of = [&s](int64_t batch) { return s.sums + batch / kBatch * kM * kBatchSums; };
  for (int64_t row = 0; row < rows; ++row) {
    scale_prefetch.PrefetchNext();
    const auto* const from = w + (n + row) * t.w_stride + x.begin / kValuesPer<typename Kind::T>;
    for (int64_t span = 0; span < x.chunks(); span += kSumLanes) {
      const PrefetchDistance ahead =
          PrefetchDistanceOf<typename Kind::T>(t, n + row, x.begin + span * kChunkK);
      ahead.TouchPages(from + span * Kind::Layout::kRowBytes,
                       Min(kSumLanes, x.chunks() - span) * Kind::Layout::kRowBytes);
      for (int64_t batch = span; batch < Min(span + kSumLanes, x.chunks()); batch += kBatch) {
        const auto* const w_batch = from + batch * Kind::Layout::kRowBytes;
        const int64_t values = x.k - batch * kChunkK;
        int32_t* const to = sums_of(batch) + row * kSumLanes;
        if (values >= kBatch * kChunkK)
          GemvDotBatch<Kind, kM, true>(w_batch, x, batch, values, ahead, to);
        else
          GemvDotBatch<Kind, kM, false>(w_batch, x, batch, values, ahead, to);
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
