// What linear_t asks memory for: the weights of a product in their order, and then those of the one
// that is next.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch_sequential-inl.h"
#include "src/kernels/cpu/common/scales-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Lines of columns [column, +columns) of W, asked for about `ahead_bytes` before they are used, and
// at its end those of the product that is next, in `steps` runs for every `rows` rows. Scales of
// the latter are asked for all along.
template <class T>
class ProductLines {
 public:
  ProductLines(const LinearTTask& t, const T* w, int64_t column, int64_t columns,
               int64_t ahead_bytes, int64_t rows, int64_t steps) {
    const int64_t bytes = columns / kValuesPer<T> * kSize;
    const int64_t ahead = Min(t.n, Max(2, ahead_bytes / (rows * bytes)) * rows);
    const auto lines_of = [&](const void* weights, int64_t n, int64_t count) {
      const T* const from = static_cast<const T*>(weights) + n * t.w_stride;
      return LineRuns(from + column / kValuesPer<T>, t.w_stride * kSize, bytes, count, t.ask_into);
    };
    steps_here_ = (t.n - ahead + rows - 1) / rows * steps;
    per_step_ = (rows * bytes + kLine * steps - 1) / (kLine * steps);
    if (steps_here_ > 0) here_ = lines_of(w, ahead, t.n - ahead);
    if (t.next_w == nullptr) return;
    next_ = lines_of(t.next_w, 0, ahead);
    if (t.grid.scale != nullptr) SetScales(t, column, columns, (t.n + rows - 1) / rows * steps);
  }

  LineRuns::Run Next() {
    scales_.Ask();
    return steps_here_-- > 0 ? here_.Next(per_step_) : next_.Next(per_step_);
  }

 private:
  static constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  static constexpr int64_t kLine = 64;

  void SetScales(const LinearTTask& t, int64_t column, int64_t columns, int64_t steps) {
    const ScaleGrid& grid = t.grid;
    const int64_t size = grid.type == Element::kF32 ? 4 : 2;
    const int64_t first = t.next_row_begin / grid.rows;
    const int64_t at = first * grid.stride + (grid.column_begin + column) / grid.columns;
    scales_ = LinesInOrder(static_cast<const char*>(grid.scale) + at * size, grid.stride * size,
                           SegmentsOf(grid, column, columns).count * size,
                           (t.next_row_begin + t.n - 1) / grid.rows + 1 - first, t.ask_into, steps);
  }

  LineRuns here_, next_;
  LinesInOrder scales_;
  int64_t steps_here_, per_step_;
};

// Asks for lines of a run at every row of W that a loop passes: a burst of them would hold the
// places that its own loads wait for.
class LinesByRow {
 public:
  explicit LinesByRow(const LineRuns::Run& run) : run_(run) {}
  void Ask() {
    if (at_ < run_.count) run_.Ask(at_++);
    asm volatile("");  // g++ 12 drops what only asks
  }

 private:
  LineRuns::Run run_;
  int64_t at_ = 0;
};

}  // namespace
}  // namespace latte::cpu
