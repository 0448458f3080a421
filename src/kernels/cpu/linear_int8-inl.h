// linear on int8 activations and int8 or 4-bit weights: dot products of bytes, exact within a
// group.
//
// Work      tasks as in linear-inl.h. Rows of x are first brought into chunks of 128 values: bytes
//           in the order that the weights' bytes have, and for each register lane its scale and
//           what its integer sum starts from. One operand must be unsigned: int8 weights become
//           w + 128 (one exclusive or), 4-bit ones are codes as they are; the start takes off what
//           that adds, 128 or the zero times the sum of the lane's x.
//
//               int8:  lane l of both registers of a chunk: values 4l…4l+3 and 64+4l…, one group
//               u4:    low nibbles · even values, high nibbles · odd ones: lane l has values
//                      8l…8l+7, so a group of 32 has four lanes
//
//           Per chunk the integers become f32, times the lane's x scale, times the lane's weight
//           scale, added to a vector of partial sums. Where a block of K has one weight scale, the
//           finished sum is multiplied by it instead. Tiles are 4 rows of x × 4 of W, 3 × 4 of
//           4 bits; few rows of x that fit into L1 take rows of W one after the other. Memory is
//           asked as rows_in_order-inl.h says.
// Order     chunks in order, lanes by a fixed tree; blocks of K of 2048 values in order, the bias
//           last. For every tile, task and thread count.
// Limits    groups of x and of u4 weights are multiples of 32, for int8 weights of 128, and begin
//           at multiples of that, or are all of K; stack 200 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/element-inl.h"
#include "src/kernels/cpu/math-inl.h"
#include "src/kernels/cpu/rows_in_order-inl.h"
#include "src/kernels/cpu/scales-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/tiles-inl.h"

namespace latte::cpu {
namespace {

constexpr int64_t kChunk = 128;
constexpr int64_t kByteBlockK = 2048;
constexpr int64_t kBlockChunks = kByteBlockK / kChunk;
constexpr int64_t kMaxRuns = kByteBlockK / 32;
// Rows of W that share a pass over x, times blocks of K: their scales are prepared together.
constexpr int64_t kBytePanelRows = 64;
constexpr int64_t kMaxBlocks = Min(kBytePanelRows / 4, kMaxTurnBlocks);
// Chunks that are prepared at once: a block of 32 rows, or more of K of fewer.
constexpr int64_t kPreparedRows = 32;
constexpr int64_t kPreparedChunks = kPreparedRows * kBlockChunks;
// Values of x with which rows of W pass one after the other: prepared they take twice the bytes and
// should stay in L1.
constexpr int64_t kTurnValues = 12 << 10;

// 128 values of a row of x.
struct alignas(64) ByteChunk {
  int8_t x[2][64];
  int32_t start[16];  // −zero · the sum of the lane's values; with zeros per group the sum itself
  float scale[16];    // of the lane's values
};

// Scales of rows of W, one for each run of a block, and the low 16 bits of −zero.
struct ByteScales {
  alignas(64) float one[kBytePanelRows];  // of a block that has one scale per row
  alignas(64) float scale[kBytePanelRows * kMaxRuns];
  alignas(64) int32_t zero[kBytePanelRows * kMaxRuns];
};

// What distinguishes the weights: how bytes lie in a chunk and which values a lane has.
template <class V, class T>
struct ByteOrder;

template <class V>
struct ByteOrder<V, I8> {
  static constexpr int64_t kRowBytes = kChunk;
  static constexpr int64_t kTileRows = 4;
  static constexpr int64_t kTurnRows = 5;
  static constexpr int64_t kRun = 128;   // values of one prepared scale
  static constexpr int64_t kZero = 128;  // that of w + 128
  static void Split(const int8_t* x, ByteChunk& to) {
    V::StoreBytes(to.x[0], V::LoadBytes(x));
    V::StoreBytes(to.x[1], V::LoadBytes(x + 64));
  }
  static void Load(const I8* w, typename V::Ints (&bytes)[2]) {
    bytes[0] = V::FlipSigns(V::LoadBytes(w));
    bytes[1] = V::FlipSigns(V::LoadBytes(w + 64));
  }
  // The first `count` values, zeros behind them.
  static void Load(const I8* w, int64_t count, typename V::Ints (&bytes)[2]) {
    bytes[0] = V::FlipSigns(V::LoadBytesPartial(w, Min(count, 64)));
    bytes[1] = V::FlipSigns(V::LoadBytesPartial(w + 64, Max(count - 64, 0)));
  }
  // All of a chunk has one scale.
  static typename V::Vec LaneScales(const float* scale) { return V::Set1(scale[0]); }
  static typename V::Ints LaneZeros(const int32_t* zero) { return V::SetInt(zero[0]); }
};

template <class V>
struct ByteOrder<V, U4> {
  static constexpr int64_t kRowBytes = kChunk / 2;
  static constexpr int64_t kTileRows = 3;
  static constexpr int64_t kTurnRows = 1;  // more are as fast side by side
  static constexpr int64_t kRun = 32;
  static constexpr int64_t kZero = kU4DefaultZero;
  static void Split(const int8_t* x, ByteChunk& to) {
    const typename V::Ints low = V::LoadBytes(x);
    const typename V::Ints high = V::LoadBytes(x + 64);
    V::StoreBytes(to.x[0], V::EvenBytes(low, high));
    V::StoreBytes(to.x[1], V::OddBytes(low, high));
  }
  static void Load(const U4* w, typename V::Ints (&bytes)[2]) { Nibbles(V::LoadBytes(w), bytes); }
  static void Load(const U4* w, int64_t count, typename V::Ints (&bytes)[2]) {
    Nibbles(V::LoadBytesPartial(w, (count + 1) / 2), bytes);
  }
  static typename V::Vec LaneScales(const float* scale) { return V::FourTimesFour(scale); }
  static typename V::Ints LaneZeros(const int32_t* zero) { return V::FourTimesFour(zero); }

