// What gemm and gemm_t prefetch: the weights and scales that a task reads next, at its end the
// weights and scales of the next task.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch-inl.h"
#include "src/kernels/cpu/common/scales-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Bytes of `values` values of a row.
template <class T>
constexpr int64_t BytesOf(int64_t values) {
  return values / kValuesPer<T> * static_cast<int64_t>(sizeof(T));
}
// Column k of row n: its byte in B, and its address.
template <class T>
int64_t ByteAt(const GemmTask& t, int64_t n, int64_t k) {
  return n * t.w_stride * static_cast<int64_t>(sizeof(T)) + BytesOf<T>(k);
}
template <class T>
const char* AddressOf(const GemmTask& t, int64_t n, int64_t k) {
  return static_cast<const char*>(t.w) + ByteAt<T>(t, n, k);
}

// The lines of rows [n, n + rows) and columns [k, k + columns) of a task's B; if n is past the last
// row, the first rows and columns of the next task.
template <class T>
SequentialPrefetch SequentialPrefetchOf(const GemmTask& task, int64_t n, int64_t rows, int64_t k,
                                        int64_t columns, CacheLevel to, int64_t steps = 1) {
  const GemmTask* t = &task;
  if (n >= t->n) {
    t = t->next;
    n = k = 0;
    if (t == nullptr || t->w_type != task.w_type) return {};
  }
  return {AddressOf<T>(*t, n, k),
          t->w_stride * static_cast<int64_t>(sizeof(T)),
          BytesOf<T>(Min(columns, t->k - k)),
          Min(rows, t->n - n),
          to,
          steps};
}

// The scales of rows [n, n + rows) and columns [k, k + columns) of B; past the last row, of the
// next task. With one scale per 32 4-bit weights they are a fifth of the memory traffic.
inline SequentialPrefetch ScalePrefetchOf(const GemmTask& task, int64_t n, int64_t rows, int64_t k,
                                          int64_t columns, int64_t steps) {
  const GemmTask* const t = n < task.n ? &task : task.next;
  if (t == nullptr || t->grid.scale == nullptr || t->grid.rows != 1) return {};
  const ScaleGrid& g = t->grid;
  const int64_t size = g.type == Element::kF32 ? 4 : 2;
  const int64_t row = n < task.n ? n : 0;
  const int64_t begin = (g.column_begin + k) / g.columns;
  const int64_t end = (g.column_begin + Min(k + columns, t->k) - 1) / g.columns + 1;
  return {static_cast<const char*>(g.scale) + ((g.row_begin + row) * g.stride + begin) * size,
          g.stride * size,
          (end - begin) * size,
          Min(rows, t->n - row),
          task.tuning->prefetch_level,
          steps};
}

// The panel that follows rows [n, n + rows) and columns [k, k + columns) of B: after the last panel
// of a pass comes the first one of the next pass. Row t.n means the next task.
struct PanelBegin {
  int64_t n, k;
};
inline PanelBegin NextPanelOf(const GemmTask& t, int64_t n, int64_t rows, int64_t k,
                              int64_t columns) {
  if (n + rows == t.n && k + columns < t.k) return {0, k + columns};
  return {n + rows, k};
}

// Distance of rows that are read one after the other.
constexpr int64_t kPrefetchBytesL1 = 6144;
constexpr int64_t kPrefetchBytesL2 = 12288;

// The distance at each byte of B, if `together` rows are read in parallel and the last of them is
// prefetched as early as the first. At the end of B it leads to the weights of the next task.
template <class T>
PrefetchDistance SequentialDistanceOf(const GemmTask& t, int64_t together = 1) {
  const int64_t ahead =
      (t.tuning->prefetch_level == CacheLevel::kL1 ? kPrefetchBytesL1 : kPrefetchBytesL2) +
      ByteAt<T>(t, together - 1, 0);
  const int64_t to_next =
      t.next == nullptr ? 0 : static_cast<const char*>(t.next->w) - AddressOf<T>(t, t.n, 0);
  return {ByteAt<T>(t, t.n, 0) - ahead, ahead, to_next + ahead};
}

