// s8×s8 micro-kernels (vpdpbusd) for M > 12 if M fills at least 7/8 of the 16-lane groups,
// AVX512_VNNI. Lanes are rows of A; B is broadcast, 4 bytes per K step.
//
//   rows of A               16   32   48   64
//   rows of B, in place      6    6    4    3
//   rows of B, packed       12   12    8    6
//
// Packing   A once per call: [16 rows of A][chunk of 128 columns][K step, 4 columns][row][column].
//           In place: B is read where it is, over all whole chunks of a pass; sums and totals stay
//           in registers. Packed: a chunk of B is copied as unsigned bytes first. This serves
//           edges, and machines with two vector ports, where the sign flip of each broadcast (xor
//           128) costs as much as its product.
// Blocking  Slices of M ≤ 64, panels of 48 rows of B, passes of 4096 columns. No reduction over
//           lanes.
// Prefetch  In place: each row prefetches the row that will replace it. Packed: the next panel in
//           memory order; with many DRAM streams, each row prefetches its own next lines.
// Epilogue  Scales of A and B per chunk; a transpose of 16×16 totals at the end of a pass; the
//           bias.
// Order     as int8_scales-inl.h defines it.
// Limits    as gemm_s8_vnni-inl.h; int8 B.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch_weights-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/s8_chunk-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kMaxBcastM = 64;  // of a slice
constexpr int64_t kBcastPanelN = 48;
constexpr int64_t kBcastPassK = 4096;         // columns of a pass
constexpr int64_t kBcastPrefetchBytes = 256;  // distance at which a row prefetches its own lines
constexpr int64_t kBcastVectorBytes = 4 * kSumLanes;
constexpr int64_t kBcastSteps = kChunkK / 4;  // K steps of a chunk
// NR of a packed tile and of a tile in place, for kVectors registers of rows of A. Registers limit
// it; for one register, the sets of the L1 do if rows are half a page or a page apart.
template <int64_t kVectors>
constexpr int64_t kPackedNr = kVectors == 1 ? 12 : 24 / kVectors;
template <int64_t kVectors>
constexpr int64_t kInPlaceNr = kVectors == 1 ? 6 : 12 / kVectors;
constexpr int64_t kMaxPackedNr = 12;

// A chunk of 16 rows of A; missing rows are zero.
struct BcastAChunk {
  alignas(64) int8_t codes[kBcastSteps][kBcastVectorBytes];
  int32_t start[kSumLanes];  // initial sums
  float scale[kSumLanes];
};

// Columns [begin, +k) of A, `rows` rows in kVectors · 16 lanes.
template <int64_t kVectors>
struct BcastA {
  const BcastAChunk* chunk[kVectors];  // first chunk of every 16 rows
  int64_t begin, k, rows;

  int64_t chunks() const { return (k + kChunkK - 1) / kChunkK; }
};

struct BcastScratch {
  GroupScales<kBcastPanelN, kBcastPassK / kChunkK> scales;
  alignas(64) float totals[kBcastPanelN][kMaxBcastM];
  alignas(64) char chunk[kMaxPackedNr][kChunkK];  // of kMaxPackedNr rows of B
};

// Packs 16 rows of A for int8 B, chunk by chunk.
template <class V>
void PackABcast(const PackTask& t) {
  auto* to = static_cast<BcastAChunk*>(t.packed);
  for (int64_t k = 0; k < t.k; k += kChunkK, ++to) {
    typename V::Ints halves[2][kSumLanes];
    for (int64_t i = 0; i < kSumLanes; ++i) {
      to->scale[i] = 0;
      halves[0][i] = halves[1][i] = V::ZeroInts();
      if (i >= t.rows) continue;
      typename V::Ints values[2];
      LoadAChunk<V>(static_cast<const int8_t*>(t.x) + i * t.x_stride + k, t.k - k, values);
      for (int64_t half = 0; half < 2; ++half) halves[half][i] = values[half];
      to->scale[i] = t.x_scale[i * t.x_scale_stride + k / t.x_group];
    }
    typename V::Ints sum = V::ZeroInts();
    for (int64_t half = 0; half < 2; ++half) {
      V::Transpose(halves[half]);
      for (int64_t i = 0; i < kSumLanes; ++i) {
        V::StoreBytes(to->codes[half * kSumLanes + i], halves[half][i]);
        sum = V::AddInts(sum, V::SumBytes(halves[half][i]));
      }
    }
    V::StoreBytes(to->start, V::TimesInt(sum, -S8Layout<V, I8>::kZero));
  }
}

