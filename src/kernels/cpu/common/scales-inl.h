// Scales of 8- and 4-bit B by segments: a K block splits into segments of one scale each.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Segments of columns [0, k): the first has `first` columns, the others `columns`, the last the
// rest.
struct Segments {
  int64_t k, first, columns, count;
};

inline Segments SegmentsOf(const ScaleGrid& grid, int64_t k_begin, int64_t k) {
  if (grid.scale == nullptr) return {k, k, k, 1};
  const int64_t first = Min(k, grid.columns - (grid.column_begin + k_begin) % grid.columns);
  return {k, first, grid.columns, 1 + (k - first + grid.columns - 1) / grid.columns};
}

// Calls f(segment, begin, end).
template <class F>
void ForEachSegment(const Segments& s, const F& f) {
  int64_t begin = 0;
  for (int64_t i = 0, end = s.first; i < s.count; ++i, end = Min(end + s.columns, s.k)) {
    f(i, begin, end);
    begin = end;
  }
}

// Scales and zero points of kRows rows of B, at most kSegments of each.
template <int64_t kRows, int64_t kSegments>
struct PanelScales {
  alignas(64) float scale[kRows * kSegments];
  const float* row[kRows];     // in `scale`; rows that share scales share the pointer
  const uint8_t* zero[kRows];  // null: the default

  float* Own(int64_t i) { return scale + i * kSegments; }
  const float* Row(int64_t i) const { return row[i]; }
};

// Loads `count` scales from column k_begin of rows [row_begin, +rows) of the task to rows from
// to_row.
template <class V, int64_t kRows, int64_t kSegments>
void LoadScales(const ScaleGrid& grid, int64_t row_begin, int64_t rows, int64_t k_begin,
                int64_t count, int64_t to_row, PanelScales<kRows, kSegments>& to) {
  const int64_t column = (grid.column_begin + k_begin) / grid.columns;
  const int64_t first = grid.row_begin + row_begin;
  int64_t row = first / grid.rows;
  int64_t end = (row + 1) * grid.rows - first;
  WithType(grid.scale, grid.type, [&](const auto* scale) {
    for (int64_t i = 0; i < rows; ++row, end += grid.rows) {
      float* const own = to.Own(to_row + i);
      WidenRow<V>(scale + row * grid.stride + column, count, own);
      const uint8_t* const zero =
          grid.zero == nullptr ? nullptr : grid.zero + row * grid.zero_stride + column;
      for (; i < Min(end, rows); ++i) {
        to.row[to_row + i] = own;
        to.zero[to_row + i] = zero;
      }
    }
  });
}

}  // namespace
}  // namespace latte::cpu
