#include "src/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/base/limits/processors.h"
#include "tests/support/scratch_dir.h"

namespace latte::thread_pool_test {
namespace {

TEST(ThreadPool, RunsEachIndexOnce) {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
      pool.ParallelFor(count, [&](int64_t i) { ++hits[static_cast<size_t>(i)]; });
      for (const auto& h : hits) EXPECT_EQ(h.load(), 1);
    }
  }
}

TEST(ThreadPool, ManyShortCallsInARow) {
  ThreadPool pool(3);
  int64_t sum = 0;
  for (int call = 0; call < 20000; ++call) {
    int64_t parts[4] = {};
    pool.ParallelFor(4, [&](int64_t i) { parts[i] = i + call; });
    sum += std::accumulate(parts, parts + 4, int64_t{0});
  }
  EXPECT_EQ(sum, 20000LL * 6 + 4LL * 19999 * 20000 / 2);
}

// Many short tasks; every index exactly once.
void ExpectEachIndexOnce(ThreadPool& pool, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::atomic<int>> hits(37);
    pool.ParallelFor(37, [&](int64_t i) { ++hits[static_cast<size_t>(i)]; });
    for (const auto& h : hits) ASSERT_EQ(h.load(), 1);
  }
}

TEST(ThreadPool, ZeroThreadsAreTheDefault) { EXPECT_EQ(ThreadPool(0).threads(), DefaultThreads()); }

TEST(ThreadPool, MoreThreadsThanProcessors) {
  ThreadPool pool(static_cast<int>(UsableProcessors().size()) + 3);
  ExpectEachIndexOnce(pool, 200);
}

TEST(ThreadPool, NestedCallsRunOnTheirThread) {
  ThreadPool pool(3);
  std::atomic<int> sum = 0;
  std::atomic<int> moved = 0;
  pool.ParallelFor(8, [&](int64_t) {
    const std::thread::id here = std::this_thread::get_id();
    pool.ParallelFor(5, [&](int64_t i) {
      sum += static_cast<int>(i);
      if (std::this_thread::get_id() != here) ++moved;
    });
  });
  EXPECT_EQ(sum.load(), 8 * 10);
  EXPECT_EQ(moved.load(), 0);
  ExpectEachIndexOnce(pool, 1);
}

TEST(ThreadPool, CallsFromSeveralThreads) {
  ThreadPool pool(2);
  std::thread other([&] { ExpectEachIndexOnce(pool, 500); });
  ExpectEachIndexOnce(pool, 500);
  other.join();
}

TEST(ThreadPool, TwoPoolsAtOnce) {
  ThreadPool first(2);
  std::thread other([] {
    ThreadPool second(2);
    ExpectEachIndexOnce(second, 500);
  });
  ExpectEachIndexOnce(first, 500);
  other.join();
}

TEST(ThreadPool, TasksOfSleepingWorkersAreDone) {
  ThreadPool pool(3);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // long against the spinning
    ExpectEachIndexOnce(pool, 1);
  }
}

double ProcessorSeconds() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

TEST(ThreadPool, AnIdlePoolUsesNoProcessorTime) {
  ThreadPool pool(static_cast<int>(UsableProcessors().size()));
  ExpectEachIndexOnce(pool, 10);
  const double before = ProcessorSeconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  // A worker that spun on would use 0.3 s.
  EXPECT_LT(ProcessorSeconds() - before, 0.03);
}

std::vector<int> BoundTo() {
  std::vector<int> ids;
  for (const Processor& p : UsableProcessors()) ids.push_back(p.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

TEST(ThreadPool, StaysWithinTheProcessorsOfTheCaller) {
  const std::vector<int> all = BoundTo();
  std::thread caller([&] {
    BindThread({all.back()});
    ThreadPool pool(0);
    EXPECT_EQ(pool.threads(), 1);
    ThreadPool crowded(3);
    crowded.ParallelFor(30, [&](int64_t) { EXPECT_EQ(BoundTo(), std::vector<int>{all.back()}); });
  });
  caller.join();
}

TEST(ThreadPool, FillingTheProcessorsPinsWorkersAndNotTheCaller) {
  const std::vector<int> all = BoundTo();
  if (all.size() < 2) GTEST_SKIP() << "one processor";
  const int threads = static_cast<int>(all.size());
  ThreadPool pool(threads);
  std::vector<std::vector<int>> places(all.size());
  std::atomic<int> begun = 0;
  pool.ParallelFor(threads, [&](int64_t i) {  // each thread takes one: none leaves before all came
    places[static_cast<size_t>(i)] = BoundTo();
    for (++begun; begun.load() < threads;) std::this_thread::yield();
  });
  EXPECT_EQ(BoundTo(), all);
  std::set<std::vector<int>> own;
  for (const std::vector<int>& place : places)
    if (place.size() == 1) own.insert(place);
  EXPECT_EQ(own.size(), all.size() - 1);
}

TEST(ThreadPool, WhatATaskThrowsReachesTheCallerAndThePoolGoesOn) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (const int64_t bad : {0, 1, 99}) {
      std::atomic<int> running = 0;
      const auto call = [&] {
        pool.ParallelFor(100, [&](int64_t i) {
          ++running;
          if (i == bad) {
            --running;
            throw std::bad_alloc();
          }
          --running;
        });
      };
      EXPECT_THROW(call(), std::bad_alloc);
      EXPECT_EQ(running.load(), 0);  // nothing of the call runs any more
      std::atomic<int> hits = 0;
      pool.ParallelFor(100, [&](int64_t) { ++hits; });
      EXPECT_EQ(hits.load(), 100);
    }
  }
}

