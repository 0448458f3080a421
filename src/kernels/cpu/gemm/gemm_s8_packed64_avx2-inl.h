// More rows of x for gemm_s8_avx2-inl.h: 64 rows of W are laid out so that lanes are rows of W.
//
//   [16 rows of W][unit][step][half][row][values]      two vectors of eight rows for each half
//
// Work      of a chunk of 64 rows of W, which then lies in the L1 (16 KiB of int8, 8 of 4 bits),
//           products with all rows of x: a tile is 4 rows × 16 outputs, 8 vectors of sums. Sums
//           over lanes are not needed, and a sum becomes f32 once per run and output.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch_sequential-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/s8_even_odd-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kHalvesOutputs = 64;
constexpr int64_t kHalvesTile = 16;       // outputs
constexpr int64_t kHalvesTileInputs = 4;  // rows of x
constexpr int64_t kHalvesColumns = 4096;  // of a pass
constexpr int64_t kHalvesRuns = kHalvesColumns / kShortRun;
constexpr int64_t kTileHalfBytes = 2 * kHalfBytes;  // of a step of a tile's rows of W

// Bytes of a unit of a tile's rows of W, laid out.
constexpr int64_t kTileUnitBytes = kUnitSteps * 2 * kTileHalfBytes;

template <class Order>
struct HalvesPanelScratch {
  HalvesInputs x;
  const typename Order::T* rows[kHalvesOutputs];  // of W; behind the last one it is there again
  alignas(64) uint8_t w[kHalvesOutputs / kHalvesTile * Order::kUnits * kTileUnitBytes];
  ByteRunScales<kHalvesOutputs, kHalvesRuns> scales;
  alignas(32) int32_t sums[kChunkRuns][kHalvesTileInputs][kHalvesTile];
  alignas(32) float totals[kMaxTaskRows][kHalvesOutputs];
};

// What is asked for while a panel is multiplied: lines of the next one.
struct HalvesAhead {
  LineRuns weights;
  LinesInOrder scales;
  int64_t call_lines = 0;  // with a call of MultiplyHalvesSteps

  // While that many chunks pass, with `calls` for a tile.
  void Spread(int64_t chunks, int64_t inputs, int64_t calls) {
    const int64_t runs = (inputs + kHalvesTileInputs - 1) / kHalvesTileInputs;
    const int64_t tiles = chunks * runs * (kHalvesOutputs / kHalvesTile);
    call_lines = weights.Even(weights.lines() / (tiles * calls) + 1);
  }
};

// Steps of a call of MultiplyHalvesSteps.
template <class Order>
constexpr int64_t kCallSteps =
    Order::kWordSteps == 0 ? Order::kUnits* kUnitSteps : Order::kWordSteps;

// Lays a chunk of 64 rows of W out, of which `values` columns are there.
template <class Order, bool kWhole>
void LayOutHalves(HalvesPanelScratch<Order>& s, int64_t chunk, int64_t values) {
  using V = typename Order::V;
  for (int64_t eight = 0; eight < kHalvesOutputs / kEight; ++eight)
    for (int64_t u = 0; u < Order::kUnits; ++u) {
      typename V::Ints steps[kUnitSteps];
      for (int64_t i = 0; i < kEight; ++i)
        steps[i] = LoadUnit<Order, kWhole>(s.rows[eight * kEight + i] + chunk * Order::kRowBytes,
                                           u * kHalfBytes, values);
      V::Transpose(steps);
      uint8_t* const to =
          s.w + (eight / 2 * Order::kUnits + u) * kTileUnitBytes + eight % 2 * kHalfBytes;
      for (int64_t step = 0; step < kUnitSteps; ++step) {
        V::StoreBytes(to + 2 * step * kTileHalfBytes, Order::Even(steps[step]));
        V::StoreBytes(to + (2 * step + 1) * kTileHalfBytes, Order::Odd(steps[step]));
      }
    }
}

// to (+)= kSteps steps from `step` of a chunk on, of kM rows of x and 16 of W.
template <class Order, int64_t kSteps, int64_t kM>
[[gnu::noinline]] void MultiplyHalvesSteps(const uint8_t* w, const int8_t* x, int64_t x_stride,
                                           int64_t step, bool first, int32_t (*to)[kHalvesTile]) {
  using V = typename Order::V;
  typename V::Ints sums[kM][2];
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < 2; ++j) sums[i][j] = V::ZeroInts();
  w += 2 * step * kTileHalfBytes;
  x += step / kUnitSteps * kUnitBytes + step % kUnitSteps * 4;
  constexpr int64_t kInUnit = Min(kSteps, kUnitSteps);
  for (int64_t unit = 0; unit < kSteps / kInUnit; ++unit, x += kUnitBytes)
    for (int64_t at = 0; at < kInUnit; ++at)
      for (int64_t half = 0; half < 2; ++half, w += kTileHalfBytes) {
        const typename V::Ints w0 = V::LoadBytes(w);
        const typename V::Ints w1 = V::LoadBytes(w + kHalfBytes);
        for (int64_t i = 0; i < kM; ++i)
          Order::AddTwoDots(sums[i], w0, w1, x + i * x_stride + half * kHalfBytes + 4 * at);
      }
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < 2; ++j) {
      int32_t* const at = to[i] + j * kEight;
      const typename V::Ints sum = Order::Finish(sums[i][j]);
      V::StoreBytes(at, first ? sum : V::AddInts(V::LoadBytes(at), sum));
    }
}

