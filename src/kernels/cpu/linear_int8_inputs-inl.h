// Up to 64 rows of x and W of 8 bits for linear_int8-inl.h: lanes are rows of x, and rows of W are
// read where they lie or where a chunk of them was copied, four bytes of one in every lane.
//
//   x  [chunk][step: 4 columns][row of x][column]      a vector: 4 columns of 16 rows
//
// Work      a tile is up to 24 vectors of integer sums: 12, 12, 8 and 6 rows of W beside 16, 32, 48
//           and 64 of x. A step multiplies four bytes of each row of W by a vector or more. Sums
//           over lanes are not needed, and a sum becomes f32 once per chunk. Results of 48 rows of
//           W stay near, and are turned when a pass ends.
// Order     as byte_scales-inl.h says, the bits of other rows of x.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/byte_rows-inl.h"
#include "src/kernels/cpu/rows_in_order-inl.h"
#include "src/kernels/cpu/rows_side_by_side-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/tiles-inl.h"

namespace latte::cpu {
namespace {

constexpr int64_t kMaxInputs = 64;               // rows of x
constexpr int64_t kInputPanel = 48;              // rows of W
constexpr int64_t kInputColumns = 4096;          // of a pass
constexpr int64_t kInputAhead = 256;             // bytes that a row asks ahead for itself
constexpr int64_t kInputVector = 4 * kSumLanes;  // bytes
constexpr int64_t kChunkFours = kByteChunk / 4;  // steps of a chunk
// Rows of W of a tile of as many vectors of rows of x: what registers hold, and of one vector what
// the L1 holds where rows lie half a page apart.
template <int64_t kVectors>
constexpr int64_t kInputRows = kVectors == 1 ? 12 : 24 / kVectors;
constexpr int64_t kMaxInputRows = 12;

// Columns [begin, +k) of a task's x, `rows` rows in kVectors · 16 lanes; behind the last one there
// are zeros.
template <int64_t kVectors>
struct InputLanes {
  static constexpr int64_t kChunks =
      Min(kMaxPreparedChunks / (kVectors * kSumLanes), kInputColumns / kByteChunk);

  alignas(64) int8_t codes[kChunks][kChunkFours][kVectors][kInputVector];
  alignas(64) int32_t start[kChunks][kVectors][kSumLanes];  // what sums of a chunk start from
  alignas(64) float scale[kChunks][kVectors][kSumLanes];
  int64_t begin, k, rows;

  int64_t chunks() const { return (k + kByteChunk - 1) / kByteChunk; }
};

struct InputScratch {
  ByteRunScales<kInputPanel, kInputColumns / kByteChunk> scales;
  alignas(64) float totals[kInputPanel][kMaxInputs];
  alignas(64) char chunk[kMaxInputRows][kByteChunk];  // of rows, copied
};

// Prepares a chunk of 16 rows of x from row `row` on.
template <class Kind, int64_t kVectors>
void PrepareInputChunk(const LinearTask& t, int64_t row, int64_t chunk, InputLanes<kVectors>& to) {
  using V = typename Kind::V;
  const int64_t v = row / kSumLanes;
  const int64_t k = to.begin + chunk * kByteChunk;
  const float* const scale = t.x_scale + row * t.x_scale_stride + k / t.x_group;
  typename V::Ints halves[2][kSumLanes];
  for (int64_t i = 0; i < kSumLanes; ++i) {
    to.scale[chunk][v][i] = 0;
    halves[0][i] = halves[1][i] = V::ZeroInts();
    if (row + i >= to.rows) continue;
    typename V::Ints values[2];
    LoadValues<V>(static_cast<const int8_t*>(t.x) + (row + i) * t.x_stride + k, to.begin + to.k - k,
                  values);
    for (int64_t half = 0; half < 2; ++half) halves[half][i] = values[half];
    to.scale[chunk][v][i] = scale[i * t.x_scale_stride];
  }
  typename V::Ints sum = V::ZeroInts();
  for (int64_t half = 0; half < 2; ++half) {
    V::Transpose(halves[half]);
    for (int64_t i = 0; i < kSumLanes; ++i) {
      V::StoreBytes(to.codes[chunk][half * kSumLanes + i][v], halves[half][i]);
      sum = V::AddInts(sum, V::SumBytes(halves[half][i]));
    }
  }
  V::StoreBytes(to.start[chunk][v], V::TimesInt(sum, -Kind::Order::kZero));
}

// Adds a chunk of kN rows of W, `stride` bytes apart, and all of x; lines are asked for.
// kUnsigned: W's bytes are 128 larger already. Addresses are spelled out, or g++ 12 keeps one for
// each row.
template <class Kind, bool kUnsigned, int64_t kN, int64_t kVectors>
[[gnu::always_inline]] inline void DotInputs(const char* w, int64_t stride,
                                             const int8_t (*x)[kVectors][kInputVector],
                                             LineRuns::Run ahead,
                                             typename Kind::V::Ints (&sums)[kN][kVectors]) {
  using V = typename Kind::V;
  const char* rows[(kN + 3) / 4];
  for (int64_t i = 0; i < (kN + 3) / 4; ++i) rows[i] = V::Opaque(w + 4 * i * stride);
  const int64_t three = V::Opaque(3 * stride);
#pragma GCC unroll 1
  for (int64_t step = 0; step < kChunkFours; ++step) {
    for (int64_t i = step; i < ahead.count; i += kChunkFours) ahead.Ask(i);
    typename V::Ints xv[kVectors];
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) xv[v] = V::LoadBytes(x[step][v]);
#pragma GCC unroll 12
    for (int64_t i = 0; i < kN; ++i) {
      const int64_t offset = i % 4 == 3 ? three : i % 4 * stride;
      typename V::Ints wi = V::SetFour(rows[i / 4] + offset);
      if constexpr (!kUnsigned) wi = V::FlipSigns(wi);
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; ++v) sums[i][v] = V::DotBytes(sums[i][v], wi, xv[v]);
    }
    for (const char*& row : rows) row = V::Opaque(row + 4);
  }
}