TEST(ThreadPool, EveryTaskMayThrow) {
  ThreadPool pool(3);
  for (int round = 0; round < 100; ++round)
    EXPECT_THROW(pool.ParallelFor(50, [](int64_t) { throw std::bad_alloc(); }), std::bad_alloc);
}

// In a process of its own, which may take no more address space than it has.
int ThreadsWithoutRoomForStacks(int wanted) {
  rlimit now = {};
  getrlimit(RLIMIT_AS, &now);
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  const rlim_t room = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{40} << 20);
  const rlimit least = {room, now.rlim_max};
  setrlimit(RLIMIT_AS, &least);
  ThreadPool pool(wanted);
  std::atomic<int> hits = 0;
  pool.ParallelFor(1000, [&](int64_t) { ++hits; });
  return hits.load() == 1000 ? pool.threads() : -1;
}

TEST(ThreadPool, HasFewerThreadsWhereTheSystemGivesFewer) {
  EXPECT_EXIT(
      {
        const int threads = ThreadsWithoutRoomForStacks(64);
        std::fprintf(stderr, "%d threads\n", threads);
        std::_Exit(threads >= 1 && threads < 64 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "threads");
}

TEST(Processors, ListsOfRanges) {
  EXPECT_EQ(ParseProcessorList("0-3,8,10-11\n"), (std::vector<int>{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(ParseProcessorList("5"), std::vector<int>{5});
  EXPECT_TRUE(ParseProcessorList("").empty());
  EXPECT_TRUE(ParseProcessorList("x").empty());
  EXPECT_EQ(ParseProcessorList("1,,2"), std::vector<int>{1});
  EXPECT_EQ(ParseProcessorList("1,99999999999999"), std::vector<int>{1});
  EXPECT_TRUE(ParseProcessorList("0-4000000000").empty());
}

// Two nodes of two cores of two hardware threads each, numbered as Linux does: node 0 has 0, 1 and
// their siblings 4, 5.
class FakeSystem {
 public:
  FakeSystem() : root_(dir_.path()) {
    Write("node/online", "0-1");
    Write("node/node0/cpulist", "0-1,4-5");
    Write("node/node1/cpulist", "2-3,6-7");
    for (int id = 0; id < 8; ++id)
      Write("cpu/cpu" + std::to_string(id) + "/topology/thread_siblings_list",
            std::to_string(id % 4) + "," + std::to_string(id % 4 + 4));
  }
  std::string root() const { return root_.string(); }

 private:
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  testing_support::ScratchDir dir_;
  std::filesystem::path root_;
};

std::vector<int> Order(const std::vector<int>& ids, const std::string& system) {
  std::vector<int> out;
  for (const Processor& p : PlacingOrder(ids, system)) out.push_back(p.id);
  return out;
}

TEST(Processors, NodesTakeTurnsAndWholeCoresComeFirst) {
  const FakeSystem system;
  EXPECT_EQ(Order({0, 1, 2, 3, 4, 5, 6, 7}, system.root()),
            (std::vector<int>{0, 2, 1, 3, 4, 6, 5, 7}));
  EXPECT_EQ(Order({0, 1, 2}, system.root()), (std::vector<int>{0, 2, 1}));
}

std::vector<int> Part(const FakeSystem& system, const std::vector<int>& ids, int index, int count) {
  return PartOfProcessors(PlacingOrder(ids, system.root()), index, count);
}

TEST(Processors, PartsAreNodesOrWholeCores) {
  using Ids = std::vector<int>;
  const FakeSystem system;
  const Ids all{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(Part(system, all, 0, 2), (Ids{0, 4, 1, 5}));
  EXPECT_EQ(Part(system, all, 1, 2), (Ids{2, 6, 3, 7}));
  EXPECT_EQ(Part(system, all, 2, 4), (Ids{2, 6}));
  EXPECT_EQ(Part(system, all, 0, 3), (Ids{0, 4}));
  EXPECT_EQ(Part(system, all, 2, 3), (Ids{2, 6, 3, 7}));  // of one node, though a node is cut
  EXPECT_EQ(Part(system, {1, 3, 5}, 1, 2), Ids{3});
  EXPECT_TRUE(Part(system, all, 0, 5).empty());
}

TEST(Processors, WithoutFilesOneNode) {
  EXPECT_EQ(Order({2, 0, 1}, "/no/such/folder"), (std::vector<int>{2, 0, 1}));
}

}  // namespace
}  // namespace latte::thread_pool_test
