// Weights read in the order in which they lie in memory, which is what memory answers fastest.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Cache lines of rows, asked for in the order in which they lie in memory, about as many at each of
// `steps` steps.
//
// A page is read once before its lines are asked for: requests for lines of a page whose address
// the core has not translated yet are lost in part, and leave the translation to the first load
// (Zen 5: half of what waiting for memory costs). Its first line is asked for a page and a half
// before, so that the load does not wait.
class LinesInOrder {
 public:
  LinesInOrder() = default;
  LinesInOrder(const void* row, int64_t stride, int64_t bytes, int64_t rows, Cache to,
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
    if (rows_ > 1) AskFor(next_, 0, to_);
    if (rows_ > 2) AskFor(next_, stride_, to_);
    per_step_ = (rows_ * in_row_ + steps - 1) / Max(steps, 1);
  }

  void Ask() {
    for (int64_t i = 0; i < per_step_; ++i) {
      AskFor(line_, 0, to_);
      line_ += kLine;
      --left_;
      if (left_ == in_row_ / 2 && rows_ > 1) ReadOnce(next_);
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
    if (rows_ > 2) AskFor(next_, stride_, to_);
  }

  const char* line_ = nullptr;
  const char* next_ = nullptr;  // row
  int64_t stride_ = 0, in_row_ = 0, left_ = 0, rows_ = 0;
  int64_t per_step_ = 0;
  Cache to_ = Cache::kL1;
};

// The same, cut into runs of neighbouring lines that a step asks for itself.
class LineRuns {
 public:
  struct Run {  // two registers as an argument
    const char* line;
    int32_t count;
    Cache to;

    void Ask(int64_t i) const { AskFor(line, kLine * i, to); }
  };

  LineRuns() = default;
  LineRuns(const void* row, int64_t stride, int64_t bytes, int64_t rows, Cache to)
      : row_(static_cast<const char*>(row)), stride_(stride), bytes_(bytes), rows_(rows), to_(to) {
    if (stride == bytes) {  // one run
      stride_ = bytes_ = rows * bytes;
      rows_ = 1;
    }
  }

  int64_t lines() const { return (bytes_ + kLine - 1) / kLine * rows_; }
  // At least `count`, so that runs of as many make whole rows.
  int64_t Even(int64_t count) const {
    const int64_t in_row = (bytes_ + kLine - 1) / kLine;
    const int64_t runs = Max(in_row / count, 1);
    return (in_row + runs - 1) / runs;
  }
  // `count` lines, or those that the row still has.
  Run Next(int64_t count) {
    if (rows_ == 0) return {nullptr, 0, to_};
    const Run run{row_ + at_, static_cast<int32_t>(Min(count, (bytes_ - at_ + kLine - 1) / kLine)),
                  to_};
    const int64_t end = at_ + run.count * kLine;
    if (at_ / kPage != end / kPage) Touch(end / kPage * kPage + kPage);
    if (rows_ > 1 && at_ <= bytes_ / 2 && end > bytes_ / 2) ReadOnce(row_ + stride_);
    at_ = end;
    if (at_ < bytes_) return run;
    at_ = 0;
    row_ += stride_;
    --rows_;
    return run;
  }

 private:
  static constexpr int64_t kLine = 64;

  // Reads the page that begins `at` bytes from the row's beginning, and asks for the one behind it.
  void Touch(int64_t at) const {
    if (at >= bytes_) return;
    ReadOnce(row_ + at);
    if (at + kPage < bytes_) AskFor(row_ + at, kPage, to_);
  }

  const char* row_ = nullptr;
  int64_t stride_ = 0, bytes_ = 0, rows_ = 0, at_ = 0;
  Cache to_ = Cache::kL1;
};

// Rows [n, +rows) and columns [k, +columns) of a task's W, or, where n is behind the last row, as
// many of the task that is next.
template <class T, class Lines, class... More>
Lines LinesOfRows(const LinearTask& task, int64_t n, int64_t rows, int64_t k, int64_t columns,
                  More... more) {
  const LinearTask* t = &task;
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
LinesInOrder LinesOf(const LinearTask& task, int64_t n, int64_t rows, int64_t k, int64_t columns,
                     int64_t steps) {
  return LinesOfRows<T, LinesInOrder>(task, n, rows, k, columns, task.ask_into, steps);
}

constexpr int64_t kMaxTurnBlocks = 16;

// Bytes that a row in turn is asked for before it is used.
constexpr int64_t kNearAhead = 6144;
constexpr int64_t kFarAhead = 12288;

// How far behind what a row in turn reads lies what it asks for, and where W ends there.
struct TurnAhead {
  int64_t bytes;
  Cache to;
  const char* end = nullptr;

  void Ask(const void* p) const { AskFor(p, bytes, to); }
  // Reads pages that begin in what `count` bytes from p on will ask for, as LinesInOrder does. Into
  // the L1, where a Zen 5 asks, that costs more than it saves.
  void Touch(const void* p, int64_t count) const {
    if (to == Cache::kL1) return;
    const char* const from = static_cast<const char*>(p) + bytes;
    const auto in_page = static_cast<int64_t>(reinterpret_cast<uintptr_t>(from) % kPage);
    for (int64_t at = (kPage - in_page) % kPage; at < count && from + at < end; at += kPage) {
      ReadOnce(from + at);
      AskFor(from + at, kPage, to);
    }
  }
};

// The same for a block that begins at column k of row n, of `together` rows side by side: of them
// the last has to be asked for as early as the first. At the end of W what the next task begins
// with is asked for.
template <class T>
TurnAhead TurnAheadOf(const LinearTask& t, int64_t n, int64_t k, int64_t together = 1) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  const auto end_of = [](const LinearTask& task) {
    return reinterpret_cast<const char*>(static_cast<const T*>(task.w) +
                                         (task.n - 1) * task.w_stride + task.k / kValuesPer<T>);
  };
  const int64_t before =
      (t.ask_into == Cache::kL1 ? kNearAhead : kFarAhead) + (together - 1) * t.w_stride * kSize;
  const int64_t left = ((t.n - n) * t.w_stride - k / kValuesPer<T>)*kSize;
  if (left > before || t.next == nullptr) return {before, t.ask_into, end_of(t)};
  const auto* const end =
      reinterpret_cast<const char*>(static_cast<const T*>(t.w) + t.n * t.w_stride);
  const int64_t to_next = static_cast<const char*>(t.next->w) - end + before;
  return {to_next, t.ask_into, t.next->w_type == t.w_type ? end_of(*t.next) : nullptr};
}

// Rows of W one after the other, each from end to end: memory answers one run of neighbouring lines
// faster than several side by side (Zen 5, two threads: 45 GB/s for 33). total(n, b, to) sets the
// vectors of sums of kM rows of x and row n in block b of K; finish(n, count, b, i, totals) takes
// those of x's row i and rows [n, +count) of W, four at most.
template <class V, int64_t kM, class Total, class Finish>
inline void RowsInTurn(int64_t rows, int64_t blocks, const Total& total, const Finish& finish) {
  alignas(64) float totals[kMaxTurnBlocks][kM][4][V::kLanes] = {};
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