 private:
  static void Nibbles(typename V::Ints codes, typename V::Ints (&bytes)[2]) {
    bytes[0] = V::LowNibbles(codes);
    bytes[1] = V::HighNibbles(codes);
  }
};

// Columns [begin, +k) of row m of x; the last chunk is filled up with zeros.
template <class V, class T, bool kZeros>
void PrepareRow(const LinearTask& t, int64_t m, int64_t begin, int64_t k, ByteChunk* to) {
  using Order = ByteOrder<V, T>;
  const int8_t* x = static_cast<const int8_t*>(t.x) + m * t.x_stride + begin;
  const float* scale = t.x_scale + m * t.x_scale_stride;
  const typename V::Ints factor = V::SetInt(kZeros ? 1 : -static_cast<int32_t>(Order::kZero));
  for (int64_t at = 0; at < k; at += kChunk, ++to) {
    alignas(64) int8_t padded[kChunk];
    const int8_t* from = x + at;
    if (k - at < kChunk) {
      V::StoreBytes(padded, V::LoadBytesPartial(from, Min(k - at, 64)));
      V::StoreBytes(padded + 64, V::LoadBytesPartial(from + 64, Max(k - at - 64, 0)));
      from = padded;
    }
    Order::Split(from, *to);
    const typename V::Ints sum = V::SumBytes(V::LoadBytes(to->x[0]), V::LoadBytes(to->x[1]));
    V::StoreBytes(to->start, V::MulInts(sum, factor));
    float runs[4];
    for (int64_t i = 0; i < 4; ++i) runs[i] = scale[(begin + Min(at + i * 32, k - 1)) / t.x_group];
    V::Store(to->scale, Order::LaneScales(runs));
  }
}

template <int64_t kRun>
constexpr int64_t RunsOfChunks(int64_t k) {
  return (k + kChunk - 1) / kChunk * (kChunk / kRun);
}

// Scales and zeros of rows [row_begin, +rows) of a block that begins at k_begin.
template <class V, class T, bool kZeros>
void PrepareScales(const LinearTask& t, int64_t row_begin, int64_t rows, int64_t k_begin,
                   const Segments& segments, int64_t to_row, ByteScales& to) {
  constexpr int64_t kRun = ByteOrder<V, T>::kRun;
  const ScaleGrid& g = t.grid;
  const int64_t column = (g.column_begin + k_begin) / g.columns;
  if (!kZeros && segments.count == 1 && g.stride == 1 && g.rows == 1) {
    WithType(g.scale, g.type, [&](const auto* stored) {
      WidenRow<V>(stored + g.row_begin + row_begin + column, rows, to.one + to_row);
    });
    return;
  }
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = (g.row_begin + row_begin + i) / g.rows;
    float* const scale = to.scale + (to_row + i) * kMaxRuns;
    // Lanes behind the last value have scale 0, lest what lies there be NaN.
    for (int64_t at = segments.k / kRun; at < RunsOfChunks<kRun>(segments.k); ++at) scale[at] = 0;
    WithType(g.scale, g.type, [&](const auto* stored) {
      const auto* const from = stored + row * g.stride + column;
      if (segments.columns == kRun && segments.first == kRun)
        return WidenRow<V>(from, segments.count, scale);
      float wide[kMaxRuns + V::kLanes];
      WidenRow<V>(from, segments.count, wide);
      if (segments.columns == 4 * kRun && segments.k % segments.columns == 0 &&
          segments.first == segments.columns) {
        for (int64_t four = 0; four < segments.count; four += 4)
          V::Store(scale + 4 * four, V::FourTimesFour(wide + four));
        return;
      }
      ForEachSegment(segments, [&](int64_t segment, int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; at += kRun) scale[at / kRun] = wide[segment];
      });
    });
    to.one[to_row + i] = scale[0];
    if constexpr (kZeros) {
      const uint8_t* const from = g.zero + row * g.zero_stride + column;
      int32_t* const zero = to.zero + (to_row + i) * kMaxRuns;
      ForEachSegment(segments, [&](int64_t segment, int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; at += kRun) zero[at / kRun] = -from[segment] & 0xffff;
      });
    }
  }
}

