// s8×s8 (vpmaddwd) and s8×u4 (vpmaddubsw) micro-kernel M×8×128, M ≤ 4, AVX2.
//
// Packing   A in even-odd order (s8_even_odd-inl.h), in the L1. B is read in place, row by row in
//           memory order, each row over a whole pass.
// Blocking  A chunk leaves 8 partial sums; 8 registers reduce together, and an 8×8 transpose puts
//           rows of B into lanes.
// Prefetch  Each load prefetches a fixed distance ahead.
// Epilogue  Scales of A and B per chunk; the bias after the last pass.
// Order     that of int8_scales-inl.h.
// Limits    as gemm_s8_avx2-inl.h.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch_weights-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/s8_even_odd-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kMaxGemvMAvx2 = 4;
constexpr int64_t kGemvPassBytes = 16 << 10;  // of A in a pass
constexpr int64_t kGemvPassGroups = 512;      // scale groups of a row of B in a pass
constexpr int64_t kBatchSums = kS32Lanes * kS32Lanes;

struct GemvScratchAvx2 {
  EvenOddA x;
  GroupScales<kS32Lanes, kGemvPassGroups> scales;
  // Per batch of chunks: [row of A][row of B][sum].
  alignas(32) int32_t sums[kGemvPassGroups / kS32Lanes * kBatchSums];
};

// Chunks whose sums fill one vector, and the lane of a scale group of a chunk in it.
template <class Kind>
constexpr int64_t kBatchChunks = kS32Lanes / Kind::kGroups;
template <class Kind>
constexpr int64_t PlaceOf(int64_t chunk, int64_t group) {
  return Kind::kGroups == 1 ? chunk : group % 2 * 4 + chunk * 2 + group / 2;
}

// Integer sums of a batch of chunks from `first`, of a row of B with `values` valid columns and kM
// rows of A, to `to` as [row of A][8 rows of B][sum]. Prefetches lines `ahead` bytes ahead.
template <class Kind, int64_t kM, bool kWhole>
inline void GemvDotBatch(const typename Kind::T* w, const EvenOddA& x, int64_t first,
                         int64_t values, int64_t ahead, CacheLevel level, int32_t* to) {
  using Layout = typename Kind::Layout;
  using V = typename Kind::V;
  using Ints = typename V::Ints;
  // Registers of a chunk: one, or one per unit, which is two scale groups.
  constexpr int64_t kVectors = Kind::kGroups == 1 ? 1 : Layout::kUnits;
  constexpr int64_t kPerVector = Layout::kUnits / kVectors;
  constexpr int64_t kCount = kBatchChunks<Kind> * kVectors;
  Ints fours[kM][kCount / 4];
  const int8_t* const codes = x.codes + x.At(0, first) * kAChunkBytes<Layout>;
  const int64_t x_stride = x.row_step * kAChunkBytes<Layout>;
  // Not unrolled: g++ would issue all prefetches of the batch first.
#pragma GCC unroll 1
  for (int64_t four = 0; four < kCount / 4; ++four) {
    Ints lanes[kM][4];
#pragma GCC unroll 4
    for (int64_t j = 0; j < 4; ++j) {
      for (int64_t i = 0; i < kM; ++i) lanes[i][j] = V::ZeroInts();
      const int64_t begin = (four * 4 + j) * kPerVector;  // unit of the batch
      if (!kWhole && begin * kUnitValues<Layout> >= values) continue;
      for (int64_t at = 0; at < kPerVector * kVectorBytes; at += kCacheLine)
        Prefetch(w + begin * kVectorBytes + at, ahead, level);
#pragma GCC unroll 4
      for (int64_t u = begin; u < begin + kPerVector; ++u) {
        const Ints unit = LoadUnit<Layout, kWhole>(w, u * kVectorBytes, values);
        const Ints even = Layout::Even(unit);
        const Ints odd = Layout::Odd(unit);
        for (int64_t i = 0; i < kM; ++i) {
          const int8_t* const xi = codes + i * x_stride + u * kUnitBytes;
          lanes[i][j] = Layout::AddDot(lanes[i][j], even, xi);
          lanes[i][j] = Layout::AddDot(lanes[i][j], odd, xi + kVectorBytes);
        }
      }
      for (int64_t i = 0; i < kM; ++i) lanes[i][j] = Layout::Finish(lanes[i][j]);
    }
    for (int64_t i = 0; i < kM; ++i) fours[i][four] = V::SumFours(lanes[i]);
  }
  for (int64_t i = 0; i < kM; ++i)
    V::StoreBytes(to + i * kBatchSums, Kind::kGroups == 1
                                           ? V::AddHalves(fours[i][0], fours[i][kCount / 4 - 1])
                                           : fours[i][0]);
}