// Addresses of kN rows that are `stride` bytes apart, from few base registers: g++ 12 would keep
// one register per row.
template <class V, int64_t kN>
class StridedRows {
 public:
  StridedRows(const char* first, int64_t stride)
      : stride_(stride), three_strides_(V::Opaque(3 * stride)) {
    for (int64_t i = 0; i < kBases; ++i) rows_[i] = V::Opaque(first + 4 * i * stride);
  }

  const char* operator[](int64_t i) const {
    return rows_[i / 4] + (i % 4 == 3 ? three_strides_ : i % 4 * stride_);
  }
  void Advance(int64_t bytes) {
    for (const char*& row : rows_) row = V::Opaque(row + bytes);
  }

 private:
  static constexpr int64_t kBases = (kN + 3) / 4;

  const char* rows_[kBases];
  int64_t stride_, three_strides_;
};

template <class V, int64_t kN, int64_t kVectors>
[[gnu::always_inline]] inline void InitBcastSums(const BcastAChunk* const (&x)[kVectors],
                                                 typename V::Ints (&sums)[kN][kVectors]) {
#pragma GCC unroll 4
  for (int64_t v = 0; v < kVectors; ++v) {
    const typename V::Ints from = V::LoadBytes(x[v]->start);
#pragma GCC unroll 12
    for (int64_t i = 0; i < kN; ++i) sums[i][v] = from;
  }
}

// Adds a K step. kUnsigned: the bytes of B are already offset by 128.
template <class V, bool kUnsigned, int64_t kN, int64_t kVectors>
[[gnu::always_inline]] inline void AddBcastStep(StridedRows<V, kN>& w,
                                                const BcastAChunk* const (&x)[kVectors],
                                                int64_t step,
                                                typename V::Ints (&sums)[kN][kVectors]) {
  typename V::Ints xv[kVectors];
#pragma GCC unroll 4
  for (int64_t v = 0; v < kVectors; ++v) xv[v] = V::LoadBytes(x[v]->codes[step]);
#pragma GCC unroll 12
  for (int64_t i = 0; i < kN; ++i) {
    typename V::Ints wi = V::SetFour(w[i]);
    if constexpr (!kUnsigned) wi = V::FlipSigns(wi);
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) sums[i][v] = V::DotBytes(sums[i][v], wi, xv[v]);
  }
  w.Advance(4);
}

// total + a chunk of one row of B and one register of rows of A.
template <class Kind>
[[gnu::always_inline]] inline typename Kind::V::Vec AddBcastChunk(typename Kind::V::Ints sum,
                                                                  const float* w_scale,
                                                                  typename Kind::V::Vec x_scale,
                                                                  typename Kind::V::Vec total) {
  using V = typename Kind::V;
  return AddScaledChunk<V, Kind::kOneScale, 1>([&](int64_t) { return V::ToFloat(sum); },
                                               [&](int64_t) { return V::Set1(*w_scale); }, x_scale,
                                               total);
}

template <class Kind>
const float* ChunkScales(const BcastScratch& s, int64_t chunk, int64_t n) {
  return s.scales.scale + (Kind::kOneScale ? 0 : chunk * kBcastPanelN) + n;
}