// Rows [row_begin, +rows) and columns [k_begin, +k) of a task's W; w points to the first element.
template <class T>
struct BytePanel {
  const T* w;
  int64_t stride;  // bytes
  int64_t row_begin, rows;
  int64_t k_begin, k;
  int64_t scale_begin;  // row of the scales
  bool one_scale;       // the block has one
};

// What a tile reads of rows of W; a tile over the edge repeats the last row.
template <class T, int64_t kN>
struct ByteRows {
  const T* w[kN];
  const float* scale[kN];
  const int32_t* zero[kN];
};

// What is asked for while a panel is multiplied: lines of the next one's weights at every chunk, of
// its scales at every tile.
struct ByteAhead {
  LinesInOrder weights, scales;
};

// total[i][j] += a chunk of kM rows of x and kN rows of W; count: how many of its values there are,
// nothing for all.
template <class V, class T, bool kZeros, bool kOneScale, int64_t kM, int64_t kN, class... Count>
inline void AddChunk(const ByteChunk* const (&x)[kM], const ByteRows<T, kN>& rows, int64_t chunk,
                     typename V::Vec (&total)[kM][kN], Count... count) {
  using Order = ByteOrder<V, T>;
  typename V::Ints bytes[kN][2];
  for (int64_t j = 0; j < kN; ++j)
    Order::Load(rows.w[j] + chunk * Order::kRowBytes, count..., bytes[j]);
  for (int64_t i = 0; i < kM; ++i) {
    const ByteChunk& c = x[i][chunk];
    const typename V::Ints x0 = V::LoadBytes(c.x[0]);
    const typename V::Ints x1 = V::LoadBytes(c.x[1]);
    const typename V::Ints start = V::LoadBytes(c.start);
    const typename V::Vec x_scale = V::Load(c.scale);
    for (int64_t j = 0; j < kN; ++j) {
      const int64_t run = chunk * (kChunk / Order::kRun);
      typename V::Ints sum = start;
      if constexpr (kZeros) sum = V::MulInts(start, Order::LaneZeros(rows.zero[j] + run));
      sum = V::DotBytes(V::DotBytes(sum, bytes[j][0], x0), bytes[j][1], x1);
      if constexpr (kOneScale)
        total[i][j] = V::Fma(V::ToFloat(sum), x_scale, total[i][j]);
      else
        total[i][j] = V::Fma(V::Mul(V::ToFloat(sum), x_scale),
                             Order::LaneScales(rows.scale[j] + run), total[i][j]);
    }
  }
}

