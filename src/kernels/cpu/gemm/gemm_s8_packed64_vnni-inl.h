// s8×s8 and s8×u4 micro-kernel 6×64×4 (vpdpbusd), large M, AVX512_VNNI.
//
// Packing   A in chunks (s8_chunk-inl.h). A chunk of 64 rows of B is packed into scratch (8 KiB, in
//           the L1) so that lanes are rows of B:
//
//             [16 rows of B][K step of 4 columns][row][column]      a register: 4 columns of 16 rows
//
// Blocking  24 accumulators: 6 rows of A × 4 registers of B. A K step broadcasts 4 bytes per row of
//           A. No reduction over lanes; a sum becomes f32 once per scale group and output.
// Prefetch  Each tile prefetches some lines of the next panel. Packing prefetches none, because that
//           would delay its loads.
// Epilogue  Scales of A and B per chunk; totals wait in scratch; the bias after the last pass.
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

constexpr int64_t kPanelN6x64 = 64;
constexpr int64_t kPanelVectors6x64 = kPanelN6x64 / kSumLanes;
constexpr int64_t kMaxPassK6x64 = 4096;
constexpr int64_t kMaxGroups6x64 = kMaxPassK6x64 / kMinGroupK;
// Columns of a pass.
constexpr int64_t PassK6x64(int64_t m) { return Min(kMaxAChunks / m * kChunkK, kMaxPassK6x64); }
constexpr int64_t kMr6x64 = 6;
constexpr int64_t kBVectorBytes = 4 * kSumLanes;
constexpr int64_t kSteps6x64 = kChunkK / 4;
constexpr int64_t kBChunkBytes6x64 = kSteps6x64 * kBVectorBytes;  // of a chunk of 16 rows of B

template <class T>
struct Scratch6x64 {
  const T* rows[kPanelN6x64];  // of B; missing rows repeat the last one
  alignas(64) uint8_t w[kPanelVectors6x64 * kBChunkBytes6x64];
  GroupScales<kPanelN6x64, kMaxGroups6x64> scales;
  alignas(64) int32_t sums[kChunkGroups][kMr6x64][kPanelN6x64];  // of a tile
  alignas(64) float totals[kMaxTaskM][kPanelN6x64];
};

// Half a chunk of 16 rows, `at` elements from their starts.
template <class Kind, int64_t kLane256, bool kWhole>
inline void TransposeRows16(const typename Kind::T* const* rows, int64_t at, int64_t values,
                            uint8_t* to) {
  using V = typename Kind::V;
  typename V::Ints quads[kSumLanes];
  for (int64_t i = 0; i < kSumLanes; ++i) {
    if constexpr (kWhole)
      quads[i] = Kind::Layout::template Load<kLane256>(rows[i] + at);
    else
      quads[i] = Kind::Layout::template Load<kLane256>(rows[i] + at, values);
  }
  V::Transpose(quads);
  for (int64_t lane = 0; lane < kSumLanes; ++lane)
    V::StoreBytes(to + Kind::Layout::StepOf(kLane256, lane) * kBVectorBytes, quads[lane]);
}

// Packs a chunk of kN · 16 rows of B with `values` valid columns.
template <class Kind, int64_t kN, bool kWhole>
void PackB6x64(Scratch6x64<typename Kind::T>& s, int64_t chunk, int64_t values) {
  const int64_t at = chunk * Kind::Layout::kRowBytes;
  for (int64_t j = 0; j < kN; ++j) {
    const typename Kind::T* const* const rows = s.rows + j * kSumLanes;
    uint8_t* const to = s.w + j * kBChunkBytes6x64;
    TransposeRows16<Kind, 0, kWhole>(rows, at, values, to);
    TransposeRows16<Kind, 1, kWhole>(rows, at, values, to);
  }
}

// to[i][j] = kSteps K steps of kM rows of A and kN registers of rows of B.
template <class V, int64_t kSteps, int64_t kM, int64_t kN>
[[gnu::noinline]] void TileS8Vnni6x64(const uint8_t* w, const int8_t* x, int64_t x_stride,
                                      SequentialPrefetch::Run ahead, int32_t (*to)[kPanelN6x64]) {
  typename V::Ints sums[kM][kN];
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) sums[i][j] = V::ZeroInts();
  for (int64_t step = 0; step < kSteps; ++step, w += kBVectorBytes, x += 4) {
    for (int64_t i = step; i < ahead.count; i += kSteps) ahead.PrefetchLine(i);
    typename V::Ints wj[kN];
    for (int64_t j = 0; j < kN; ++j) wj[j] = V::LoadBytes(w + j * kBChunkBytes6x64);
    for (int64_t i = 0; i < kM; ++i) {
      const typename V::Ints xi = V::SetFour(x + i * x_stride);
      for (int64_t j = 0; j < kN; ++j) sums[i][j] = V::DotBytes(sums[i][j], wj[j], xi);
    }
  }
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) V::StoreBytes(to[i] + kSumLanes * j, sums[i][j]);
}

