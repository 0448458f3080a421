// Many rows of x for gemm_s8_vnni-inl.h: 64 rows of W are laid out so that lanes are rows of W.
//
//   [16 rows of W][step: 4 columns][row][column]      a vector: 4 columns of 16 rows
//
// Work      of a chunk of 64 rows of W, which then lies in the L1 (8 KiB), products with all rows
//           of x: a tile is 6 rows × 64 outputs, 24 vectors of integer sums; a step multiplies four
//           vectors of W by four values of each row of x. Sums over lanes are not needed, and a
//           sum becomes f32 once per run and output. On a Zen 5 core a row of x costs 1.3 cycles
//           per chunk and row of W, of which the products are 1, and the layout 6.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch_sequential-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/s8_chunk-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kPanelOutputs = 64;
constexpr int64_t kPanelVectors = kPanelOutputs / kSumLanes;
constexpr int64_t kPanelColumns = 4096;  // of a pass
constexpr int64_t kMaxPanelRuns = kPanelColumns / kShortRun;
constexpr int64_t kTileInputs = 6;
constexpr int64_t kVectorBytes = 4 * kSumLanes;
constexpr int64_t kChunkSteps = kByteChunk / 4;
constexpr int64_t kLaidOutBytes = kChunkSteps * kVectorBytes;  // of a chunk of 16 rows of W

template <class T>
struct PanelScratch {
  const T* rows[kPanelOutputs];  // of W; behind the last one it is there again
  alignas(64) uint8_t w[kPanelVectors * kLaidOutBytes];
  ByteRunScales<kPanelOutputs, kMaxPanelRuns> scales;
  alignas(64) int32_t sums[kChunkRuns][kTileInputs][kPanelOutputs];  // of a tile
  alignas(64) float totals[kMaxTaskRows][kPanelOutputs];
};

// What is asked for while a panel is multiplied: lines of the next one. Asked for while rows are
// laid out, they would keep their loads waiting.
struct PanelAhead {
  LineRuns weights;
  LinesInOrder scales;
  int64_t run_lines = 0;  // with a run of a tile

  // While that many chunks pass, whose chunks have `runs`, beside x's rows.
  void Spread(int64_t chunks, int64_t inputs, int64_t runs) {
    const int64_t tiles = (inputs + kTileInputs - 1) / kTileInputs;
    run_lines = weights.Even(weights.lines() / (chunks * tiles * runs) + 1);
  }
};

// Half a chunk of 16 rows, `at` elements from their beginnings.
template <class Kind, int64_t kHalf, bool kWhole>
inline void TurnRows(const typename Kind::T* const* rows, int64_t at, int64_t values, uint8_t* to) {
  using V = typename Kind::V;
  typename V::Ints words[kSumLanes];
  for (int64_t i = 0; i < kSumLanes; ++i) {
    if constexpr (kWhole)
      words[i] = Kind::Order::template Load<kHalf>(rows[i] + at);
    else
      words[i] = Kind::Order::template Load<kHalf>(rows[i] + at, values);
  }
  V::Transpose(words);
  for (int64_t lane = 0; lane < kSumLanes; ++lane)
    V::StoreBytes(to + Kind::Order::StepOf(kHalf, lane) * kVectorBytes, words[lane]);
}

// Lays a chunk of kN · 16 rows of W out, of which `values` are there.
template <class Kind, int64_t kN, bool kWhole>
void LayOut(PanelScratch<typename Kind::T>& s, int64_t chunk, int64_t values) {
  const int64_t at = chunk * Kind::Order::kRowBytes;
  for (int64_t j = 0; j < kN; ++j) {
    const typename Kind::T* const* const rows = s.rows + j * kSumLanes;
    uint8_t* const to = s.w + j * kLaidOutBytes;
    TurnRows<Kind, 0, kWhole>(rows, at, values, to);
    TurnRows<Kind, 1, kWhole>(rows, at, values, to);
  }
}

