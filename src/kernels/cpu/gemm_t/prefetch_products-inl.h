// Software prefetch of gemm_t: the weights of a product in memory order, then the weights of the next
// product.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch_sequential-inl.h"
#include "src/kernels/cpu/common/scales-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Prefetches columns [column, column + columns) of B, `ahead_bytes` before their use, and at the end
// the first rows of the next product: `steps` runs of lines per `rows` rows. The scales of the next
// product are prefetched along the way.
template <class T>
class ProductPrefetch {
 public:
  ProductPrefetch(const GemmTTask& t, const T* w, int64_t column, int64_t columns,
                  int64_t ahead_bytes, int64_t rows, int64_t steps) {
    const int64_t bytes = columns / kValuesPer<T> * kSize;
    const int64_t ahead = Min(t.n, Max(2, ahead_bytes / (rows * bytes)) * rows);
    const auto lines_of = [&](const void* weights, int64_t n, int64_t count) {
      const T* const from = static_cast<const T*>(weights) + n * t.w_stride;
      return PrefetchRuns(from + column / kValuesPer<T>, t.w_stride * kSize, bytes, count,
                          t.tuning->prefetch_level);
    };
    steps_here_ = (t.n - ahead + rows - 1) / rows * steps;
    per_step_ = (rows * bytes + kLine * steps - 1) / (kLine * steps);
    if (steps_here_ > 0) here_ = lines_of(w, ahead, t.n - ahead);
    if (t.next_w == nullptr) return;
    next_ = lines_of(t.next_w, 0, ahead);
    if (t.grid.scale != nullptr) SetScales(t, column, columns, (t.n + rows - 1) / rows * steps);
  }

  PrefetchRuns::Run Next() {
    scales_.PrefetchNext();
    return steps_here_-- > 0 ? here_.Next(per_step_) : next_.Next(per_step_);
  }

 private:
  static constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  static constexpr int64_t kLine = 64;

  void SetScales(const GemmTTask& t, int64_t column, int64_t columns, int64_t steps) {
    const ScaleGrid& grid = t.grid;
    const int64_t size = grid.type == Element::kF32 ? 4 : 2;
    const int64_t first = t.next_row_begin / grid.rows;
    const int64_t at = first * grid.stride + (grid.column_begin + column) / grid.columns;
    scales_ = SequentialPrefetch(static_cast<const char*>(grid.scale) + at * size,
                                 grid.stride * size, SegmentsOf(grid, column, columns).count * size,
                                 (t.next_row_begin + t.n - 1) / grid.rows + 1 - first,
                                 t.tuning->prefetch_level, steps);
  }

  PrefetchRuns here_, next_;
  SequentialPrefetch scales_;
  int64_t steps_here_, per_step_;
};

}  // namespace
}  // namespace latte::cpu