// total[i][j] = the block of K. Before each chunk ask(chunk) is called.
template <class V, class T, bool kZeros, bool kOneScale, int64_t kM, int64_t kN, class Ask>
inline void AddChunks(const ByteChunk* const (&x)[kM], const ByteRows<T, kN>& rows, int64_t k,
                      const Ask& ask, typename V::Vec (&total)[kM][kN]) {
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) total[i][j] = V::Zero();
  const int64_t whole = k / kChunk;
  for (int64_t c = 0; c < whole; ++c) {
    ask(c);
    AddChunk<V, T, kZeros, kOneScale, kM, kN>(x, rows, c, total);
  }
  if (whole * kChunk == k) return;
  ask(whole);
  AddChunk<V, T, kZeros, kOneScale, kM, kN>(x, rows, whole, total, k - whole * kChunk);
}

// Sums of vectors, times the scales of their rows where the block has one per row.
template <class V, bool kOneScale>
inline void SumFourScaled(const typename V::Vec (&total)[4], const float* scale, float (&sums)[4]) {
  V::StoreSum4(sums, total[0], total[1], total[2], total[3]);
  if constexpr (kOneScale)
    for (int64_t j = 0; j < 4; ++j) sums[j] *= scale[j];
}

template <class V, class T, bool kZeros, bool kOneScale, int64_t kM>
void ByteDotRows(const LinearTask& t, const BytePanel<T>& panel, const ByteScales& scales,
                 const ByteChunk* const (&x)[kM], int64_t m, ByteAhead& ahead) {
  constexpr int64_t kN = 4;
  const bool first = panel.k_begin == 0;
  const bool biased = t.bias != nullptr && panel.k_begin + panel.k == t.k;
  for (int64_t n = 0; n < panel.rows; n += kN) {
    ByteRows<T, kN> rows;
    ahead.scales.Ask();
    const T* const w = panel.w + n * panel.stride;
    const int64_t last = panel.rows - 1 - n;
    for (int64_t j = 0; j < kN; ++j) {
      const int64_t row = Min(j, last);
      rows.w[j] = w + row * panel.stride;
      if constexpr (!kOneScale || kZeros) {
        rows.scale[j] = scales.scale + (panel.scale_begin + n + row) * kMaxRuns;
        rows.zero[j] = scales.zero + (panel.scale_begin + n + row) * kMaxRuns;
      }
    }
    typename V::Vec total[kM][kN];
    AddChunks<V, T, kZeros, kOneScale, kM, kN>(
        x, rows, panel.k, [&](int64_t) { ahead.weights.Ask(); }, total);
    const int64_t column = panel.row_begin + n;
    const float* bias = biased ? t.bias + column : nullptr;
    for (int64_t i = 0; i < kM; ++i) {
      float sums[kN];
      SumFourScaled<V, kOneScale>(total[i], scales.one + panel.scale_begin + n, sums);
      StoreFour(sums, bias, Min(kN, panel.rows - n), first, t.y + (m + i) * t.y_stride + column);
    }
  }
}

// Rows [m, +rows) of x, prepared `chunks` per row, those of the panel's block first.
template <class V, class T, bool kZeros>
void ByteDotPanel(const LinearTask& t, const BytePanel<T>& panel, const ByteScales& scales,
                  const ByteChunk* prepared, int64_t chunks, int64_t m, int64_t rows,
                  ByteAhead& ahead) {
  ForEachRun<ByteOrder<V, T>::kTileRows>(rows, [&](int64_t begin, auto count) {
    constexpr int64_t kM = decltype(count)::value;
    const ByteChunk* x[kM];
    for (int64_t i = 0; i < kM; ++i) x[i] = prepared + (begin + i) * chunks;
    if (panel.one_scale)
      ByteDotRows<V, T, kZeros, true, kM>(t, panel, scales, x, m + begin, ahead);
    else
      ByteDotRows<V, T, kZeros, false, kM>(t, panel, scales, x, m + begin, ahead);
  });
}

