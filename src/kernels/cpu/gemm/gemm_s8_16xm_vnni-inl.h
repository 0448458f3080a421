// s8×s8 and s8×u4 micro-kernel 16×M×128 (vpdpbusd), M ≤ 12, AVX512_VNNI.
//
// Packing   A in chunks (s8_chunk-inl.h). B is read in place, 16 rows at a time.
// Blocking  Four rows of B stay in registers while all rows of A pass. Lane sums of four rows
//           reduce together; a transpose puts 16 rows of B into lanes. Sums of several chunks wait
//           in scratch (8 KiB) before they are scaled and added.
// Prefetch  The next 16 rows in memory order, or, with many DRAM streams, each row its own lines.
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

constexpr int64_t kPassK16xM = 1 << 13;  // columns of a pass
constexpr int64_t kMaxGroups16xM = kPassK16xM / kMinGroupK;
constexpr int64_t kBatch16xM = 32;           // rows of A × chunks whose sums wait: 8 KiB
constexpr int64_t kPrefetchBytes16xM = 512;  // distance at which a row prefetches its own lines

struct Scratch16xM {
  GroupScales<kSumLanes, kMaxGroups16xM> scales;
  // [chunk, row of A][four rows of B][scale group][row]
  alignas(64) int32_t sums[kBatch16xM][4][kSumLanes];
  alignas(64) float totals[kMaxInPlaceM][kSumLanes];
};

// Whether each row prefetches its own lines. Rows shorter than half a page are read faster in
// memory order.
template <class T>
bool PrefetchesByRow(const GemmTask& t) {
  constexpr bool kBytes = kValuesPer<T> == 1;
  return t.tuning->many_dram_streams && (kBytes ? 4 : 2) * t.w_stride >= kPage;
}

// Integer sums of a chunk of four rows of B, with `values` valid columns, and all rows of A.
template <class Kind, bool kWhole>
inline void DotFourRows(const typename Kind::T* const (&w)[4], int64_t values, const AChunks& x,
                        int64_t chunk, int32_t (*to)[4][kSumLanes]) {
  using V = typename Kind::V;
  typename V::Ints w0[4], w1[4];
  for (int64_t j = 0; j < 4; ++j) {
    if constexpr (kWhole) {
      w0[j] = Kind::Layout::template Load<0>(w[j]);
      w1[j] = Kind::Layout::template Load<1>(w[j]);
    } else {
      w0[j] = Kind::Layout::template Load<0>(w[j], values);
      w1[j] = Kind::Layout::template Load<1>(w[j], values);
    }
  }
  const int8_t* codes = x.codes + x.At(0, chunk) * kChunkK;
  for (int64_t i = 0; i < x.rows; ++i, codes += kChunkK) {
    const typename V::Ints x0 = V::LoadBytes(codes);
    const typename V::Ints x1 = V::LoadBytes(codes + 64);
    typename V::Ints sums[4];
    for (int64_t j = 0; j < 4; ++j)
      sums[j] = V::DotBytes(V::DotBytes(V::ZeroInts(), w0[j], x0), w1[j], x1);
    V::StoreBytes(to[i][0], V::SumQuads(sums));
  }
}

// Adds the sums of chunks [first, +count) of 16 rows of B to the totals of all rows of A.
template <class Kind>
void AddChunks16xM(const AChunks& x, int64_t first, int64_t count, Scratch16xM& s) {
  using V = typename Kind::V;
  for (int64_t i = 0; i < x.rows; ++i) {
    typename V::Vec total = V::Load(s.totals[i]);
    for (int64_t c = 0; c < count; ++c) {
      typename V::Ints groups[4];
      for (int64_t j = 0; j < 4; ++j) groups[j] = V::LoadBytes(s.sums[c * x.rows + i][j]);
      V::TransposeInts128(groups);
      if constexpr (Kind::kGroups == 1)
        groups[0] = V::AddInts(V::AddInts(groups[0], groups[1]), V::AddInts(groups[2], groups[3]));
      const int64_t at = x.At(i, first + c);
      const int64_t row = (first + c) * Kind::kGroups * kSumLanes;
      total = AddChunk<Kind, kSumLanes>(
          [&](int64_t group) { return groups[group]; }, x.start + at * Kind::kGroups, x.scale[at],
          s.scales.scale + (Kind::kOneScale ? 0 : row), s.scales.zero + row, total);
    }
    V::Store(s.totals[i], total);
  }
}

