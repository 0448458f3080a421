// Scales of int8 A × int8 or 4-bit B, and the order of f32 sums of all int8 kernels:
//
// C += a_scale · Σ over the scale groups of a chunk: b_scale · I        I: exact integer sum
//
// A chunk is 128 columns, for which A has one scale. A scale group is a chunk or, for 4-bit B with
// more scales, 32 columns. Chunks are added in order. Within a chunk the first group is multiplied
// by its scale, the others are added by fused multiply-adds; the result is multiplied by the scale
// of A and added likewise. If a row of B has one scale, it multiplies the finished sum. Lanes are
// rows of B.
#pragma once

#include <cstdint>
#include <type_traits>

#include "src/kernels/cpu/common/scales-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kChunkK = 128;    // columns of a chunk; scale groups of A are multiples
constexpr int64_t kMinGroupK = 32;  // smallest scale group of 4-bit B
constexpr int64_t kChunkGroups = kChunkK / kMinGroupK;

inline bool HasOneScale(const GemmTask& t) { return SegmentsOf(t.grid, 0, t.k).count == 1; }
// Whether scale groups of B begin at chunks.
inline bool HasChunkGroups(const ScaleGrid& g) {
  return g.columns % kChunkK == 0 && g.column_begin % kChunkK == 0;
}

// total + x · Σ over the groups of a chunk: w(group) · sum(group).
template <class V, bool kOneScale, int64_t kGroups, class Sum, class Scale>
inline typename V::Vec AddScaledChunk(const Sum& sum, const Scale& w, typename V::Vec x,
                                      typename V::Vec total) {
  typename V::Vec scaled = kOneScale ? sum(0) : V::Mul(sum(0), w(0));
  for (int64_t group = 1; group < kGroups; ++group) scaled = V::Fma(sum(group), w(group), scaled);
  return V::Fma(scaled, x, total);
}

// One f32, bf16 or f16 value.
template <class V, class T>
inline float ToFloatScalar(const T* p) {
  float out;
  V::StorePartial(&out, V::LoadPartial(p, 1), 1);
  return out;
}

// Column of the scale grid for column k of the task, and its row for row n.
inline int64_t GridColumn(const ScaleGrid& g, int64_t k) {
  return (g.column_begin + k) / g.columns;
}
inline int64_t GridRow(const ScaleGrid& g, int64_t n) {
  return g.rows == 1 ? g.row_begin + n : (g.row_begin + n) / g.rows;  // no division per row
}

// scale[group][row] from rows of contiguous scales; bf16 scales two at a time.
template <class V, int64_t kRows, class Row>
[[gnu::always_inline]] inline void TransposeBf16Scales(const Row& row, int64_t groups,
                                                       float* scale) {
  for (int64_t first = 0; first < groups; first += 2 * V::kLanes)
    for (int64_t i = 0; i < kRows; i += V::kLanes) {
      typename V::Ints pairs[V::kLanes];
      for (int64_t j = 0; j < V::kLanes; ++j)
        pairs[j] = V::LoadBytesPartial(row(i + j) + first, 2 * (groups - first));
      V::Transpose(pairs);
#pragma GCC unroll 32
      for (int64_t j = 0; j < 2 * V::kLanes; ++j) {
        if (j == groups - first) break;
        const typename V::Ints pair = pairs[j / 2];
        V::Store(scale + (first + j) * kRows + i,
                 j % 2 == 0 ? V::FirstOfPairs(pair) : V::SecondOfPairs(pair));
      }
    }
}
template <class V, int64_t kRows, class Row>
[[gnu::always_inline]] inline void TransposeScales(const Row& row, int64_t groups, float* scale) {
  for (int64_t first = 0; first < groups; first += V::kLanes)
    for (int64_t i = 0; i < kRows; i += V::kLanes) {
      typename V::Vec part[V::kLanes];
      for (int64_t j = 0; j < V::kLanes; ++j)
        part[j] = LoadNext<V>(row(i + j) + first, groups - first);
      V::Transpose(part);
#pragma GCC unroll 16
      for (int64_t j = 0; j < V::kLanes; ++j) {
        if (j == groups - first) break;
        V::Store(scale + (first + j) * kRows + i, part[j]);
      }
    }
}

// scale[group][row] of rows [row_begin, +rows), at most kRows, and columns [k_begin, +k) in groups
// of kGroup columns. Entries behind the last column and the last row are finite.
template <class V, int64_t kGroup, int64_t kRows>
void LoadGroupScales(const ScaleGrid& g, int64_t row_begin, int64_t rows, int64_t k_begin,
                     int64_t k, float* scale) {
  const int64_t groups = (k + kGroup - 1) / kGroup;
  const int64_t all_groups = (k + kChunkK - 1) / kChunkK * (kChunkK / kGroup);
  for (int64_t group = groups; group < all_groups; ++group)
    for (int64_t i = 0; i < kRows; i += V::kLanes) V::Store(scale + group * kRows + i, V::Zero());
  WithType(g.scale, g.type, [&]<class T>(const T* stored) {
    const auto row = [&](int64_t i) {
      return stored + GridRow(g, row_begin + Min(i, rows - 1)) * g.stride;
    };
    if (row(0) == row(rows - 1)) {
      for (int64_t group = 0; group < groups; ++group) {
        const float one = ToFloatScalar<V>(row(0) + GridColumn(g, k_begin + group * kGroup));
        for (int64_t i = 0; i < kRows; i += V::kLanes)
          V::Store(scale + group * kRows + i, V::Set1(one));
      }
    } else if (groups == 1 && g.rows == 1 && g.stride == 1) {
      WidenRow<V>(row(0) + GridColumn(g, k_begin), rows, scale);
      for (int64_t i = rows; i < kRows; ++i) scale[i] = 0;
    } else if (g.columns == kGroup) {
      const int64_t column = GridColumn(g, k_begin);
      const auto from = [&](int64_t i) { return row(i) + column; };
      if constexpr (std::is_same_v<T, BF16>)
        TransposeBf16Scales<V, kRows>(from, groups, scale);
      else
        TransposeScales<V, kRows>(from, groups, scale);
    } else {
      for (int64_t group = 0; group < groups; ++group) {
        const int64_t column = GridColumn(g, k_begin + group * kGroup);
        for (int64_t i = 0; i < kRows; ++i)
          scale[group * kRows + i] = ToFloatScalar<V>(row(i) + column);
      }
    }
  });
}

// Zero points of the four groups of the chunk of row n at column k; the row has `end` columns.
inline uint32_t ChunkZeros(const ScaleGrid& g, int64_t n, int64_t k, int64_t end) {
  const uint8_t* const zero = g.zero + GridRow(g, n) * g.zero_stride;
  uint32_t out = 0;
  for (int64_t i = 0; i < kChunkGroups; ++i)
    out |= static_cast<uint32_t>(zero[GridColumn(g, Min(k + i * kMinGroupK, end - 1))]) << (8 * i);
  return out;
}

}  // namespace
}  // namespace latte::cpu
