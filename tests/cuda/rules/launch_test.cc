// Launches: what they accept, the names in their reports, options from the environment.
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/cuda/rules/rules.h"

namespace latte::cuda::launch_test {
namespace {

using namespace emulator;

Report Try(const LaunchInfo& info, const Options& options = {}) {
  GlobalMemory memory;
  return Launch(info, memory, options, [] {});
}

TEST(Launch, RefusesWhatACardRefuses) {
  ExpectSilent(Try({"k", {2, 65535, 1}, 32, 0}));
  ExpectError(Try({"k", {}, 48, 0}),
              "kernel k: expected a multiple of 32 threads up to 1024, found 48");
  ExpectError(Try({"k", {}, 1056, 0}), "found 1056");
  ExpectError(Try({"k", {1, 65536, 1}, 32, 0}), "found 1×65536×1");
  ExpectError(Try({"k", {0, 1, 1}, 32, 0}), "expected a grid");
  ExpectSilent(Try({"k", {}, 32, 227 << 10}));
  ExpectError(Try({"k", {}, 32, 228 << 10}), "bytes of shared memory");
  Options options;
  options.capability = 80;
  ExpectError(Try({"k", {}, 32, 164 << 10}, options), "expected at most 166912 bytes");
}

TEST(Launch, AReportNamesTheKernelAndTheBlock) {
  GlobalMemory memory;
  const Report report = Launch({"any.norm", {1, 2}, 32, 64}, memory, {}, [] {
    if (BlockY() == 1) LoadShared<int>(Word(0));
  });
  ExpectError(report, "kernel any.norm, block 1: read of shared memory never written");
}

TEST(Launch, EveryLaneOfEveryBlockRunsOnce) {
  for (const int threads : {32, 96, 512, 1024}) {
    std::vector<int> runs(static_cast<size_t>(2 * 3 * 2 * threads));
    GlobalMemory memory;
    ExpectSilent(Launch({"k", {2, 3, 2}, threads, 4096}, memory, {}, [&] {
      StoreShared(Word(Thread()), BlockX());
      SyncThreads();
      EXPECT_EQ(LoadShared<int>(Word(Threads() - 1 - Thread())), BlockX());
      EXPECT_EQ(GridX(), 2);
      EXPECT_EQ(GridY(), 3);
      const int block = BlockX() + 2 * (BlockY() + 3 * BlockZ());
      ++runs[static_cast<size_t>(block * threads + Thread())];
    }));
    for (const int n : runs) EXPECT_EQ(n, 1);
  }
}

TEST(Launch, TheSeedChangesTheOrderAndNothingElse) {
  const auto order = [](uint64_t seed) {
    std::vector<int> lanes;
    Options options;
    options.seed = seed;
    GlobalMemory memory;
    Launch({"k", {3}, 64, 0}, memory, options, [&] {
      SyncThreads();
      lanes.push_back(64 * BlockX() + Thread());
    });
    return lanes;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
}

TEST(Launch, ABrokenBlockLeavesTheNextOnesWhole) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(RunBlock(64, [] {
                   if (Thread() != 40) SyncThreads();
                 }).errors.empty());
    EXPECT_FALSE(RunBlock(64, [] { StoreShared(Word(Thread()) + 1, 1); }).errors.empty());
    ExpectSilent(RunBlock(64, [] { SyncThreads(); }));
  }
}

TEST(Launch, ThreadsOfTheHostLaunchSideBySide) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([] {
      for (int j = 0; j < 20; ++j) ExpectSilent(RunBlock(128, [] { SyncThreads(); }));
    });
  for (std::thread& t : threads) t.join();
}

TEST(Launch, ErrorsAreFew) {
  const Report report = RunBlock(1024, [] { LoadShared<int>(Word(Thread())); });
  EXPECT_EQ(report.errors.size(), 1u);
}

TEST(Options, ComeFromTheEnvironment) {
  setenv("LATTE_EMULATOR_SEED", "77", 1);
  setenv("LATTE_EMULATOR_LANDING", "random", 1);
  setenv("LATTE_EMULATOR_CAPABILITY", "80", 1);
  const Options options = Options::FromEnvironment();
  EXPECT_EQ(options.seed, 77u);
  EXPECT_EQ(options.landing, Landing::kRandom);
  EXPECT_EQ(options.capability, 80);
  setenv("LATTE_EMULATOR_LANDING", "sometimes", 1);
  EXPECT_EXIT(Options::FromEnvironment(), testing::ExitedWithCode(2),
              "LATTE_EMULATOR_LANDING: expected late, early or random, found \"sometimes\"");
  unsetenv("LATTE_EMULATOR_SEED");
  unsetenv("LATTE_EMULATOR_LANDING");
  unsetenv("LATTE_EMULATOR_CAPABILITY");
  EXPECT_EQ(Options::FromEnvironment().seed, 1u);
}

}  // namespace
}  // namespace latte::cuda::launch_test
