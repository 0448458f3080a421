// Software prefetch of weights in memory order, the fastest order for one DRAM stream per core.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Prefetches the cache lines of rows in memory order, spread evenly over `steps` steps.
//
// Before the lines of a page are prefetched, the page is touched: some cores drop prefetches of a page
// that is not in the TLB, and the first load then waits for the translation. The first line of a page is
// prefetched a page and a half earlier, so that the touch does not wait.
class SequentialPrefetch {
 public:
  SequentialPrefetch() = default;
  SequentialPrefetch(const void* row, int64_t stride, int64_t bytes, int64_t rows, CacheLevel to,
                     int64_t steps)
      : line_(static_cast<const char*>(row)), stride_(stride), rows_(rows), to_(to) {
    next_ = line_ + stride_;
    int64_t first = bytes;
    if (stride == bytes && rows > 0) {  // one run, which is cut into pages
      const auto in_page = static_cast<int64_t>(reinterpret_cast<uintptr_t>(line_) % kPage);
      first = Min(rows * bytes, kPage - in_page);
      rows_ = (in_page + rows * bytes + kPage - 1) / kPage;
      bytes = stride_ = kPage;
      next_ = line_ + first;
    }
    in_row_ = (bytes + kLine - 1) / kLine;
    left_ = (first + kLine - 1) / kLine;
    if (rows_ > 1) Prefetch(next_, 0, to_);
    if (rows_ > 2) Prefetch(next_, stride_, to_);
    per_step_ = (rows_ * in_row_ + steps - 1) / Max(steps, 1);
  }

  void PrefetchNext() {
    for (int64_t i = 0; i < per_step_; ++i) {
      Prefetch(line_, 0, to_);
      line_ += kLine;
      --left_;
      if (left_ == in_row_ / 2 && rows_ > 1) TouchPage(next_);
      if (left_ == 0) StartRow();
    }
  }

 private:
  static constexpr int64_t kLine = 64;

  void StartRow() {
    left_ = in_row_;
    line_ = next_;
    next_ += stride_;
    if (--rows_ == 0) per_step_ = 0;
    if (rows_ > 2) Prefetch(next_, stride_, to_);
  }

  const char* line_ = nullptr;
  const char* next_ = nullptr;  // the next row
  int64_t stride_ = 0, in_row_ = 0, left_ = 0, rows_ = 0;
  int64_t per_step_ = 0;
  CacheLevel to_ = CacheLevel::kL1;
};

// The same lines as runs of consecutive lines, which micro-kernels prefetch themselves.
class PrefetchRuns {
 public:
  struct Run {  // small enough to be passed in two registers
    const char* line = nullptr;
    int32_t count = 0;
    CacheLevel to = CacheLevel::kL1;

    void PrefetchLine(int64_t i) const { Prefetch(line, kLine * i, to); }
    // Prefetches the next line of the run, if any. Call it once per row of a loop: a burst of
    // prefetches would occupy the line fill buffers that the loads of the loop need.
    void PrefetchNext() {
      if (count > 0) {
        Prefetch(line, 0, to);
        line += kLine;
        --count;
      }
      asm volatile("");  // g++ 12 removes a loop that only prefetches
    }
  };

  PrefetchRuns() = default;
  PrefetchRuns(const void* row, int64_t stride, int64_t bytes, int64_t rows, CacheLevel to)
      : row_(static_cast<const char*>(row)), stride_(stride), bytes_(bytes), rows_(rows), to_(to) {
    if (stride == bytes) {  // one run
      stride_ = bytes_ = rows * bytes;
      rows_ = 1;
    }
  }

  int64_t lines() const { return (bytes_ + kLine - 1) / kLine * rows_; }
  // The smallest run length of at least `count` lines that divides a row evenly.
  int64_t EvenCount(int64_t count) const {
    const int64_t in_row = (bytes_ + kLine - 1) / kLine;
    const int64_t runs = Max(in_row / count, 1);
    return (in_row + runs - 1) / runs;
  }
  // The next `count` lines, fewer at the end of a row.
  Run Next(int64_t count) {
    if (rows_ == 0) return {nullptr, 0, to_};
    const Run run{row_ + at_, static_cast<int32_t>(Min(count, (bytes_ - at_ + kLine - 1) / kLine)),
                  to_};
    const int64_t end = at_ + run.count * kLine;
    if (at_ / kPage != end / kPage) TouchPages(end / kPage * kPage + kPage);
    if (rows_ > 1 && at_ <= bytes_ / 2 && end > bytes_ / 2) TouchPage(row_ + stride_);
    at_ = end;
    if (at_ < bytes_) return run;
    at_ = 0;
    row_ += stride_;
    --rows_;
    return run;
  }

 private:
  static constexpr int64_t kLine = 64;

  // Touches the page at byte `at` of the row and prefetches the first line of the page after it.
  void TouchPages(int64_t at) const {
    if (at >= bytes_) return;
    TouchPage(row_ + at);
    if (at + kPage < bytes_) Prefetch(row_ + at, kPage, to_);
  }