// Columns [begin, begin + k) of all of a task's x, prepared `chunks` per row, and rows
// [panel, +rows) of W whose scales are at `scales`.
struct BytePass {
  const ByteChunk* x;
  int64_t chunks;
  int64_t begin, k;
  int64_t blocks, panel_rows;
  Segments segments[kMaxBlocks];

  int64_t BlockBegin(int64_t b) const { return begin + b * kByteBlockK; }
};

// Rows [row_begin, +rows) of W one after the other.
template <class V, class T, bool kZeros, int64_t kM>
void ByteRowsInTurn(const LinearTask& t, const T* w, const BytePass& pass, int64_t row_begin,
                    int64_t rows, const ByteScales& scales, LinesInOrder& scale_lines) {
  const auto total = [&](int64_t n, int64_t b, typename V::Vec(&to)[kM]) {
    scale_lines.Ask();
    const int64_t scaled = (b * pass.panel_rows + n) * kMaxRuns;
    const ByteRows<T, 1> row = {
        {w + (row_begin + n) * t.w_stride + pass.BlockBegin(b) / kValuesPer<T>},
        {scales.scale + scaled},
        {scales.zero + scaled}};
    const int64_t ahead = TurnAhead<T>(t, row_begin + n, pass.BlockBegin(b));
    const auto ask = [&row, ahead](int64_t chunk) {
      constexpr int64_t kBytes = ByteOrder<V, T>::kRowBytes;
      for (int64_t line = 0; line < kBytes; line += 64)
        PrefetchNear(row.w[0] + chunk * kBytes + line, ahead);
    };
    const ByteChunk* x[kM];
    for (int64_t i = 0; i < kM; ++i) x[i] = pass.x + i * pass.chunks + b * kBlockChunks;
    typename V::Vec sums[kM][1];
    if (pass.segments[b].count == 1)
      AddChunks<V, T, kZeros, true, kM, 1>(x, row, pass.segments[b].k, ask, sums);
    else
      AddChunks<V, T, kZeros, false, kM, 1>(x, row, pass.segments[b].k, ask, sums);
    for (int64_t i = 0; i < kM; ++i) to[i] = sums[i][0];
  };
  const auto finish = [&](int64_t n, int64_t count, int64_t b, int64_t i,
                          const typename V::Vec(&totals)[4]) {
    float sums[4];
    if (pass.segments[b].count == 1)
      SumFourScaled<V, true>(totals, scales.one + b * pass.panel_rows + n, sums);
    else
      SumFourScaled<V, false>(totals, nullptr, sums);
    const int64_t column = row_begin + n;
    const bool biased = t.bias != nullptr && pass.BlockBegin(b) + pass.segments[b].k == t.k;
    StoreFour(sums, biased ? t.bias + column : nullptr, count, pass.BlockBegin(b) == 0,
              t.y + i * t.y_stride + column);
  };
  RowsInTurn<V, kM>(rows, pass.blocks, total, finish);
}

// The scales of rows [n, +rows) and columns [k, +columns) of W, or of the next task's first rows:
// with one for 32 weights they are a fifth of what is read.
inline LinesInOrder ScaleLines(const LinearTask& task, int64_t n, int64_t rows, int64_t k,
                               int64_t columns, int64_t steps) {
  const LinearTask* const t = n < task.n ? &task : task.next;
  if (t == nullptr || t->grid.scale == nullptr || t->grid.rows != 1) return {};
  const ScaleGrid& g = t->grid;
  const int64_t size = g.type == Element::kF32 ? 4 : 2;
  const int64_t row = n < task.n ? n : 0;
  const int64_t begin = (g.column_begin + k) / g.columns;
  const int64_t end = (g.column_begin + Min(k + columns, t->k) - 1) / g.columns + 1;
  return LinesInOrder(
      static_cast<const char*>(g.scale) + ((g.row_begin + row) * g.stride + begin) * size,
      g.stride * size, (end - begin) * size, Min(rows, t->n - row), steps);
}

