// s8×s8 (vpmaddwd) and s8×u4 (vpmaddubsw) micro-kernel 4×16, M > 4, AVX2.
//
// Packing   A in even-odd order (s8_even_odd-inl.h). A chunk of 64 rows of B is packed into scratch
//           (16 KiB of int8, 8 KiB of 4-bit, in the L1) so that lanes are rows of B:
//
//             [16 rows of B][unit][K step][even, odd][row][values]      two registers of 8 rows each
//
// Blocking  8 accumulators. No reduction over lanes; a sum becomes f32 once per scale group and
//           output.
// Prefetch  Each tile prefetches some lines of the next panel.
// Epilogue  Scales of A and B per chunk; totals wait in scratch; the bias after the last pass.
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

constexpr int64_t kPanelN4x16 = 64;
constexpr int64_t kNr4x16 = 16;
constexpr int64_t kMr4x16 = 4;
constexpr int64_t kMaxPassK4x16 = 4096;
constexpr int64_t kMaxGroups4x16 = kMaxPassK4x16 / kMinGroupK;
// Columns of a pass.
template <class Layout>
constexpr int64_t PassK4x16(int64_t m) {
  return Min(kMaxEvenOddBytes / kAChunkBytes<Layout> / m * kChunkK, kMaxPassK4x16);
}
constexpr int64_t kStepBytes4x16 = 2 * kVectorBytes;  // of a K step of 16 rows of B

// Packed bytes of a unit of 16 rows of B.
constexpr int64_t kUnitBytes4x16 = kUnitSteps * 2 * kStepBytes4x16;

template <class Layout>
struct Scratch4x16 {
  EvenOddA x;
  const typename Layout::T* rows[kPanelN4x16];  // of B; missing rows repeat the last one
  alignas(64) uint8_t w[kPanelN4x16 / kNr4x16 * Layout::kUnits * kUnitBytes4x16];
  GroupScales<kPanelN4x16, kMaxGroups4x16> scales;
  alignas(32) int32_t sums[kChunkGroups][kMr4x16][kNr4x16];
  alignas(32) float totals[kMaxTaskM][kPanelN4x16];
};

// K steps of a call of TileS8Avx2Packed4x16.
template <class Layout>
constexpr int64_t kCallSteps =
    Layout::kS16Steps == 0 ? Layout::kUnits* kUnitSteps : Layout::kS16Steps;

