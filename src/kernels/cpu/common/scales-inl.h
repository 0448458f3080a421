// Scales of quantised weights as kernels use them: a block of K is cut into segments of one scale.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Columns [0, k) of a block: the first segment has `first` of them, others `columns`, the last what
// is left.
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

// Scales and zeros of kRows rows of a block, kSegments at most of each.
template <int64_t kRows, int64_t kSegments>
struct PanelScales {
  alignas(64) float scale[kRows * kSegments];
  const float* row[kRows];     // in `scale`; rows that share theirs point to the first one's
  const uint8_t* zero[kRows];  // null: the default

  float* Own(int64_t i) { return scale + i * kSegments; }
  const float* Row(int64_t i) const { return row[i]; }
};

// Rows [row_begin, +rows) of the task and `count` scales of the columns from k_begin on, to rows
// from to_row on.
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