template <class V, class T, bool kZeros>
void ByteTask(const LinearTask& t, const T* w) {
  ByteChunk prepared[kPreparedChunks];
  ByteScales scales;
  const int64_t steps = (t.m + kPreparedRows - 1) / kPreparedRows;
  const int64_t m_step = (t.m + steps - 1) / steps;
  const int64_t fit = kPreparedChunks / m_step / kBlockChunks;  // blocks
  BytePass pass;
  pass.x = prepared;
  pass.chunks = Min(fit, kMaxBlocks) * kBlockChunks;
  for (pass.begin = 0; pass.begin < t.k; pass.begin += pass.chunks * kChunk) {
    pass.k = Min(t.k - pass.begin, pass.chunks * kChunk);
    pass.blocks = (pass.k + kByteBlockK - 1) / kByteBlockK;
    pass.panel_rows = kBytePanelRows / pass.blocks / 4 * 4;
    for (int64_t b = 0; b < pass.blocks; ++b)
      pass.segments[b] = SegmentsOf(t.grid, pass.BlockBegin(b),
                                    Min(kByteBlockK, pass.begin + pass.k - pass.BlockBegin(b)));
    const bool in_turn =
        t.m <= ByteOrder<V, T>::kTurnRows && t.m * RoundUp(pass.k, kChunk) <= kTurnValues;
    for (int64_t m = 0; m < t.m; m += m_step) {
      const int64_t m_rows = Min(m_step, t.m - m);
      for (int64_t i = 0; i < m_rows; ++i)
        PrepareRow<V, T, kZeros>(t, m + i, pass.begin, pass.k, prepared + i * pass.chunks);
      for (int64_t n = 0; n < t.n; n += pass.panel_rows) {
        const int64_t rows = Min(pass.panel_rows, t.n - n);
        for (int64_t b = 0; b < pass.blocks; ++b)
          PrepareScales<V, T, kZeros>(t, n, rows, pass.BlockBegin(b), pass.segments[b],
                                      b * pass.panel_rows, scales);
        if (in_turn) {
          LinesInOrder scale_lines =
              ScaleLines(t, n + rows, pass.panel_rows, pass.begin, pass.k, rows * pass.blocks);
          WithConstant<ByteOrder<V, T>::kTurnRows>(m_rows, [&](auto count) {
            ByteRowsInTurn<V, T, kZeros, decltype(count)::value>(t, w, pass, n, rows, scales,
                                                                 scale_lines);
          });
          continue;
        }
        const int64_t tiles = (m_rows + ByteOrder<V, T>::kTileRows - 1) /
                              ByteOrder<V, T>::kTileRows * ((rows + 3) / 4);
        ByteAhead ahead;
        if (m == 0)
          ahead = {
              LinesOf<T>(t, n + rows, pass.panel_rows, pass.begin, pass.k,
                         tiles * (RoundUp(pass.k, kChunk) / kChunk)),
              ScaleLines(t, n + rows, pass.panel_rows, pass.begin, pass.k, tiles * pass.blocks)};
        for (int64_t b = 0; b < pass.blocks; ++b) {
          const int64_t k = pass.BlockBegin(b);
          const BytePanel<T> panel{w + n * t.w_stride + k / kValuesPer<T>,
                                   t.w_stride,
                                   n,
                                   rows,
                                   k,
                                   pass.segments[b].k,
                                   b * pass.panel_rows,
                                   pass.segments[b].count == 1};
          ByteDotPanel<V, T, kZeros>(t, panel, scales, prepared + b * kBlockChunks, pass.chunks, m,
                                     m_rows, ahead);
        }
      }
    }
  }
}

// Requires: t.x is i8; t.w is i8 or u4 with scales; groups as above.
template <class V>
void LinearInt8(const LinearTask& t) {
  if (t.w_type == Element::kI8) return ByteTask<V, I8, false>(t, static_cast<const I8*>(t.w));
  if (t.grid.zero == nullptr) return ByteTask<V, U4, false>(t, static_cast<const U4*>(t.w));
  ByteTask<V, U4, true>(t, static_cast<const U4*>(t.w));
}

}  // namespace
}  // namespace latte::cpu
