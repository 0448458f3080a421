// Scratch of tasks: every thread has its own, whichever thread calls.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/thread_pool.h"
#include "src/base/work_ranges.h"

namespace latte::task_scratch_test {
namespace {

constexpr int64_t kBytes = 10000;

// Writes all of it and looks whether what was written is still there a while later.
bool StaysOurs(std::byte* scratch, int64_t bytes, int64_t mark) {
  const auto value = static_cast<std::byte>(mark % 251);
  std::memset(scratch, static_cast<int>(value), static_cast<size_t>(bytes));
  for (int round = 0; round < 4; ++round) {
    std::this_thread::yield();
    for (int64_t i = 0; i < bytes; ++i)
      if (scratch[i] != value) return false;
  }
  return true;
}

void ExpectOwnScratch(ThreadPool& pool, int64_t count, int64_t bytes) {
  std::atomic<int> wrong{0};
  std::atomic<int64_t> ran{0};
  pool.ParallelFor(count, bytes, [&](int64_t i, std::byte* scratch) {
    ++ran;
    if (reinterpret_cast<uintptr_t>(scratch) % 64 != 0 || !StaysOurs(scratch, bytes, i)) ++wrong;
  });
  EXPECT_EQ(ran, count);
  EXPECT_EQ(wrong, 0);
}

TEST(TaskScratch, EachThreadHasItsOwn) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (const int64_t count : {0, 1, 2, 50}) ExpectOwnScratch(pool, count, kBytes);
  }
}

TEST(TaskScratch, GrowsAndIsKept) {
  ThreadPool pool(3);
  for (const int64_t bytes : {int64_t{1}, kBytes, int64_t{5} << 20, kBytes})
    ExpectOwnScratch(pool, 20, bytes);
  std::byte* first = nullptr;
  pool.ParallelFor(1, kBytes, [&](int64_t, std::byte* scratch) { first = scratch; });
  pool.ParallelFor(1, kBytes, [&](int64_t, std::byte* scratch) { EXPECT_EQ(scratch, first); });
}

TEST(TaskScratch, CallsInsideTasksHaveTheirOwn) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    std::atomic<int> wrong{0};
    pool.ParallelFor(6, kBytes, [&](int64_t i, std::byte* outer) {
      std::memset(outer, static_cast<int>(i), kBytes);
      ParallelForInRuns(pool, 3, kBytes, [&](int64_t j, int64_t, std::byte* inner) {
        if (inner == outer || !StaysOurs(inner, kBytes, 100 + j)) ++wrong;
      });
      for (int64_t at = 0; at < kBytes; ++at)
        if (outer[at] != static_cast<std::byte>(i)) ++wrong;
    });
    EXPECT_EQ(wrong, 0);
  }
}

TEST(TaskScratch, CallsFromSeveralThreadsHaveTheirOwn) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 4; ++caller)
      callers.emplace_back([&] {
        for (int round = 0; round < 20; ++round) ExpectOwnScratch(pool, 1 + round % 5, kBytes);
      });
    for (std::thread& caller : callers) caller.join();
  }
}

TEST(TaskScratch, MemoryThatIsNotThereIsToldBeforeTasksStart) {
  constexpr int64_t kTooMuch = int64_t{1} << 60;
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    ExpectOwnScratch(pool, 5, kBytes);
    bool ran = false;
    for (const int64_t count : {1, 5})
      EXPECT_THROW(pool.ParallelFor(count, kTooMuch, [&](int64_t, std::byte*) { ran = true; }),
                   std::bad_alloc);
    pool.ParallelFor(1, kBytes, [&](int64_t, std::byte*) {
      EXPECT_THROW(pool.ParallelFor(1, kTooMuch, [&](int64_t, std::byte*) { ran = true; }),
                   std::bad_alloc);
    });
    EXPECT_FALSE(ran);
    ExpectOwnScratch(pool, 5, kBytes);  // the pool is as it was
  }
}

}  // namespace
}  // namespace latte::task_scratch_test