// sums[i][j] = kSteps steps of kM rows of x and kN vectors of W.
template <class V, int64_t kSteps, int64_t kM, int64_t kN>
[[gnu::noinline]] void MultiplySteps(const uint8_t* w, const int8_t* x, int64_t x_stride,
                                     LineRuns::Run ahead, int32_t (*to)[kPanelOutputs]) {
  typename V::Ints sums[kM][kN];
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) sums[i][j] = V::ZeroInts();
  for (int64_t step = 0; step < kSteps; ++step, w += kVectorBytes, x += 4) {
    for (int64_t i = step; i < ahead.count; i += kSteps) ahead.Ask(i);
    typename V::Ints wj[kN];
    for (int64_t j = 0; j < kN; ++j) wj[j] = V::LoadBytes(w + j * kLaidOutBytes);
    for (int64_t i = 0; i < kM; ++i) {
      const typename V::Ints xi = V::SetFour(x + i * x_stride);
      for (int64_t j = 0; j < kN; ++j) sums[i][j] = V::DotBytes(sums[i][j], wj[j], xi);
    }
  }
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) V::StoreBytes(to[i] + kSumLanes * j, sums[i][j]);
}

// A chunk of rows [i, +kM) of x and a panel of kN vectors of rows of W.
template <class Kind, int64_t kM, int64_t kN>
void MultiplyTile(const ByteInputs& x, int64_t i, int64_t chunk, PanelAhead& ahead,
                  PanelScratch<typename Kind::T>& s) {
  using V = typename Kind::V;
  constexpr int64_t kSteps = kChunkSteps / Kind::kRuns;
  const int64_t at = x.At(i, chunk);
  for (int64_t run = 0; run < Kind::kRuns; ++run) {
    const LineRuns::Run lines = ahead.weights.Next(ahead.run_lines);
    MultiplySteps<V, kSteps, kM, kN>(s.w + run * kSteps * kVectorBytes,
                                     x.codes + at * kByteChunk + run * Kind::kRun,
                                     x.row_step * kByteChunk, lines, s.sums[run]);
  }
  const int64_t scaled = Kind::kOneScale ? 0 : chunk * Kind::kRuns * kPanelOutputs;
  const int64_t zeroed = chunk * Kind::kRuns * kPanelOutputs;
  for (int64_t r = 0; r < kM; ++r) {
    const int64_t of_row = at + r * x.row_step;
    for (int64_t j = 0; j < kN * kSumLanes; j += kSumLanes) {
      float* const total = s.totals[i + r] + j;
      V::Store(total, AddChunk<Kind, kPanelOutputs>(
                          [&](int64_t run) { return V::LoadBytes(s.sums[run][r] + j); },
                          x.start + of_row * Kind::kRuns, x.scale[of_row],
                          s.scales.scale + scaled + j, s.scales.zero + zeroed + j, V::Load(total)));
    }
  }
}

// Rows [n, +rows) of W, 64 at most, and x's.
template <class Kind, int64_t kN>
void MultiplyPanel(const LinearTask& t, const typename Kind::T* w, const ByteInputs& x, int64_t n,
                   int64_t rows, PanelAhead& ahead, PanelScratch<typename Kind::T>& s) {
  using V = typename Kind::V;
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < rows; j += kSumLanes)
      V::Store(s.totals[i] + j,
               FirstTotal<V>(x.begin == 0, t.y + i * t.y_stride + n + j, rows - j));
  for (int64_t row = 0; row < kPanelOutputs; ++row)
    s.rows[row] =
        w + (n + Min(row, rows - 1)) * t.w_stride + x.begin / kValuesPer<typename Kind::T>;
  for (int64_t chunk = 0; chunk < x.chunks(); ++chunk) {
    const int64_t values = x.k - chunk * kByteChunk;
    ahead.scales.Ask();
    if (values >= kByteChunk)
      LayOut<Kind, kN, true>(s, chunk, values);
    else
      LayOut<Kind, kN, false>(s, chunk, values);
    ForEachRun<kTileInputs>(x.rows, [&](int64_t i, auto count) {
      MultiplyTile<Kind, decltype(count)::value, kN>(x, i, chunk, ahead, s);
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
