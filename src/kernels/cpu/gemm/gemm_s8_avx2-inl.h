// int8 A × int8 (vpmaddwd) or 4-bit B (vpmaddubsw), AVX2: two kernels, which share their loops with
// the VNNI kernels.
//
//             gemm_s8_gemv      M × 8 × 128, M ≤ 4 (s8_gemv-inl.h)
//             gemm_s8_packed64  4 × 16, any M (s8_packed64-inl.h)
//
// Packing   A in even-odd order (s8_even_odd-inl.h), per task. gemv reads B in place, row by row in
//           memory order, each row over a whole pass. packed64 packs a chunk of 64 rows of B into
//           scratch (16 KiB of int8, 8 KiB of 4-bit, in the L1) so that lanes are rows of B:
//
//             [16 rows of B][unit][K step][even, odd][row][values]   two registers of 8 rows each
//
// Blocking  K in passes; sums wait in C between passes. gemv: a chunk of A leaves 8 partial sums;
//           8 registers reduce together, and an 8×8 transpose puts rows of B into lanes. packed64:
//           8 accumulators, no reduction over lanes; a sum becomes f32 once per scale group and
//           output.
// Prefetch  gemv: each load prefetches a fixed distance ahead. packed64: each tile prefetches some
//           lines of the next panel.
// Epilogue  Scales of A and B per chunk (int8_scales-inl.h); the bias after the last pass.
// Order     that of int8_scales-inl.h: the same bits as gemm_s8_vnni-inl.h.
// Limits    Groups of A are multiples of 128; scale groups of B begin at multiples of 128 (4-bit:
//           32) or span K; M ≤ kMaxTaskM per task; scratch 350 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch_weights-inl.h"
#include "src/kernels/cpu/gemm/s8_even_odd-inl.h"
#include "src/kernels/cpu/gemm/s8_gemv-inl.h"
#include "src/kernels/cpu/gemm/s8_packed64-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

template <class KindType>
struct GemvAvx2 {
  using Kind = KindType;
  using A = EvenOddA;
  static constexpr int64_t kLanes = kS32Lanes;
  static constexpr int64_t kMaxGroups = 512;
  static constexpr int64_t kPassBytes = 16 << 10;  // of A

  static int64_t PassK(int64_t m) {
    return Min(kPassBytes / kAChunkBytes<typename Kind::Layout> / m, kMaxGroups / Kind::kGroups) *
           kChunkK;
  }
  static int64_t RowStep(const A& x) { return x.chunks(); }
  static void PackA(const GemmTask& t, A& x) { PackEvenOddA<Kind>(t, x); }

  // A distance, or, in one of several passes, the next row.
  static int64_t Ahead(const GemmTask& t, const PrefetchDistance& distance, const A& x, int64_t row,
                       int64_t span) {
    using T = typename Kind::T;
    const bool whole = x.begin == 0 && x.k == t.k;
    return whole ? distance.At(ByteAt<T>(t, row, span * kChunkK)) : ByteAt<T>(t, 1, 0);
  }
  static constexpr int64_t PlaceOf(int64_t chunk, int64_t group) {
    return Kind::kGroups == 1 ? chunk : group % 2 * 4 + chunk * 2 + group / 2;
  }

  // Integer sums of a batch of chunks from `first`, of a row of B with `values` valid columns and
  // kM rows of A, to `to` as [row of A][8 rows of B][sum]. Prefetches lines `ahead` bytes ahead.
  template <int64_t kM, bool kWhole>
  static inline void DotBatch(const typename Kind::T* w, const A& x, int64_t first, int64_t values,
                              int64_t ahead, CacheLevel level, int32_t* to) {
    using Layout = typename Kind::Layout;
    using V = typename Kind::V;
    using Ints = typename V::Ints;
    // Registers of a chunk: one, or one per unit, which is two scale groups.
    constexpr int64_t kVectors = Kind::kGroups == 1 ? 1 : Layout::kUnits;
    constexpr int64_t kPerVector = Layout::kUnits / kVectors;
    constexpr int64_t kCount = kLanes / Kind::kGroups * kVectors;
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
      V::StoreBytes(
          to + i * kLanes * kLanes,
          Kind::kGroups == 1 ? V::AddHalves(fours[i][0], fours[i][kCount / 4 - 1]) : fours[i][0]);
  }
};

constexpr int64_t kMr4x16 = 4;
constexpr int64_t kNr4x16 = 16;
constexpr int64_t kStepBytes4x16 = 2 * kVectorBytes;  // of a K step of 16 rows of B
constexpr int64_t kUnitBytes4x16 =
    kUnitSteps * 2 * kStepBytes4x16;  // of a unit of 16 rows of B, packed

// K steps of a call of TileS8Avx2Packed4x16.
template <class Layout>
constexpr int64_t kCallSteps =
    Layout::kS16Steps == 0 ? Layout::kUnits* kUnitSteps : Layout::kS16Steps;