// Adds a chunk of rows [i, +kM) of A times a panel of kN · 16 rows of B.
template <class Kind, int64_t kM, int64_t kN>
void AddTile6x64(const AChunks& x, int64_t i, int64_t chunk, SequentialPrefetch& ahead,
                 Scratch6x64<typename Kind::T>& s) {
  using V = typename Kind::V;
  constexpr int64_t kSteps = kSteps6x64 / Kind::kGroups;
  const int64_t at = x.At(i, chunk);
  for (int64_t group = 0; group < Kind::kGroups; ++group) {
    TileS8Vnni6x64<V, kSteps, kM, kN>(s.w + group * kSteps * kBVectorBytes,
                                      x.codes + at * kChunkK + group * Kind::kGroup,
                                      x.row_step * kChunkK, ahead.Next(), s.sums[group]);
  }
  const int64_t scaled = Kind::kOneScale ? 0 : chunk * Kind::kGroups * kPanelN6x64;
  const int64_t zeroed = chunk * Kind::kGroups * kPanelN6x64;
  for (int64_t r = 0; r < kM; ++r) {
    const int64_t of_row = at + r * x.row_step;
    for (int64_t j = 0; j < kN * kSumLanes; j += kSumLanes) {
      float* const total = s.totals[i + r] + j;
      V::Store(total, AddChunk<Kind, kPanelN6x64>(
                          [&](int64_t group) { return V::LoadBytes(s.sums[group][r] + j); },
                          x.start + of_row * Kind::kGroups, x.scale[of_row],
                          s.scales.scale + scaled + j, s.scales.zero + zeroed + j, V::Load(total)));
    }
  }
}

// Rows [n, +rows) of B, at most 64, times all rows of A.
template <class Kind, int64_t kN>
void PanelS8Vnni6x64(const GemmTask& t, const typename Kind::T* w, const AChunks& x, int64_t n,
                     int64_t rows, Scratch6x64<typename Kind::T>& s) {
  using V = typename Kind::V;
  using T = typename Kind::T;
  const int64_t pass = PassK6x64(x.rows);
  const PanelBegin next = NextPanelOf(t, n, rows, x.begin, x.k);
  SequentialPrefetch scales = ScalePrefetchOf(t, next.n, kPanelN6x64, next.k, pass, x.chunks());
  SequentialPrefetch weights =
      SequentialPrefetchOf<T>(t, next.n, kPanelN6x64, next.k, pass, CacheLevel::kL1);
  weights.SpreadOverRuns(x.chunks() * ((x.rows + kMr6x64 - 1) / kMr6x64) * Kind::kGroups);
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < rows; j += kSumLanes)
      V::Store(s.totals[i] + j,
               InitialTotal<V>(x.begin == 0, t.y + i * t.y_stride + n + j, rows - j));
  for (int64_t row = 0; row < kPanelN6x64; ++row)
    s.rows[row] = w + (n + Min(row, rows - 1)) * t.w_stride + x.begin / kValuesPer<T>;
  for (int64_t chunk = 0; chunk < x.chunks(); ++chunk) {
    const int64_t values = x.k - chunk * kChunkK;
    scales.PrefetchNext();
    if (values >= kChunkK)
      PackB6x64<Kind, kN, true>(s, chunk, values);
    else
      PackB6x64<Kind, kN, false>(s, chunk, values);
    ForEachRun<kMr6x64>(x.rows, [&](int64_t i, auto count) {
      AddTile6x64<Kind, decltype(count)::value, kN>(x, i, chunk, weights, s);
    });
  }
  const bool last = x.begin + x.k == t.k;
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < rows; j += kSumLanes)
      StoreTotal<Kind>(t, last, s.scales.scale + j, n + j, rows - j, V::Load(s.totals[i] + j),
                       t.y + i * t.y_stride + n + j);
}

}  // namespace
}  // namespace latte::cpu