// Chunks [0, count) of rows [n, +kN) of the panel, `stride` bytes apart, times all of A. Each row
// prefetches lines `ahead` bytes ahead.
template <class Kind, int64_t kN, int64_t kVectors>
[[gnu::noinline]] void TileS8VnniBcastInPlace(const char* w, int64_t stride, int64_t ahead,
                                              CacheLevel level, const BcastA<kVectors>& x,
                                              int64_t count, int64_t n, BcastScratch& s) {
  using V = typename Kind::V;
  constexpr int64_t kLineSteps = kBcastVectorBytes / 4;
  typename V::Vec totals[kN][kVectors];
#pragma GCC unroll 6
  for (int64_t i = 0; i < kN; ++i)
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) totals[i][v] = V::Load(s.totals[n + i] + v * kSumLanes);
  StridedRows<V, kN> rows(w, stride);
  const BcastAChunk* inputs[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) inputs[v] = x.chunk[v];
#pragma GCC unroll 1
  for (int64_t chunk = 0; chunk < count; ++chunk) {
    typename V::Ints sums[kN][kVectors];
    InitBcastSums<V>(inputs, sums);
#pragma GCC unroll 1
    for (int64_t step = 0; step < kBcastSteps; ++step) {
      if (step % kLineSteps == 0) {
#pragma GCC unroll 6
        for (int64_t i = 0; i < kN; ++i) Prefetch(rows[i], ahead, level);
        asm volatile("");  // g++ 12 removes a loop that only prefetches
      }
      AddBcastStep<V, false>(rows, inputs, step, sums);
    }
    const float* const scale = ChunkScales<Kind>(s, chunk, n);
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) {
      const typename V::Vec x_scale = V::Load(inputs[v]->scale);
#pragma GCC unroll 6
      for (int64_t i = 0; i < kN; ++i)
        totals[i][v] = AddBcastChunk<Kind>(sums[i][v], scale + i, x_scale, totals[i][v]);
      ++inputs[v];
    }
  }
#pragma GCC unroll 6
  for (int64_t i = 0; i < kN; ++i)
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) V::Store(s.totals[n + i] + v * kSumLanes, totals[i][v]);
}

// The packed chunk of rows [n, +kN) of the panel times all of A. Prefetches the lines of `ahead`.
template <class Kind, int64_t kN, int64_t kVectors>
[[gnu::noinline]] void TileS8VnniBcastPacked(SequentialPrefetch::Run ahead,
                                             const BcastA<kVectors>& x, BcastScratch& s,
                                             int64_t chunk, int64_t n) {
  using V = typename Kind::V;
  const BcastAChunk* inputs[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) inputs[v] = x.chunk[v] + chunk;
  typename V::Ints sums[kN][kVectors];
  InitBcastSums<V>(inputs, sums);
  StridedRows<V, kN> rows(s.chunk[0], kChunkK);
#pragma GCC unroll 1
  for (int64_t step = 0; step < kBcastSteps; ++step) {
    for (int64_t i = step; i < ahead.count; i += kBcastSteps) ahead.PrefetchLine(i);
    AddBcastStep<V, true>(rows, inputs, step, sums);
  }
  const float* const scale = ChunkScales<Kind>(s, chunk, n);
#pragma GCC unroll 4
  for (int64_t v = 0; v < kVectors; ++v) {
    const typename V::Vec x_scale = V::Load(inputs[v]->scale);
#pragma GCC unroll 12
    for (int64_t i = 0; i < kN; ++i) {
      float* const total = s.totals[n + i] + v * kSumLanes;
      V::Store(total, AddBcastChunk<Kind>(sums[i][v], scale + i, x_scale, V::Load(total)));
    }
  }
}

