// Scales and zeros of weights of a byte or less beside activations of 8 bits, and the sum that they
// enter: lanes of f32 are rows of W.
//
//   y += x_scale · Σ over the runs of a chunk: w_scale · I        I: exact integer sum of a run
//
// A chunk is 128 columns, of which x has one scale; a run is a chunk or, where a 4-bit weight has
// more scales, 32 columns. Chunks in order, in a chunk runs in order, the first times its scale,
// the others added by fused multiply-adds; then times the scale of x, added likewise. Where a row
// of W has one scale it multiplies the finished sum.
#pragma once

#include <cstdint>
#include <type_traits>

#include "src/kernels/cpu/common/scales-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kByteChunk = 128;  // values between two scales of x at least
constexpr int64_t kShortRun = 32;    // values of a 4-bit weight that share a scale, at least
constexpr int64_t kChunkRuns = kByteChunk / kShortRun;

inline bool HasOneScale(const LinearTask& t) { return SegmentsOf(t.grid, 0, t.k).count == 1; }
// Whether scales of W begin at chunks.
inline bool HasLongRuns(const ScaleGrid& g) {
  return g.columns % kByteChunk == 0 && g.column_begin % kByteChunk == 0;
}

// total + x · Σ over the runs of a chunk: w(run) · sum(run).
template <class V, bool kOneScale, int64_t kRuns, class Sum, class Scale>
inline typename V::Vec AddChunkOf(const Sum& sum, const Scale& w, typename V::Vec x,
                                  typename V::Vec total) {
  typename V::Vec scaled = kOneScale ? sum(0) : V::Mul(sum(0), w(0));
  for (int64_t run = 1; run < kRuns; ++run) scaled = V::Fma(sum(run), w(run), scaled);
  return V::Fma(scaled, x, total);
}

// One value of f32 or 16 bits.
template <class V, class T>
inline float WideOf(const T* p) {
  float out;
  V::StorePartial(&out, V::LoadPartial(p, 1), 1);
  return out;
}

// Column of the grid that holds column k of the task, and its row that holds row n.
inline int64_t GridColumn(const ScaleGrid& g, int64_t k) {
  return (g.column_begin + k) / g.columns;
}
inline int64_t GridRow(const ScaleGrid& g, int64_t n) {
  return g.rows == 1 ? g.row_begin + n : (g.row_begin + n) / g.rows;  // no division per row
}

// scale[run][row] of kRows rows from scales side by side; of bf16 two at a time.
template <class V, int64_t kRows, class Row>
[[gnu::always_inline]] inline void TurnPairs(const Row& row, int64_t runs, float* scale) {
  for (int64_t first = 0; first < runs; first += 2 * V::kLanes)
    for (int64_t i = 0; i < kRows; i += V::kLanes) {
      typename V::Ints pairs[V::kLanes];
      for (int64_t j = 0; j < V::kLanes; ++j)
        pairs[j] = V::LoadBytesPartial(row(i + j) + first, 2 * (runs - first));
      V::Transpose(pairs);
#pragma GCC unroll 32
      for (int64_t j = 0; j < 2 * V::kLanes; ++j) {
        if (j == runs - first) break;
        const typename V::Ints pair = pairs[j / 2];
        V::Store(scale + (first + j) * kRows + i,
                 j % 2 == 0 ? V::FirstOfPairs(pair) : V::SecondOfPairs(pair));
      }
    }
}
template <class V, int64_t kRows, class Row>
[[gnu::always_inline]] inline void TurnScales(const Row& row, int64_t runs, float* scale) {
  for (int64_t first = 0; first < runs; first += V::kLanes)
    for (int64_t i = 0; i < kRows; i += V::kLanes) {
      typename V::Vec part[V::kLanes];
      for (int64_t j = 0; j < V::kLanes; ++j)
        part[j] = LoadNext<V>(row(i + j) + first, runs - first);
      V::Transpose(part);
#pragma GCC unroll 16
      for (int64_t j = 0; j < V::kLanes; ++j) {
        if (j == runs - first) break;
        V::Store(scale + (first + j) * kRows + i, part[j]);
      }
    }
}

// scale[run][row] of rows [row_begin, +rows) of kRows and columns [k_begin, +k) in runs of kRun, of
// which a chunk has 128 / kRun; behind the last column and the last row they are some number.
template <class V, int64_t kRun, int64_t kRows>
void PrepareRunScales(const ScaleGrid& g, int64_t row_begin, int64_t rows, int64_t k_begin,
                      int64_t k, float* scale) {
  const int64_t runs = (k + kRun - 1) / kRun;
  const int64_t all_runs = (k + kByteChunk - 1) / kByteChunk * (kByteChunk / kRun);
  for (int64_t run = runs; run < all_runs; ++run)
    for (int64_t i = 0; i < kRows; i += V::kLanes) V::Store(scale + run * kRows + i, V::Zero());
  WithType(g.scale, g.type, [&]<class T>(const T* stored) {
    const auto row = [&](int64_t i) {
      return stored + GridRow(g, row_begin + Min(i, rows - 1)) * g.stride;
    };
    if (row(0) == row(rows - 1)) {
      for (int64_t run = 0; run < runs; ++run) {
        const float one = WideOf<V>(row(0) + GridColumn(g, k_begin + run * kRun));
        for (int64_t i = 0; i < kRows; i += V::kLanes)
          V::Store(scale + run * kRows + i, V::Set1(one));
      }
    } else if (runs == 1 && g.rows == 1 && g.stride == 1) {
      WidenRow<V>(row(0) + GridColumn(g, k_begin), rows, scale);
      for (int64_t i = rows; i < kRows; ++i) scale[i] = 0;
    } else if (g.columns == kRun) {
      const int64_t column = GridColumn(g, k_begin);
      const auto from = [&](int64_t i) { return row(i) + column; };
      if constexpr (std::is_same_v<T, BF16>)
        TurnPairs<V, kRows>(from, runs, scale);
      else
        TurnScales<V, kRows>(from, runs, scale);
    } else {
      for (int64_t run = 0; run < runs; ++run) {
        const int64_t column = GridColumn(g, k_begin + run * kRun);
        for (int64_t i = 0; i < kRows; ++i) scale[run * kRows + i] = WideOf<V>(row(i) + column);
      }
    }
  });
}

// Zeros of the four runs of a chunk of row n that begins at column k of `end`.
inline uint32_t ChunkZeros(const ScaleGrid& g, int64_t n, int64_t k, int64_t end) {
  const uint8_t* const zero = g.zero + GridRow(g, n) * g.zero_stride;
  uint32_t out = 0;
  for (int64_t i = 0; i < kChunkRuns; ++i)
    out |= static_cast<uint32_t>(zero[GridColumn(g, Min(k + i * kShortRun, end - 1))]) << (8 * i);
  return out;
}

}  // namespace
}  // namespace latte::cpu