// A chunk of kN rows of W, `stride` bytes apart, which are rows [n, +kN) of the panel, and all of
// x.
template <class Kind, bool kUnsigned, int64_t kN, int64_t kVectors>
[[gnu::noinline]] void MultiplyInputs(const char* w, int64_t stride, LineRuns::Run ahead,
                                      const InputLanes<kVectors>& x, InputScratch& s, int64_t chunk,
                                      int64_t n) {
  using V = typename Kind::V;
  typename V::Ints sums[kN][kVectors];
#pragma GCC unroll 4
  for (int64_t v = 0; v < kVectors; ++v) {
    const typename V::Ints start = V::LoadBytes(x.start[chunk][v]);
#pragma GCC unroll 12
    for (int64_t i = 0; i < kN; ++i) sums[i][v] = start;
  }
  DotInputs<Kind, kUnsigned, kN, kVectors>(w, stride, x.codes[chunk], ahead, sums);
  const float* const scale = s.scales.scale + (Kind::kOneScale ? 0 : chunk * kInputPanel) + n;
#pragma GCC unroll 4
  for (int64_t v = 0; v < kVectors; ++v) {
    const typename V::Vec x_scale = V::Load(x.scale[chunk][v]);
#pragma GCC unroll 12
    for (int64_t i = 0; i < kN; ++i) {
      float* const total = s.totals[n + i] + v * kSumLanes;
      V::Store(total, AddChunkOf<V, Kind::kOneScale, 1>(
                          [&](int64_t) { return V::ToFloat(sums[i][v]); },
                          [&](int64_t) { return V::Set1(scale[i]); }, x_scale, V::Load(total)));
    }
  }
}

// Copies a chunk of kN rows as unsigned bytes. If `rows` are fewer, the last of them is there
// again; of a chunk `values` are there. Each row asks for its own lines `behind` it, unless that is
// zero.
template <class V, int64_t kN>
void CopyChunk(const char* w, int64_t stride, int64_t rows, int64_t values, int64_t behind,
               InputScratch& s) {
  const bool whole = values >= kByteChunk;
  for (int64_t i = 0; i < kN; ++i, w += i < rows ? stride : 0)
    for (int64_t at = 0; at < kByteChunk; at += kInputVector) {
      const typename V::Ints bytes =
          whole ? V::LoadBytes(w + at)
                : V::LoadBytesPartial(w + at, Max(0, Min(values - at, kInputVector)));
      if (behind != 0) PrefetchNear(w + at, behind);
      V::StoreBytes(s.chunk[i] + at, V::FlipSigns(bytes));
    }
}

