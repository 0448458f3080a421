// Software prefetch. A core's own prefetcher follows one stream per 4 KiB page and stops at the
// page's end, so kernels prefetch what they load next:
//
// SequentialPrefetch  Lines of rows in memory order, for example the next panel of B: the fastest
//                     order if a core reads one DRAM stream well.
// BurstPrefetch       Bursts from several rows in turn, if a core reads several DRAM streams faster
//                     than one, or rows lie far apart.
// PrefetchDistance    How far each load prefetches ahead, for rows that are read in place.
// PagePrefetch        Cached tokens, whose pages lie anywhere (prefetch_pages-inl.h).
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kPage = 4096;     // bytes
constexpr int64_t kCacheLine = 64;  // bytes

// Prefetches the line at p + ahead, which need not be valid.
inline void PrefetchL1(const void* p, int64_t ahead = 0) {
  __builtin_prefetch(static_cast<const char*>(p) + ahead, /*rw=*/0, /*locality=*/3);
}
inline void PrefetchL2(const void* p, int64_t ahead = 0) {
  __builtin_prefetch(static_cast<const char*>(p) + ahead, /*rw=*/0, /*locality=*/2);
}
inline void Prefetch(const void* p, int64_t ahead, CacheLevel to) {
  if (to == CacheLevel::kL1)
    PrefetchL1(p, ahead);
  else
    PrefetchL2(p, ahead);
}
inline void PrefetchW(void* p) { __builtin_prefetch(p, /*rw=*/1, /*locality=*/3); }
// Reads a byte, so that the page has an entry in the TLB.
inline void TouchMemoryPage(const void* p) {
  asm volatile("" : : "r"(*static_cast<const volatile char*>(p)));
}

inline int64_t ByteInPage(const void* p) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(p) % kPage);
}

// Prefetches the lines of rows in memory order, some in each step. A step is a call of
// PrefetchNext, or of Next, which leaves the prefetches to the micro-kernel.
//
// Rows without gaps are cut into pages. Before the lines of a row or page are prefetched, it is
// touched: some cores drop prefetches of a page that is not in the TLB, and the first load then
// waits for the translation. Its first line is prefetched a page and a half earlier, so that the
// touch does not wait.
class SequentialPrefetch {
 public:
  // Consecutive lines; small enough to be passed in two registers.
  struct Run {
    const char* line = nullptr;
    int32_t count = 0;
    CacheLevel to = CacheLevel::kL1;

    void PrefetchLine(int64_t i) const { Prefetch(line, kCacheLine * i, to); }
    // Prefetches the next line of the run, if any. Call it once per row of a loop: a burst of
    // prefetches would occupy the line fill buffers that the loads of the loop need.
    void PrefetchNext() {
      if (count > 0) {
        Prefetch(line, 0, to);
        line += kCacheLine;
        --count;
      }
      asm volatile("");  // g++ 12 removes a loop that only prefetches
    }
  };

  SequentialPrefetch() = default;
  // `rows` rows of `bytes`, `stride` bytes apart, spread evenly over `steps` steps.
  SequentialPrefetch(const void* row, int64_t stride, int64_t bytes, int64_t rows, CacheLevel to,
                     int64_t steps = 1)
      : stride_(stride), to_(to) {
    if (rows <= 0) return;
    in_row_ = (bytes + kCacheLine - 1) / kCacheLine;
    if (stride == bytes) {
      stride_ = kPage;
      in_row_ = kPage / kCacheLine;
    }
    const int64_t lines = LinesOf(row, bytes, rows);
    per_step_ = (lines + steps - 1) / Max(steps, 1);
    Begin(row, lines);
  }
  // Next continues with `rows` rows of the same size and stride from `row` on.
  void Then(const void* row, int64_t bytes, int64_t rows) {
    then_ = row;
    then_lines_ = LinesOf(row, bytes, rows);
  }

  // Spreads the lines over at most `runs` calls of Next; runs that end with a row have equal
  // lengths.
  void SpreadOverRuns(int64_t runs) {
    const int64_t row = gapless() ? left_ + behind_ : in_row_;
    const int64_t in_row = Max(row / ((left_ + behind_) / runs + 1), 1);
    per_step_ = (row + in_row - 1) / in_row;
  }
  // Makes runs of `lines` lines. Returns how many calls of Next they take.
  int64_t SetRunLength(int64_t lines) {
    const int64_t row = gapless() ? left_ + behind_ : in_row_;
    per_step_ = lines;
    return row == 0 ? 0 : (left_ + behind_) / row * ((row + lines - 1) / lines);
  }

  // Inlined: a call in the loop of a micro-kernel would spill its vector registers.
  [[gnu::always_inline]] void PrefetchNext() {
    for (int64_t i = Min(per_step_, left_ + behind_); i > 0; --i) {
      Prefetch(line_, 0, to_);
      Advance(1);
    }
  }
  // The lines of a step, fewer at the end of a row. Small tiles call it often, so the common case
  // is inlined: within half a row there is no page to touch.
  [[gnu::always_inline]] Run Next() {
    const int64_t left = left_ - per_step_;
    if (2 * left <= in_row_ && (left <= 0 || 2 * left_ > in_row_)) return NextPastHalf();
    const Run run{line_, static_cast<int32_t>(per_step_), to_};
    line_ += per_step_ * kCacheLine;
    left_ = left;
    return run;
  }