// Packs a chunk of 64 rows of B with `values` valid columns.
template <class Layout, bool kWhole>
void PackB4x16(Scratch4x16<Layout>& s, int64_t chunk, int64_t values) {
  using V = typename Layout::V;
  for (int64_t eight = 0; eight < kPanelN4x16 / kS32Lanes; ++eight)
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

// Adds a chunk of rows [i, +kM) of A times 16 rows of B from row `n` of the panel.
template <class Kind, int64_t kM>
void AddTile4x16(const EvenOddA& x, int64_t i, int64_t chunk, int64_t n, SequentialPrefetch& ahead,
                 Scratch4x16<typename Kind::Layout>& s) {
  using Layout = typename Kind::Layout;
  using V = typename Kind::V;
  constexpr int64_t kAll = Layout::kUnits * kUnitSteps;
  constexpr int64_t kSteps = kCallSteps<Layout>;
  constexpr int64_t kRunSteps = kAll / Kind::kGroups;
  const int64_t at = x.At(i, chunk);
  const uint8_t* const w = s.w + n / kNr4x16 * Layout::kUnits * kUnitBytes4x16;
  for (int64_t step = 0; step < kAll; step += kSteps) {
    const SequentialPrefetch::Run lines = ahead.Next();
    for (int64_t line = 0; line < lines.count; ++line) lines.PrefetchLine(line);
    TileS8Avx2Packed4x16<Layout, kSteps, kM>(w, x.codes + at * kAChunkBytes<Layout>,
                                             x.row_step * kAChunkBytes<Layout>, step,
                                             step % kRunSteps == 0, s.sums[step / kRunSteps]);
  }
  const int64_t scaled = Kind::kOneScale ? 0 : chunk * Kind::kGroups * kPanelN4x16;
  const int64_t zeroed = chunk * Kind::kGroups * kPanelN4x16;
  for (int64_t r = 0; r < kM; ++r) {
    const int64_t of_row = at + r * x.row_step;
    for (int64_t j = 0; j < kNr4x16; j += kS32Lanes) {
      float* const total = s.totals[i + r] + n + j;
      V::Store(total, AddChunk<Kind, kPanelN4x16>(
                          [&](int64_t group) { return V::LoadBytes(s.sums[group][r] + j); },
                          x.start + of_row * Kind::kGroups, x.scale[of_row],
                          s.scales.scale + scaled + n + j, s.scales.zero + zeroed + n + j,
                          V::Load(total)));
    }
  }
}

// Rows [n, +rows) of B, at most 64, times all rows of A.
template <class Kind>
void PanelS8Avx2(const GemmTask& t, const typename Kind::T* w, const EvenOddA& x, int64_t n,
                 int64_t rows, Scratch4x16<typename Kind::Layout>& s) {
  using V = typename Kind::V;
  using T = typename Kind::T;
  using Layout = typename Kind::Layout;
  const int64_t pass = PassK4x16<Layout>(x.rows);
  const PanelBegin next = NextPanelOf(t, n, rows, x.begin, x.k);
  SequentialPrefetch scales = ScalePrefetchOf(t, next.n, kPanelN4x16, next.k, pass, x.chunks());
  SequentialPrefetch weights =
      SequentialPrefetchOf<T>(t, next.n, kPanelN4x16, next.k, pass, CacheLevel::kL1);
  weights.SpreadOverRuns(x.chunks() * ((x.rows + kMr4x16 - 1) / kMr4x16) * (kPanelN4x16 / kNr4x16) *
                         (Layout::kUnits * kUnitSteps / kCallSteps<Layout>));
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < rows; j += kS32Lanes)
      V::Store(s.totals[i] + j,
               InitialTotal<V>(x.begin == 0, t.y + i * t.y_stride + n + j, rows - j));
  for (int64_t row = 0; row < kPanelN4x16; ++row)
    s.rows[row] = w + (n + Min(row, rows - 1)) * t.w_stride + x.begin / kValuesPer<T>;
  for (int64_t chunk = 0; chunk < x.chunks(); ++chunk) {
    const int64_t values = x.k - chunk * kChunkK;
    scales.PrefetchNext();
    if (values >= kChunkK)
      PackB4x16<Layout, true>(s, chunk, values);
    else
      PackB4x16<Layout, false>(s, chunk, values);
    ForEachRun<kMr4x16>(x.rows, [&](int64_t i, auto count) {
      for (int64_t tile = 0; tile < rows; tile += kNr4x16)
        AddTile4x16<Kind, decltype(count)::value>(x, i, chunk, tile, weights, s);
    });
  }
  const bool last = x.begin + x.k == t.k;
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < rows; j += kS32Lanes)
      StoreTotal<Kind>(t, last, s.scales.scale + j, n + j, rows - j, V::Load(s.totals[i] + j),
                       t.y + i * t.y_stride + n + j);
}

template <class Kind>
[[gnu::noinline]] void GemmS8Avx2Packed64(const GemmTask& t, const typename Kind::T* w) {
  using Layout = typename Kind::Layout;
  auto& s = ScratchAs<Scratch4x16<Layout>>(t.scratch);
  EvenOddA& x = s.x;
  x.rows = t.m;
  x.row_step = 1;
  x.chunk_step = t.m;
  for (x.begin = 0; x.begin < t.k; x.begin += x.k) {
    x.k = Min(PassK4x16<Layout>(t.m), t.k - x.begin);
    PackEvenOddA<Kind>(t, x);
    for (int64_t n = 0; n < t.n; n += kPanelN4x16) {
      const int64_t rows = Min(kPanelN4x16, t.n - n);
      PrepareScales<Kind>(t, n, rows, x.begin, x.k, s.scales);
      PanelS8Avx2<Kind>(t, w, x, n, rows, s);
    }
  }
}

}  // namespace
}  // namespace latte::cpu