// to (+)= kSteps K steps of a chunk from `step`, of kM rows of A and 16 rows of B.
template <class Layout, int64_t kSteps, int64_t kM>
[[gnu::noinline]] void TileS8Avx2Packed4x16(const uint8_t* w, const int8_t* x, int64_t x_stride,
                                            int64_t step, bool first, int32_t (*to)[kNr4x16]) {
  using V = typename Layout::V;
  typename V::Ints sums[kM][2];
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < 2; ++j) sums[i][j] = V::ZeroInts();
  w += 2 * step * kStepBytes4x16;
  x += step / kUnitSteps * kUnitBytes + step % kUnitSteps * 4;
  constexpr int64_t kInUnit = Min(kSteps, kUnitSteps);
  for (int64_t unit = 0; unit < kSteps / kInUnit; ++unit, x += kUnitBytes)
    for (int64_t at = 0; at < kInUnit; ++at)
      for (int64_t half = 0; half < 2; ++half, w += kStepBytes4x16) {
        const typename V::Ints w0 = V::LoadBytes(w);
        const typename V::Ints w1 = V::LoadBytes(w + kVectorBytes);
        for (int64_t i = 0; i < kM; ++i)
          Layout::AddTwoDots(sums[i], w0, w1, x + i * x_stride + half * kVectorBytes + 4 * at);
      }
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < 2; ++j) {
      int32_t* const at = to[i] + j * kS32Lanes;
      const typename V::Ints sum = Layout::Finish(sums[i][j]);
      V::StoreBytes(at, first ? sum : V::AddInts(V::LoadBytes(at), sum));
    }
}

template <class KindType>
struct Packed64Avx2 {
  using Kind = KindType;
  using Layout = typename Kind::Layout;
  using V = typename Kind::V;
  using A = EvenOddA;
  using Scratch = Packed64Scratch<Packed64Avx2>;
  static constexpr int64_t kLanes = kS32Lanes;
  static constexpr int64_t kMr = kMr4x16;
  static constexpr int64_t kNr = kNr4x16;
  static constexpr int64_t kSteps = Layout::kUnits * kUnitSteps;  // of a chunk
  static constexpr int64_t kPackedBytes = kS8PanelN / kNr * Layout::kUnits * kUnitBytes4x16;
  static constexpr int64_t kCalls = kS8PanelN / kNr * kSteps / kCallSteps<Layout>;
  static constexpr int64_t kMaxABytes = kMaxEvenOddBytes;
  static constexpr int64_t kABytes = kAChunkBytes<Layout>;

  static void PackA(const GemmTask& t, A& x) { PackEvenOddA<Kind>(t, x); }
  template <class F>
  static void WithVectors(int64_t, const F& f) {
    f(Int<kS8PanelN / kLanes>{});
  }

  template <int64_t kVectors, bool kWhole>
  static void PackB(Scratch& s, int64_t chunk, int64_t values) {
    for (int64_t eight = 0; eight < kS8PanelN / kS32Lanes; ++eight)
      for (int64_t u = 0; u < Layout::kUnits; ++u) {
        typename V::Ints steps[kUnitSteps];
        for (int64_t i = 0; i < kS32Lanes; ++i)
          steps[i] = LoadUnit<Layout, kWhole>(
              s.rows[eight * kS32Lanes + i] + chunk * Layout::kRowBytes, u * kVectorBytes, values);
        V::Transpose(steps);
        uint8_t* const to =
            s.w + (eight / 2 * Layout::kUnits + u) * kUnitBytes4x16 + eight % 2 * kVectorBytes;
        for (int64_t step = 0; step < kUnitSteps; ++step) {
          V::StoreBytes(to + 2 * step * kStepBytes4x16, Layout::Even(steps[step]));
          V::StoreBytes(to + (2 * step + 1) * kStepBytes4x16, Layout::Odd(steps[step]));
        }
      }
  }

  template <int64_t kM, int64_t kVectors>
  static void AddTiles(Scratch& s, int64_t i, int64_t chunk, int64_t rows,
                       SequentialPrefetch& ahead) {
    constexpr int64_t kRunSteps = kSteps / Kind::kGroups;
    const int8_t* const x = s.x.codes + s.x.At(i, chunk) * kABytes;
    for (int64_t n = 0; n < rows; n += kNr) {
      const uint8_t* const w = s.w + n / kNr * Layout::kUnits * kUnitBytes4x16;
      for (int64_t step = 0; step < kSteps; step += kCallSteps<Layout>) {
        const SequentialPrefetch::Run lines = ahead.Next();
        for (int64_t line = 0; line < lines.count; ++line) lines.PrefetchLine(line);
        TileS8Avx2Packed4x16<Layout, kCallSteps<Layout>, kM>(
            w, x, s.x.row_step * kABytes, step, step % kRunSteps == 0, s.sums[step / kRunSteps]);
      }
      AddSums<Packed64Avx2, kM, kNr>(s, i, chunk, n);
    }
  }
};

// Requires of both: A is int8, B is int8 or 4-bit; groups as above.
template <class V>
void GemmS8Packed64Avx2(const GemmTask& t) {
  WithS8Kind<S8EvenOddLayout, V>(
      t, [&]<class Kind>(Kind) { GemmS8Packed64Of<Packed64Avx2<Kind>>(t); });
}

// Requires: M ≤ kMaxGemvM.
template <class V>
void GemmS8GemvAvx2(const GemmTask& t) {
  WithS8Kind<S8EvenOddLayout, V>(t, [&]<class Kind>(Kind) { GemmS8GemvOf<GemvAvx2<Kind>>(t); });
}

}  // namespace
}  // namespace latte::cpu