// Totals of rows [n, +rows) of W where a pass begins: lanes are rows of x. What a pass ends with
// stores them far apart, and is faster where their lines are near.
template <class V, int64_t kVectors>
void FirstInputTotals(const LinearTask& t, const InputLanes<kVectors>& x, int64_t n, int64_t rows,
                      InputScratch& s) {
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
    for (int64_t i = 0; i < rows; i += kSumLanes) AskToWrite(t.y + m * t.y_stride + n + i);
}

template <class Kind, int64_t kVectors>
void StoreInputTotals(const LinearTask& t, const InputLanes<kVectors>& x, int64_t n, int64_t rows,
                      const InputScratch& s) {
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

// What is asked for while a panel is multiplied: of the next one, or by each row for itself.
struct InputAhead {
  LineRuns lines;
  SideAhead own;
  bool by_rows;
};

// Rows of W as they lie. Where a processor has two ports for all that vectors do, and with them
// slow pairs and many streams, making each four of bytes unsigned costs as much as a product: there
// chunks are copied first, unsigned, 64 bytes at a time.
template <class Kind, int64_t kVectors>
void MultiplyInputPanel(const LinearTask& t, const InputLanes<kVectors>& x, int64_t n, int64_t rows,
                        InputAhead ahead, InputScratch& s) {
  constexpr int64_t kN = kInputRows<kVectors>;
  FirstInputTotals<typename Kind::V>(t, x, n, rows, s);
  const char* const from = static_cast<const char*>(t.w) + n * t.w_stride + x.begin;
  const int64_t calls = x.chunks() * ((rows + kN - 1) / kN);
  const int64_t lines = ahead.lines.Even(ahead.lines.lines() / calls + 1);
  for (int64_t chunk = 0; chunk < x.chunks(); ++chunk) {
    const int64_t values = x.k - chunk * kByteChunk;
    const int64_t behind = ahead.by_rows ? ahead.own.Of(x.begin + chunk * kByteChunk) : 0;
    for (int64_t i = 0; i < rows; i += kN) {
      const char* const w = from + i * t.w_stride + chunk * kByteChunk;
      const LineRuns::Run run = ahead.lines.Next(lines);
      if (!t.many_streams && values >= kByteChunk && rows - i >= kN) {
        MultiplyInputs<Kind, false, kN>(w, t.w_stride, run, x, s, chunk, i);
        continue;
      }
      CopyChunk<typename Kind::V, kN>(w, t.w_stride, rows - i, values, behind, s);
      MultiplyInputs<Kind, true, kN>(s.chunk[0], kByteChunk, run, x, s, chunk, i);
    }
  }
  StoreInputTotals<Kind>(t, x, n, rows, s);
}

template <class Kind, int64_t kVectors>
void MultiplyByInputs(const LinearTask& t) {
  InputLanes<kVectors> x;
  InputScratch s;
  constexpr int64_t kColumns = InputLanes<kVectors>::kChunks * kByteChunk;
  x.rows = t.m;
  for (x.begin = 0; x.begin < t.k; x.begin += x.k) {
    x.k = Min(kColumns, t.k - x.begin);
    for (int64_t chunk = 0; chunk < x.chunks(); ++chunk)
      for (int64_t row = 0; row < kVectors * kSumLanes; row += kSumLanes)
        PrepareInputChunk<Kind>(t, row, chunk, x);
    for (int64_t n = 0; n < t.n; n += kInputPanel) {
      const int64_t rows = Min(kInputPanel, t.n - n);
      PrepareScales<Kind>(t, n, rows, x.begin, x.k, s.scales);
      // Behind the last panel of this pass comes the first of the next one.
      const bool passes_on = n + rows == t.n && x.begin + x.k < t.k;
      InputAhead ahead;
      ahead.by_rows = t.many_streams && t.w_stride >= kPage;  // shorter ones are faster in order
      if (ahead.by_rows)
        ahead.own = SideAheadOf<I8>(t, n, rows, x.begin, x.k, kInputAhead);
      else
        ahead.lines =
            LinesOfRows<I8, LineRuns>(t, passes_on ? 0 : n + rows, kInputPanel,
                                      passes_on ? x.begin + x.k : x.begin, kColumns, t.ask_into);
      MultiplyInputPanel<Kind>(t, x, n, rows, ahead, s);
    }
  }
}

}  // namespace
}  // namespace latte::cpu
