#include "src/base/work_ranges.h"

#include <atomic>
#include <vector>

#include <gtest/gtest.h>

namespace latte::work_ranges_test {
namespace {

TEST(WorkRanges, OwnersWalkTheirRunsAndTakeFromTheEndsOfOthers) {
  WorkRanges ranges(7, 2);  // 0 1 2 and 3 4 5 6
  std::vector<std::vector<int64_t>> taken;
  const auto take = [&](int64_t owner) {
    const WorkRanges::Taken t = ranges.Take(owner);
    taken.push_back({t.index, t.next});
  };
  for (int i = 0; i < 5; ++i) take(0);
  take(1);
  take(1);
  take(1);
  EXPECT_EQ(taken, (std::vector<std::vector<int64_t>>{
                       {0, 1}, {1, 2}, {2, -1}, {6, 5}, {5, 4}, {3, 4}, {4, -1}, {-1, -1}}));
}

TEST(WorkRanges, EveryIndexRunsOnceHoweverManyThreads) {
  for (const int threads : {1, 2, 3, 70}) {
    ThreadPool pool(threads);
    for (const int64_t count : {0, 1, 2, 5, 64, 65, 1000}) {
      std::vector<std::atomic<int>> ran(static_cast<size_t>(count));
      std::atomic<int> strange{0};
      ParallelForInRuns(pool, count, 0, [&](int64_t i, int64_t next, std::byte*) {
        ++ran[static_cast<size_t>(i)];
        if (next != -1 && next != i + 1 && next != i - 1) ++strange;
      });
      for (const std::atomic<int>& times : ran) ASSERT_EQ(times, 1) << threads << " " << count;
      EXPECT_EQ(strange, 0);
    }
  }
}

}  // namespace
}  // namespace latte::work_ranges_test