 private:
  bool gapless() const { return stride_ == in_row_ * kCacheLine; }
  int64_t LinesOf(const void* row, int64_t bytes, int64_t rows) const {
    if (!gapless()) return rows * in_row_;
    return (ByteInPage(row) % kCacheLine + rows * bytes + kCacheLine - 1) / kCacheLine;
  }
  void Begin(const void* row, int64_t lines) {
    const int64_t before = in_row_ * kCacheLine == kPage && gapless() ? ByteInPage(row) : 0;
    line_ = static_cast<const char*>(row);
    next_ = line_ + stride_ - before;
    left_ = Min(in_row_ - before / kCacheLine, lines);
    behind_ = lines - left_;
    if (behind_ > 0) Prefetch(next_, 0, to_);
    if (behind_ > in_row_) Prefetch(next_, stride_, to_);
  }
  [[gnu::noinline]] Run NextPastHalf() {
    if (left_ == 0 && then_lines_ > 0) {
      Begin(then_, then_lines_);
      then_lines_ = 0;
    }
    Run run{line_, 0, to_};
    while (run.count < per_step_ && left_ > 0 && line_ == run.line + run.count * kCacheLine) {
      const int64_t count = Min(per_step_ - run.count, left_);
      run.count += static_cast<int32_t>(count);
      Advance(count);
    }
    return run;
  }
  // Moves on by `count` lines of the row.
  [[gnu::always_inline]] void Advance(int64_t count) {
    const int64_t half = in_row_ / 2;
    left_ -= count;
    line_ += count * kCacheLine;
    if (left_ <= half && left_ + count > half && behind_ > 0) TouchMemoryPage(next_);
    if (left_ == 0) StartRow();
  }
  [[gnu::always_inline]] void StartRow() {
    line_ = next_;
    next_ += stride_;
    left_ = Min(in_row_, behind_);
    behind_ -= left_;
    if (behind_ > in_row_) Prefetch(next_, stride_, to_);
  }

  const char* line_ = nullptr;
  const char* next_ = nullptr;  // the next row, or page
  const void* then_ = nullptr;
  int64_t stride_ = 0;             // bytes
  int64_t in_row_ = 0;             // lines of a row
  int64_t left_ = 0, behind_ = 0;  // lines of this row and of those behind it that are left
  int64_t per_step_ = 0, then_lines_ = 0;
  CacheLevel to_ = CacheLevel::kL1;
};

// Prefetches the lines of several rows into the L2, a burst from each row in turn. A row is a
// weight row, or a page of contiguous rows.
struct BurstPrefetch {  // trivial, because scratch holds it
  const char* row;
  int64_t stride, bytes, rows;
  int64_t per_step;  // lines
  int64_t at;        // next byte within each row
  int64_t next;      // next row

  // Spreads the lines over `steps` steps.
  void Spread(int64_t steps) {
    per_step = (bytes + kCacheLine - 1) / kCacheLine * rows / Max(steps, 1) + 1;
  }
  void PrefetchNext() {
    int64_t count = per_step;
    while (count > 0 && at < bytes && rows > 0) {
      const int64_t bursts = Min((count + kBurst - 1) / kBurst, rows - next);
      const char* burst = row + next * stride + at;
      for (int64_t i = 0; i < bursts; ++i, burst += stride)
        for (int64_t line = 0; line < kBurst; ++line) PrefetchL2(burst, line * kCacheLine);
      count -= bursts * kBurst;
      next += bursts;
      if (next < rows) continue;
      next = 0;
      at += kBurst * kCacheLine;
    }
  }

 private:
  static constexpr int64_t kBurst = 2;  // lines
};

// Several at once.
template <uint64_t kCount>
void Spread(BurstPrefetch (&parts)[kCount], int64_t steps) {
  for (BurstPrefetch& part : parts) part.Spread(steps);
}
template <uint64_t kCount>
void PrefetchNext(BurstPrefetch (&parts)[kCount]) {
  for (BurstPrefetch& part : parts) part.PrefetchNext();
}

// A core's prefetcher follows one stream per page, so weight rows shorter than a page that are read
// next to each other are slow; rows a page apart are fast. Returns the distance, in rows, from one
// row to the next, leaving at least 16 rows per pass of `rows`.
inline int64_t SpreadOf(int64_t row_bytes, int64_t rows) {
  int64_t spread = 1;
  while (spread * row_bytes < kPage && 2 * spread * 16 <= rows) spread *= 2;
  return spread;
}

// Bytes from each load to the line that it prefetches, for rows that are read in place: `here`
// before byte `turn`, from there on `there`, which leads to what is read after the end.
struct PrefetchDistance {
  int64_t turn, here, there;

  int64_t At(int64_t byte) const { return byte < turn ? here : there; }
};

}  // namespace
}  // namespace latte::cpu