// A chunk of rows [i, +kM) of x and 16 rows of W, from row `n` of the panel on.
template <class Kind, int64_t kM>
void MultiplyHalvesTile(const HalvesInputs& x, int64_t i, int64_t chunk, int64_t n,
                        HalvesAhead& ahead, HalvesPanelScratch<typename Kind::Order>& s) {
  using Order = typename Kind::Order;
  using V = typename Kind::V;
  constexpr int64_t kAll = Order::kUnits * kUnitSteps;
  constexpr int64_t kSteps = kCallSteps<Order>;
  constexpr int64_t kRunSteps = kAll / Kind::kRuns;
  const int64_t at = x.At(i, chunk);
  const uint8_t* const w = s.w + n / kHalvesTile * Order::kUnits * kTileUnitBytes;
  for (int64_t step = 0; step < kAll; step += kSteps) {
    const LineRuns::Run lines = ahead.weights.Next(ahead.call_lines);
    for (int64_t line = 0; line < lines.count; ++line) lines.Ask(line);
    MultiplyHalvesSteps<Order, kSteps, kM>(w, x.codes + at * kInputBytes<Order>,
                                           x.row_step * kInputBytes<Order>, step,
                                           step % kRunSteps == 0, s.sums[step / kRunSteps]);
  }
  const int64_t scaled = Kind::kOneScale ? 0 : chunk * Kind::kRuns * kHalvesOutputs;
  const int64_t zeroed = chunk * Kind::kRuns * kHalvesOutputs;
  for (int64_t r = 0; r < kM; ++r) {
    const int64_t of_row = at + r * x.row_step;
    for (int64_t j = 0; j < kHalvesTile; j += kEight) {
      float* const total = s.totals[i + r] + n + j;
      V::Store(total,
               AddChunk<Kind, kHalvesOutputs>(
                   [&](int64_t run) { return V::LoadBytes(s.sums[run][r] + j); },
                   x.start + of_row * Kind::kRuns, x.scale[of_row], s.scales.scale + scaled + n + j,
                   s.scales.zero + zeroed + n + j, V::Load(total)));
    }
  }
}

// Rows [n, +rows) of W, 64 at most, and x's.
template <class Kind>
void MultiplyHalvesPanel(const LinearTask& t, const typename Kind::T* w, const HalvesInputs& x,
                         int64_t n, int64_t rows, HalvesAhead& ahead,
                         HalvesPanelScratch<typename Kind::Order>& s) {
  using V = typename Kind::V;
  using Order = typename Kind::Order;
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < rows; j += kEight)
      V::Store(s.totals[i] + j,
               FirstTotal<V>(x.begin == 0, t.y + i * t.y_stride + n + j, rows - j));
  for (int64_t row = 0; row < kHalvesOutputs; ++row)
    s.rows[row] =
        w + (n + Min(row, rows - 1)) * t.w_stride + x.begin / kValuesPer<typename Kind::T>;
  for (int64_t chunk = 0; chunk < x.chunks(); ++chunk) {
    const int64_t values = x.k - chunk * kByteChunk;
    ahead.scales.Ask();
    if (values >= kByteChunk)
      LayOutHalves<Order, true>(s, chunk, values);
    else
      LayOutHalves<Order, false>(s, chunk, values);
    ForEachRun<kHalvesTileInputs>(x.rows, [&](int64_t i, auto count) {
      for (int64_t tile = 0; tile < rows; tile += kHalvesTile)
        MultiplyHalvesTile<Kind, decltype(count)::value>(x, i, chunk, tile, ahead, s);
    });
  }
  const bool last = x.begin + x.k == t.k;
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < rows; j += kEight)
      StoreTotal<Kind>(t, last, s.scales.scale + j, n + j, rows - j, V::Load(s.totals[i] + j),
                       t.y + i * t.y_stride + n + j);
}

template <class Kind>
[[gnu::noinline]] void MultiplyByHalvesPanels(const LinearTask& t, const typename Kind::T* w) {
  using T = typename Kind::T;
  using Order = typename Kind::Order;
  auto& s = InScratch<HalvesPanelScratch<Order>>(t.scratch);
  HalvesInputs& x = s.x;
  x.rows = t.m;
  x.row_step = 1;
  x.chunk_step = t.m;
  const int64_t columns =
      Min(kMaxHalvesBytes / kInputBytes<Order> / t.m * kByteChunk, kHalvesColumns);
  for (x.begin = 0; x.begin < t.k; x.begin += x.k) {
    x.k = Min(columns, t.k - x.begin);
    PrepareHalves<Kind>(t, x);
    for (int64_t n = 0; n < t.n; n += kHalvesOutputs) {
      const int64_t rows = Min(kHalvesOutputs, t.n - n);
      PrepareScales<Kind>(t, n, rows, x.begin, x.k, s.scales);
      // Behind the last panel of this pass comes the first of the next one.
      const bool passes_on = n + rows == t.n && x.begin + x.k < t.k;
      const int64_t next_n = passes_on ? 0 : n + rows;
      const int64_t next_k = passes_on ? x.begin + x.k : x.begin;
      HalvesAhead ahead;
      ahead.weights =
          LinesOfRows<T, LineRuns>(t, next_n, kHalvesOutputs, next_k, columns, Cache::kL1);
      ahead.scales = ScaleLines(t, next_n, kHalvesOutputs, next_k, columns, x.chunks());
      ahead.Spread(x.chunks(), x.rows, Order::kUnits * kUnitSteps / kCallSteps<Order>);
      MultiplyHalvesPanel<Kind>(t, w, x, n, rows, ahead, s);
    }
  }
}

}  // namespace
}  // namespace latte::cpu