// Copies a chunk of kN rows with `values` valid columns as unsigned bytes. Missing rows repeat the
// last one. Each row prefetches `prefetch_offset` bytes ahead unless that is zero.
template <class V, int64_t kN>
void PackBChunk(const char* w, int64_t stride, int64_t rows, int64_t values,
                int64_t prefetch_offset, BcastScratch& s) {
  const bool whole = values >= kChunkK;
  for (int64_t i = 0; i < kN; ++i, w += i < rows ? stride : 0)
    for (int64_t at = 0; at < kChunkK; at += kBcastVectorBytes) {
      const typename V::Ints bytes =
          whole ? V::LoadBytes(w + at)
                : V::LoadBytesPartial(w + at, Max(0, Min(values - at, kBcastVectorBytes)));
      if (prefetch_offset != 0) PrefetchL1(w + at, prefetch_offset);
      V::StoreBytes(s.chunk[i] + at, V::FlipSigns(bytes));
    }
}

// Totals of rows [n, +rows) of B at the start of a pass; lanes are rows of A. Prefetches the lines
// of C that the end of the pass stores.
template <class V, int64_t kVectors>
void InitBcastTotals(const GemmTask& t, const BcastA<kVectors>& x, int64_t n, int64_t rows,
                     BcastScratch& s) {
  for (int64_t m = 0; m < kVectors * kSumLanes; m += kSumLanes)
    for (int64_t i = 0; i < rows; i += kSumLanes) {
      typename V::Vec block[kSumLanes];
      for (int64_t j = 0; j < kSumLanes; ++j) block[j] = V::Zero();
      if (x.begin > 0) {
        for (int64_t j = 0; j < Min(kSumLanes, x.rows - m); ++j)
          block[j] = LoadNext<V>(t.y + (m + j) * t.y_stride + n + i, rows - i);
        V::Transpose(block);
      }
      for (int64_t j = 0; j < kSumLanes; ++j) V::Store(s.totals[i + j] + m, block[j]);
    }
  for (int64_t m = 0; m < x.rows; ++m)
    for (int64_t i = 0; i < rows; i += kSumLanes) PrefetchW(t.y + m * t.y_stride + n + i);
}

template <class Kind, int64_t kVectors>
void StoreBcastTotals(const GemmTask& t, const BcastA<kVectors>& x, int64_t n, int64_t rows,
                      const BcastScratch& s) {
  using V = typename Kind::V;
  const bool last = x.begin + x.k == t.k;
  for (int64_t m = 0; m < kVectors * kSumLanes; m += kSumLanes)
    for (int64_t i = 0; i < rows; i += kSumLanes) {
      typename V::Vec block[kSumLanes];
      for (int64_t j = 0; j < kSumLanes; ++j) block[j] = V::Load(s.totals[i + j] + m);
      V::Transpose(block);
      for (int64_t j = 0; j < Min(kSumLanes, x.rows - m); ++j)
        StoreTotal<Kind>(t, last, s.scales.scale + i, n + i, rows - i, block[j],
                         t.y + (m + j) * t.y_stride + n + i);
    }
}

// Bytes from a row of a panel to the one that takes its place, perhaps of the next task.
inline int64_t NextPanelOffset(const GemmTask& t, int64_t n, int64_t k, const PanelBegin& next) {
  if (next.n < t.n) return ByteAt<I8>(t, next.n, next.k) - ByteAt<I8>(t, n, k);
  return t.next == nullptr ? 0 : static_cast<const char*>(t.next->w) - AddressOf<I8>(t, n, k);
}