  const char* row_ = nullptr;
  int64_t stride_ = 0, bytes_ = 0, rows_ = 0, at_ = 0;
  CacheLevel to_ = CacheLevel::kL1;
};

// The lines of rows [n, n + rows) and columns [k, k + columns) of a task's B; if n is past the last
// row, the first rows and columns of the next task.
template <class T, class Lines, class... More>
Lines PrefetchRowsOf(const GemmTask& task, int64_t n, int64_t rows, int64_t k, int64_t columns,
                     More... more) {
  const GemmTask* t = &task;
  if (n >= t->n) {
    t = t->next;
    n = k = 0;
    if (t == nullptr || t->w_type != task.w_type) return {};
  }
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  return Lines(static_cast<const T*>(t->w) + n * t->w_stride + k / kValuesPer<T>,
               t->w_stride * kSize, Min(columns, t->k - k) / kValuesPer<T> * kSize,
               Min(rows, t->n - n), more...);
}
template <class T>
SequentialPrefetch SequentialPrefetchOf(const GemmTask& task, int64_t n, int64_t rows, int64_t k,
                                        int64_t columns, int64_t steps) {
  return PrefetchRowsOf<T, SequentialPrefetch>(task, n, rows, k, columns,
                                               task.tuning->prefetch_level, steps);
}

constexpr int64_t kMaxResidentBlocks = 16;

// Prefetch distance, in bytes, of rows that are read one after the other.
constexpr int64_t kPrefetchBytesL1 = 6144;
constexpr int64_t kPrefetchBytesL2 = 12288;

// A fixed distance ahead of the current load, for rows that are read one after the other.
struct PrefetchDistance {
  int64_t bytes;
  CacheLevel to;
  const char* end = nullptr;  // of the weights that the distance leads into

  void PrefetchNext(const void* p) const { Prefetch(p, bytes, to); }
  // Touches the pages that begin within `count` bytes of the prefetched addresses, as
  // SequentialPrefetch does. Not for L1 prefetch, where it costs more than it saves.
  void TouchPages(const void* p, int64_t count) const {
    if (to == CacheLevel::kL1) return;
    const char* const from = static_cast<const char*>(p) + bytes;
    const auto in_page = static_cast<int64_t>(reinterpret_cast<uintptr_t>(from) % kPage);
    for (int64_t at = (kPage - in_page) % kPage; at < count && from + at < end; at += kPage) {
      TouchPage(from + at);
      Prefetch(from + at, kPage, to);
    }
  }
};

// The distance for a block at column k of row n that reads `together` rows in parallel; the last of
// them is prefetched as early as the first. At the end of B it leads to the weights of the next task.
template <class T>
PrefetchDistance PrefetchDistanceOf(const GemmTask& t, int64_t n, int64_t k, int64_t together = 1) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  const auto end_of = [](const GemmTask& task) {
    return reinterpret_cast<const char*>(static_cast<const T*>(task.w) +
                                         (task.n - 1) * task.w_stride + task.k / kValuesPer<T>);
  };
  const int64_t before =
      (t.tuning->prefetch_level == CacheLevel::kL1 ? kPrefetchBytesL1 : kPrefetchBytesL2) +
      (together - 1) * t.w_stride * kSize;
  const int64_t left = ((t.n - n) * t.w_stride - k / kValuesPer<T>)*kSize;
  if (left > before || t.next == nullptr) return {before, t.tuning->prefetch_level, end_of(t)};
  const auto* const end =
      reinterpret_cast<const char*>(static_cast<const T*>(t.w) + t.n * t.w_stride);
  const int64_t to_next = static_cast<const char*>(t.next->w) - end + before;
  return {to_next, t.tuning->prefetch_level,
          t.next->w_type == t.w_type ? end_of(*t.next) : nullptr};
}

// Reads the rows of B one after the other, each from end to end: one sequential stream per core reads
// DRAM faster than several. total(n, b, to) computes the vectors of sums of row n of B with all kM rows
// of A in K block b; finish(n, count, b, i, totals) gets the vectors of row i of A for rows
// [n, n + count) of B, count ≤ 4.
template <class V, int64_t kM, class Total, class Finish>
inline void ForEachRowSequential(int64_t rows, int64_t blocks, const Total& total,
                                 const Finish& finish) {
  alignas(64) float totals[kMaxResidentBlocks][kM][4][V::kLanes] = {};
  for (int64_t n = 0; n < rows; n += 4) {
    const int64_t count = Min(4, rows - n);
    for (int64_t j = 0; j < count; ++j)
      for (int64_t b = 0; b < blocks; ++b) {
        typename V::Vec sums[kM];
        total(n + j, b, sums);
        for (int64_t i = 0; i < kM; ++i) V::Store(totals[b][i][j], sums[i]);
      }
    for (int64_t b = 0; b < blocks; ++b)
      for (int64_t i = 0; i < kM; ++i) {
        typename V::Vec four[4];
        for (int64_t j = 0; j < 4; ++j) four[j] = V::Load(totals[b][i][j]);
        finish(n, count, b, i, four);
      }
  }
}

}  // namespace
}  // namespace latte::cpu
