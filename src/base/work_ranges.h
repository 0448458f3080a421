// Work stealing over contiguous ranges: every thread takes indices from the front of its own range,
// and a thread whose range is empty takes from the end of another's. A thread knows its next index,
// so it can prefetch, and all threads finish at about the same time.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/thread_pool.h"

namespace latte {

// Thread-safe but for the constructor.
class WorkRanges {
 public:
  static constexpr int64_t kMaxOwners = 64;

  // Indices 0 ≤ i < count < 2^32 in `owners` even ranges, 1 ≤ owners ≤ kMaxOwners.
  WorkRanges(int64_t count, int64_t owners) : owners_(owners) {
    for (int64_t i = 0; i < owners; ++i)
      At(i).store(Pack(count * i / owners, count * (i + 1) / owners), std::memory_order_relaxed);
  }

  int64_t owners() const { return owners_; }

  // A taken index (−1: none left), and the next one in its range (−1: none), which another thread
  // may still take first.
  struct Taken {
    int64_t index, next;
  };
  // Takes an index for `owner`.
  Taken Take(int64_t owner) {
    const Taken own = TakeFrom(owner, /*front=*/true);
    if (own.index >= 0) return own;
    for (int64_t i = 1; i < owners_; ++i) {
      const Taken other = TakeFrom((owner + i) % owners_, /*front=*/false);
      if (other.index >= 0) return other;
    }
    return {-1, -1};
  }

 private:
  struct alignas(64) Run {
    std::atomic<uint64_t> ends;  // begin in the lower 32 bits, end in the upper 32
  };

  static uint64_t Pack(int64_t begin, int64_t end) {
    return static_cast<uint64_t>(end) << 32 | static_cast<uint64_t>(begin);
  }
  std::atomic<uint64_t>& At(int64_t owner) { return runs_[static_cast<size_t>(owner)].ends; }

  Taken TakeFrom(int64_t owner, bool front) {
    std::atomic<uint64_t>& ends = At(owner);
    uint64_t seen = ends.load(std::memory_order_relaxed);
    for (;;) {
      const auto begin = static_cast<int64_t>(seen & 0xffffffff);
      const auto end = static_cast<int64_t>(seen >> 32);
      if (begin == end) return {-1, -1};
      const uint64_t left = front ? Pack(begin + 1, end) : Pack(begin, end - 1);
      if (!ends.compare_exchange_weak(seen, left, std::memory_order_relaxed)) continue;
      if (end - begin == 1) return {begin, -1};
      return front ? Taken{begin, begin + 1} : Taken{end - 1, end - 2};
    }
  }

  int64_t owners_;
  std::array<Run, kMaxOwners> runs_;
};

// Runs task(i, next, scratch) for 0 ≤ i < count on the pool. next: the index that the thread will
// probably run after i, −1 if none. scratch: as in ParallelFor.
template <class F>
void ParallelForInRuns(ThreadPool& pool, int64_t count, int64_t scratch_bytes, const F& task) {
  const auto threads = static_cast<int64_t>(pool.threads());
  WorkRanges ranges(count,
                    std::clamp<int64_t>(count, 1, std::min(threads, WorkRanges::kMaxOwners)));
  pool.ParallelFor(ranges.owners(), scratch_bytes, [&](int64_t owner, std::byte* scratch) {
    for (WorkRanges::Taken t = ranges.Take(owner); t.index >= 0; t = ranges.Take(owner))
      task(t.index, t.next, scratch);
  });
}

}  // namespace latte