// A panel times all of A. On uarchs with many DRAM streams all chunks are packed: they have two
// vector ports, so the sign flip of a broadcast would cost as much as its product.
template <class Kind, int64_t kVectors>
void BcastPanel(const GemmTask& t, const BcastA<kVectors>& x, int64_t n, int64_t rows,
                BcastScratch& s) {
  constexpr int64_t kN = kPackedNr<kVectors>;
  constexpr int64_t kInPlace = kInPlaceNr<kVectors>;
  const bool many_streams = t.tuning->many_dram_streams;
  const PanelBegin next = NextPanelOf(t, n, rows, x.begin, x.k);
  InitBcastTotals<typename Kind::V>(t, x, n, rows, s);
  const char* const from = AddressOf<I8>(t, n, x.begin);
  const int64_t in_place_rows = many_streams ? 0 : rows / kInPlace * kInPlace;
  const int64_t whole = x.k / kChunkK;
  for (int64_t i = 0; i < in_place_rows; i += kInPlace)
    TileS8VnniBcastInPlace<Kind, kInPlace>(from + i * t.w_stride, t.w_stride,
                                           NextPanelOffset(t, n, x.begin, next),
                                           t.tuning->prefetch_level, x, whole, i, s);
  const bool by_row = many_streams && t.w_stride >= kPage;  // shorter ones are faster in order
  const PrefetchDistance distance =
      StridedDistanceOf<I8>(t, n, rows, x.begin, x.k, kBcastPrefetchBytes);
  SequentialPrefetch ahead;
  if (many_streams && !by_row)
    ahead = SequentialPrefetchOf<I8>(t, next.n, kBcastPanelN, next.k, kBcastPassK,
                                     t.tuning->prefetch_level);
  ahead.SpreadOverRuns(x.chunks() * ((rows + kN - 1) / kN));
  for (int64_t chunk = 0; chunk < x.chunks(); ++chunk) {
    const int64_t values = x.k - chunk * kChunkK;
    const int64_t prefetch_offset = by_row ? distance.At(x.begin + chunk * kChunkK) : 0;
    for (int64_t i = chunk < whole ? in_place_rows : 0; i < rows; i += kN) {
      const char* const w = from + i * t.w_stride + chunk * kChunkK;
      PackBChunk<typename Kind::V, kN>(w, t.w_stride, rows - i, values, prefetch_offset, s);
      TileS8VnniBcastPacked<Kind, kN>(ahead.Next(), x, s, chunk, i);
    }
  }
  StoreBcastTotals<Kind>(t, x, n, rows, s);
}

// Packed A from row m of the task on, a multiple of 16, as PackABcast writes it.
template <class Kind, int64_t kVectors>
void BcastSlice(const GemmTask& t, const BcastAChunk* packed) {
  BcastA<kVectors> x;
  BcastScratch s;
  const int64_t row_chunks = (t.k + kChunkK - 1) / kChunkK;
  x.rows = t.m;
  for (x.begin = 0; x.begin < t.k; x.begin += x.k) {
    x.k = Min(kBcastPassK, t.k - x.begin);
    for (int64_t v = 0; v < kVectors; ++v) x.chunk[v] = packed + v * row_chunks + x.begin / kChunkK;
    for (int64_t n = 0; n < t.n; n += kBcastPanelN) {
      const int64_t rows = Min(kBcastPanelN, t.n - n);
      PrepareScales<Kind>(t, n, rows, x.begin, x.k, s.scales);
      BcastPanel<Kind>(t, x, n, rows, s);
    }
  }
}

// Slices of up to 64 packed rows of A, as even as the lanes allow.
template <class Kind>
void GemmS8VnniBcast(const GemmTask& task) {
  GemmTask t = task;
  t.next = &task;
  const auto* const packed = static_cast<const BcastAChunk*>(task.packed);
  const int64_t row_chunks = (task.k + kChunkK - 1) / kChunkK;
  const int64_t slices = (task.m + kMaxBcastM - 1) / kMaxBcastM;
  const int64_t rows = ((task.m + slices - 1) / slices + kSumLanes - 1) / kSumLanes * kSumLanes;
  for (int64_t m = 0; m < task.m; m += rows) {
    t.y = task.y + m * task.y_stride;
    t.m = Min(rows, task.m - m);
    if (m + rows >= task.m) t.next = task.next;
    WithConstant<kMaxBcastM / kSumLanes>((t.m + kSumLanes - 1) / kSumLanes, [&](auto vectors) {
      BcastSlice<Kind, decltype(vectors)::value>(t, packed + m / kSumLanes * row_chunks);
    });
  }
}

}  // namespace
}  // namespace latte::cpu