// total + the sums of a batch of eight rows of B and row i of A.
template <class Kind>
typename Kind::V::Vec GemvAddBatch(const EvenOddA& x, int64_t i, int64_t first,
                                   const GemvScratchAvx2& s, const int32_t* sums,
                                   typename Kind::V::Vec total) {
  using V = typename Kind::V;
  constexpr int64_t kBatch = kBatchChunks<Kind>;
  typename V::Ints groups[kS32Lanes];
#pragma GCC unroll 8
  for (int64_t row = 0; row < kS32Lanes; ++row) groups[row] = V::LoadBytes(sums + row * kS32Lanes);
  V::Transpose(groups);
  const int64_t count = Min(kBatch, x.chunks() - first);
#pragma GCC unroll 8
  for (int64_t c = 0; c < kBatch; ++c) {
    if (c == count) break;
    const int64_t at = x.At(i, first + c);
    const int64_t row = (first + c) * Kind::kGroups * kS32Lanes;
    total = AddChunk<Kind, kS32Lanes>(
        [&](int64_t group) { return groups[PlaceOf<Kind>(c, group)]; },
        x.start + at * Kind::kGroups, x.scale[at], s.scales.scale + (Kind::kOneScale ? 0 : row),
        s.scales.zero + row, total);
  }
  return total;
}

// Rows [n, +rows) of B, at most eight, times all kM rows of A. Prefetches the scales of the next
// rows.
template <class Kind, int64_t kM>
void GemvRows8(const GemmTask& t, const typename Kind::T* w, const EvenOddA& x, int64_t n,
               int64_t rows, SequentialPrefetch& scale_prefetch, GemvScratchAvx2& s) {
  using V = typename Kind::V;
  using T = typename Kind::T;
  using Layout = typename Kind::Layout;
  constexpr int64_t kBatch = kBatchChunks<Kind>;
  const CacheLevel level = t.tuning->prefetch_level;
  const PrefetchDistance distance = SequentialDistanceOf<T>(t);
  const auto sums_of = [&s](int64_t batch) { return s.sums + batch / kBatch * kM * kBatchSums; };
  const bool whole = x.begin == 0 && x.k == t.k;
  for (int64_t row = 0; row < rows; ++row) {
    scale_prefetch.PrefetchNext();
    const T* const from = w + (n + row) * t.w_stride + x.begin / kValuesPer<T>;
    for (int64_t span = 0; span < x.chunks(); span += kS32Lanes) {
      const int64_t ahead = whole ? distance.At(ByteAt<T>(t, n + row, span * kChunkK))
                                  : ByteAt<T>(t, 1, 0);  // of the next row
      for (int64_t batch = span; batch < Min(span + kS32Lanes, x.chunks()); batch += kBatch) {
        const T* const w_batch = from + batch * Layout::kRowBytes;
        const int64_t values = x.k - batch * kChunkK;
        int32_t* const to = sums_of(batch) + row * kS32Lanes;
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
      total = GemvAddBatch<Kind>(x, i, batch, s, sums_of(batch) + i * kBatchSums, total);
    StoreTotal<Kind>(t, last, s.scales.scale, n, rows, total, y);
  }
}

template <class Kind>
[[gnu::noinline]] void GemmS8Avx2Gemv(const GemmTask& t, const typename Kind::T* w) {
  auto& s = ScratchAs<GemvScratchAvx2>(t.scratch);
  EvenOddA& x = s.x;
  x.rows = t.m;
  x.chunk_step = 1;
  constexpr int64_t kLongest = kGemvPassGroups / Kind::kGroups;
  const int64_t columns =
      Min(kGemvPassBytes / kAChunkBytes<typename Kind::Layout> / t.m, kLongest) * kChunkK;
  for (x.begin = 0; x.begin < t.k; x.begin += x.k) {
    x.k = Min(columns, t.k - x.begin);
    x.row_step = x.chunks();
    PackEvenOddA<Kind>(t, x);
    for (int64_t n = 0; n < t.n; n += kS32Lanes) {
      const int64_t rows = Min(kS32Lanes, t.n - n);
      PrepareScales<Kind>(t, n, rows, x.begin, x.k, s.scales);
      SequentialPrefetch scale_prefetch =
          ScalePrefetchOf(t, n + rows, kS32Lanes, x.begin, x.k, rows);
      WithConstant<kMaxGemvMAvx2>(t.m, [&](auto count) {
        GemvRows8<Kind, decltype(count)::value>(t, w, x, n, rows, scale_prefetch, s);
      });
    }
  }
}

}  // namespace
}  // namespace latte::cpu
