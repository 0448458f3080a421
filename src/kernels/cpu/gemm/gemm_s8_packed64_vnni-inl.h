// s8×s8 and s8×u4 micro-kernel 6×64×4 (vpdpbusd), large M, AVX512_VNNI.
//
// Packing   A in chunks (s8_chunk-inl.h). A chunk of 64 rows of B is packed into scratch (8 KiB, in
//           the L1) so that lanes are rows of B:
//
//             [16 rows of B][K step of 4 columns][row][column]     a register: 4 columns of 16 rows
//
// Blocking  24 accumulators: 6 rows of A × 4 registers of B. A K step broadcasts 4 bytes per row of
//           A. No reduction over lanes; a sum becomes f32 once per scale group and output.
// Prefetch  Each tile prefetches some lines of the next panel. Packing prefetches none, because
//           that would delay its loads.
// Epilogue  Scales of A and B per chunk; totals wait in scratch; the bias after the last pass.
// Order     that of int8_scales-inl.h.
// Limits    as gemm_s8_vnni-inl.h.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch_weights-inl.h"
#include "src/kernels/cpu/gemm/s8_chunk-inl.h"
#include "src/kernels/cpu/gemm/s8_packed64-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kMr6x64 = 6;
constexpr int64_t kBVectorBytes = 4 * kSumLanes;
constexpr int64_t kSteps6x64 = kChunkK / 4;
constexpr int64_t kBChunkBytes6x64 = kSteps6x64 * kBVectorBytes;  // of a chunk of 16 rows of B

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

// to[i][j] = kSteps K steps of kM rows of A and kN registers of rows of B.
template <class V, int64_t kSteps, int64_t kM, int64_t kN>
[[gnu::noinline]] void TileS8Vnni6x64(const uint8_t* w, const int8_t* x, int64_t x_stride,
                                      SequentialPrefetch::Run ahead, int32_t (*to)[kS8PanelN]) {
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

template <class KindType>
struct Packed64Vnni {
  using Kind = KindType;
  using V = typename Kind::V;
  using A = AChunks;
  using Scratch = Packed64Scratch<Packed64Vnni>;
  static constexpr int64_t kLanes = kSumLanes;
  static constexpr int64_t kMr = kMr6x64;
  static constexpr int64_t kNr = kS8PanelN;
  static constexpr int64_t kPackedBytes = kS8PanelN / kLanes * kBChunkBytes6x64;
  static constexpr int64_t kCalls = Kind::kGroups;
  static constexpr int64_t kMaxABytes = kMaxAChunks * kChunkK;
  static constexpr int64_t kABytes = kChunkK;

  static void PackA(const GemmTask& t, A& x) { PackAChunks<Kind, true>(t, x); }
  template <class F>
  static void WithVectors(int64_t rows, const F& f) {
    WithConstant<kS8PanelN / kLanes>((rows + kLanes - 1) / kLanes, f);
  }

  template <int64_t kVectors, bool kWhole>
  static void PackB(Scratch& s, int64_t chunk, int64_t values) {
    const int64_t at = chunk * Kind::Layout::kRowBytes;
    for (int64_t j = 0; j < kVectors; ++j) {
      const typename Kind::T* const* const rows = s.rows + j * kLanes;
      uint8_t* const to = s.w + j * kBChunkBytes6x64;
      TransposeRows16<Kind, 0, kWhole>(rows, at, values, to);
      TransposeRows16<Kind, 1, kWhole>(rows, at, values, to);
    }
  }

  template <int64_t kM, int64_t kVectors>
  static void AddTiles(Scratch& s, int64_t i, int64_t chunk, int64_t, SequentialPrefetch& ahead) {
    constexpr int64_t kSteps = kSteps6x64 / Kind::kGroups;
    const int8_t* const x = s.x.codes + s.x.At(i, chunk) * kABytes;
    for (int64_t group = 0; group < Kind::kGroups; ++group)
      TileS8Vnni6x64<V, kSteps, kM, kVectors>(s.w + group * kSteps * kBVectorBytes,
                                              x + group * Kind::kGroup, s.x.row_step * kABytes,
                                              ahead.Next(), s.sums[group]);
    AddSums<Packed64Vnni, kM, kVectors * kLanes>(s, i, chunk, 0);
  }
};

}  // namespace
}  // namespace latte::cpu