// Rows [n, +rows) of B, at most 16, times all rows of A.
template <class Kind>
void TileS8Vnni16xM(const GemmTask& t, const typename Kind::T* w, const AChunks& x, int64_t n,
                    int64_t rows, Scratch16xM& s) {
  using V = typename Kind::V;
  using T = typename Kind::T;
  for (int64_t i = 0; i < x.rows; ++i)
    V::Store(s.totals[i], InitialTotal<V>(x.begin == 0, t.y + i * t.y_stride + n, rows));
  const bool by_row = PrefetchesByRow<T>(t);
  const PrefetchDistance distance =
      StridedDistanceOf<T>(t, n, rows, x.begin, x.k, kPrefetchBytes16xM);
  SequentialPrefetch weights;
  if (!by_row)
    weights = SequentialPrefetchOf<T>(t, n + rows, kSumLanes, x.begin, x.k,
                                      t.tuning->prefetch_level, 4 * x.chunks());
  SequentialPrefetch scales = ScalePrefetchOf(t, n + rows, kSumLanes, x.begin, x.k, 4);
  const int64_t batch = kBatch16xM / x.rows;
  const T* const from = w + n * t.w_stride + x.begin / kValuesPer<T>;
  const T* row[kSumLanes];  // missing rows repeat the last one
  for (int64_t i = 0; i < kSumLanes; ++i) row[i] = from + Min(i, rows - 1) * t.w_stride;
  for (int64_t first = 0; first < x.chunks(); first += batch) {
    const int64_t count = Min(batch, x.chunks() - first);
    const auto multiply = [&](int64_t c, int64_t four) {
      const int64_t at = (first + c) * Kind::Layout::kRowBytes;
      const T* const rows_of_w[4] = {row[4 * four] + at, row[4 * four + 1] + at,
                                     row[4 * four + 2] + at, row[4 * four + 3] + at};
      if (by_row) {
        const int64_t ahead = distance.At(x.begin / kValuesPer<T> + at);
        for (const T* const p : rows_of_w)
          for (int64_t line = 0; line < Kind::Layout::kRowBytes; line += kCacheLine)
            PrefetchL1(p, ahead + line);
      } else {
        weights.PrefetchNext();
      }
      const int64_t values = x.k - (first + c) * kChunkK;
      auto* const to = reinterpret_cast<int32_t(*)[4][kSumLanes]>(s.sums[c * x.rows][four]);
      if (values >= kChunkK)
        DotFourRows<Kind, true>(rows_of_w, values, x, first + c, to);
      else
        DotFourRows<Kind, false>(rows_of_w, values, x, first + c, to);
    };
    if (by_row) {
      scales.PrefetchNext();
      for (int64_t c = 0; c < count; ++c)
        for (int64_t four = 0; four < kSumLanes / 4; ++four) multiply(c, four);
    } else {
      for (int64_t four = 0; four < kSumLanes / 4; ++four) {
        scales.PrefetchNext();
        for (int64_t c = 0; c < count; ++c) multiply(c, four);
      }
    }
    AddChunks16xM<Kind>(x, first, count, s);
  }
  const bool last = x.begin + x.k == t.k;
  for (int64_t i = 0; i < x.rows; ++i)
    StoreTotal<Kind>(t, last, s.scales.scale, n, rows, V::Load(s.totals[i]),
                     t.y + i * t.y_stride + n);
}

}  // namespace
}  // namespace latte::cpu