// Touches the pages that begin within `count` bytes of the line that byte `at` of B prefetches, as
// SequentialPrefetch does. Not for L1 prefetch, where it costs more than it saves.
template <class T>
void TouchMemoryPagesAhead(const GemmTask& task, const PrefetchDistance& ahead, int64_t at,
                           int64_t count) {
  if (task.tuning->prefetch_level == CacheLevel::kL1) return;
  const GemmTask* const t = at < ahead.turn || task.next == nullptr ? &task : task.next;
  if (t->w_type != task.w_type) return;
  const char* const end = AddressOf<T>(*t, t->n - 1, t->k);
  const char* const from = static_cast<const char*>(task.w) + at + ahead.At(at);
  for (int64_t i = (kPage - ByteInPage(from)) % kPage; i < count && from + i < end; i += kPage) {
    TouchMemoryPage(from + i);
    PrefetchL2(from + i, kPage);
  }
}

constexpr int64_t kStridedPrefetchBytes = 1024;  // distance for four rows in parallel

// The distance at each byte of a row, if rows [n, n + rows) are read in parallel, columns [k, k +
// columns) of each: for machines whose cores follow many DRAM streams (Tuning::many_dram_streams).
// At its end each row prefetches the first lines of the row that takes its place. After the last
// rows come the first rows of the next columns, or of the next task; without one, cached lines are
// prefetched.
template <class T>
PrefetchDistance StridedDistanceOf(const GemmTask& t, int64_t n, int64_t rows, int64_t k,
                                   int64_t columns, int64_t ahead = kStridedPrefetchBytes) {
  const char* const from = AddressOf<T>(t, n, k);
  const char* to = from;
  if (n + rows < t.n)
    to = AddressOf<T>(t, n + rows, k);
  else if (k + columns < t.k)
    to = AddressOf<T>(t, 0, k + columns);
  else if (t.next != nullptr)
    to = static_cast<const char*>(t.next->w);
  const int64_t here = Min(ahead, BytesOf<T>(columns));
  return {BytesOf<T>(k + columns) - here, here, to - from + here - BytesOf<T>(columns)};
}

// The number of rows of gemm_t's B that are prefetched before their use: about `bytes`, at least
// twice the `rows` that are read together.
template <class T>
int64_t RowsAhead(const GemmTTask& t, int64_t columns, int64_t bytes, int64_t rows) {
  return Min(t.n, Max(2, bytes / (rows * BytesOf<T>(columns))) * rows);
}

// Columns [column, column + columns) of gemm_t's B without its first `ahead` rows, then those rows
// of the next product, in `steps` steps per product.
template <class T>
SequentialPrefetch ProductPrefetchOf(const GemmTTask& t, const T* w, int64_t column,
                                     int64_t columns, int64_t ahead, int64_t steps) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  const auto lines_of = [&](const void* weights, int64_t n, int64_t rows, int64_t in_steps) {
    return SequentialPrefetch(
        static_cast<const T*>(weights) + n * t.w_stride + column / kValuesPer<T>,
        t.w_stride * kSize, BytesOf<T>(columns), rows, t.tuning->prefetch_level, in_steps);
  };
  if (ahead < t.n) {
    SequentialPrefetch out = lines_of(w, ahead, t.n - ahead, steps * (t.n - ahead) / t.n);
    if (t.next_w != nullptr)
      out.Then(static_cast<const T*>(t.next_w) + column / kValuesPer<T>, BytesOf<T>(columns),
               ahead);
    return out;
  }
  return t.next_w == nullptr ? SequentialPrefetch() : lines_of(t.next_w, 0, t.n, steps);
}

// The scales of the next product.
inline SequentialPrefetch ProductScalePrefetchOf(const GemmTTask& t, int64_t column,
                                                 int64_t columns, int64_t steps) {
  const ScaleGrid& grid = t.grid;
  if (t.next_w == nullptr || grid.scale == nullptr) return {};
  const int64_t size = grid.type == Element::kF32 ? 4 : 2;
  const int64_t first = t.next_row_begin / grid.rows;
  const int64_t at = first * grid.stride + (grid.column_begin + column) / grid.columns;
  return {static_cast<const char*>(grid.scale) + at * size,
          grid.stride * size,
          SegmentsOf(grid, column, columns).count * size,
          (t.next_row_begin + t.n - 1) / grid.rows + 1 - first,
          t.tuning->prefetch_level,
          steps};
}

}  // namespace
}  // namespace latte::cpu
