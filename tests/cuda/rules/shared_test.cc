// Rules of shared memory and of the lanes of a block.
#include "tests/cuda/rules/rules.h"

namespace latte::cuda::shared_rules_test {
namespace {

using namespace emulator;

// Each lane stores a word, then reads its neighbour's; `between` makes order or does not.
Report Exchange(int threads, int distance, const std::function<void()>& between) {
  return RunBlock(threads, [&] {
    StoreShared(Word(Thread()), Thread());
    between();
    EXPECT_EQ(LoadShared<int>(Word((Thread() + distance) % Threads())),
              (Thread() + distance) % Threads());
  });
}

TEST(SharedRules, ABarrierOrdersTheLanesOfABlock) {
  ExpectSilent(Exchange(128, 32, [] { SyncThreads(); }));
  // Without it some lane also reads what nothing has written.
  const Report report = RunBlock(64, [] {
    StoreShared(Word(Thread()), 1);
    if (Thread() < 32) SyncWarp();
    if (Thread() >= 32) SyncWarp();
    StoreShared(Word((Thread() + 32) % 64), 2);
  });
  ExpectError(report, "race: write, shared_test.cc:");
}

TEST(SharedRules, SyncWarpOrdersTheLanesOfAWarpOnly) {
  const auto kernel = [](int distance) {
    return RunBlock(64, [=] {
      StoreShared(Word(Thread()), Thread());
      SyncWarp();
      const int other = distance < 32 ? Thread() / 32 * 32 + (Thread() + distance) % 32
                                      : (Thread() + distance) % 64;
      LoadShared<int>(Word(other));
    });
  };
  ExpectSilent(kernel(1));
  EXPECT_FALSE(kernel(32).errors.empty());
}

TEST(SharedRules, AReadMustFollowTheWriteAndSayBothLines) {
  const int store = __LINE__ + 2, load = __LINE__ + 4;
  const Report report = RunBlock(64, [] {
    if (Thread() == 0) StoreShared(Word(0), 1);
    Broadcast(1, 0);  // a shuffle orders nothing
    if (Thread() == 1) LoadShared<int>(Word(0));
  });
  ExpectError(report, "race: read, shared_test.cc:" + std::to_string(load) +
                          ", not ordered after the write, shared_test.cc:" + std::to_string(store));
}

TEST(SharedRules, AWriteMustFollowTheReads) {
  const auto kernel = [](bool barrier) {
    return RunBlock(64, [=] {
      StoreShared(Word(Thread()), 1);
      SyncThreads();
      LoadShared<int>(Word(63 - Thread()));
      if (barrier) SyncThreads();
      StoreShared(Word(Thread()), 2);
    });
  };
  ExpectSilent(kernel(true));
  ExpectError(kernel(false), "not ordered after a read by warp");
}

TEST(SharedRules, ANamedBarrierOrdersThoseWhoCome) {
  const auto kernel = [](bool arrive_first) {
    return RunBlock(64, [=] {
      if (Thread() < 32) {
        if (!arrive_first) StoreShared(Word(Thread()), Thread());
        BarrierArrive(3, 64);
        if (arrive_first) StoreShared(Word(Thread()), Thread());
      } else {
        BarrierSync(3, 64);
        LoadShared<int>(Word(Thread() - 32));
      }
    });
  };
  ExpectSilent(kernel(false));
  EXPECT_FALSE(kernel(true).errors.empty());
}

TEST(SharedRules, MemoryStartsAsPoison) {
  ExpectError(RunBlock(32,
                       [] {
                         const float x = LoadSharedFloat(Word(Thread()));
                         EXPECT_NE(x, x);
                       }),
              "read of shared memory never written, shared_test.cc:");
}

TEST(SharedRules, AccessesAreInsideAndAligned) {
  ExpectSilent(RunBlock(32, [] { StoreShared(Word((16 << 10) - 32 + Thread()), 1); }));
  ExpectError(RunBlock(32, [] { StoreShared(Word((16 << 10) - 31 + Thread()), 1); }),
              "shared memory overrun");
  ExpectError(RunBlock(32, [] { StoreShared(Word(Thread()) + 2, 1); }),
              "misaligned shared address");
  ExpectError(RunBlock(32, [] { StoreShared(Word(Thread()), Words4{}); }),
              "misaligned shared address");
}

TEST(SharedRules, LanesOfAWarpStayTogether) {
  const int here = __LINE__ + 3;
  const Report report = RunBlock(32, [] {
    if (Thread() < 31)
      ShuffleXor(1.0f, 1);
    else
      SyncWarp();
  });
  ExpectError(report, "lanes of one warp diverge: ");
  ExpectError(report, "shared_test.cc:" + std::to_string(here));
  ExpectSilent(RunBlock(64, [] {
    if (Thread() < 32) ShuffleXor(1.0f, 1);
  }));
}

TEST(SharedRules, ADeadlockNamesThePlaces) {
  const Report report = RunBlock(64, [] {
    if (Thread() < 32) return;
    SyncThreads();
  });
  ExpectError(report, "deadlock: 32 lanes wait in a barrier at shared_test.cc:");
  ExpectError(report, "32 have left");
  ExpectError(RunBlock(32,
                       [] {
                         if (Thread() < 16) SyncWarp();
                       }),
              "deadlock: 16 lanes wait in __syncwarp");
}

TEST(SharedRules, ABarrierHasOneCount) {
  ExpectError(RunBlock(96, [] { BarrierArrive(1, Thread() < 32 ? 64 : 96); }),
              "lanes disagree on a barrier's count");
  ExpectError(RunBlock(32, [] { BarrierSync(16, 32); }), "no such barrier");
  ExpectError(RunBlock(32, [] { BarrierSync(1, 48); }), "no such barrier");
  ExpectError(RunBlock(32, [] { BarrierSync(1, 64); }), "no such barrier");
}

TEST(SharedRules, ABarrierIsNotLeftHalfFull) {
  ExpectError(RunBlock(64,
                       [] {
                         if (Thread() < 32) BarrierArrive(2, 64);
                       }),
              "barrier 2 is left with arrivals that no lane met");
}

TEST(SharedRules, BankConflictsAreCounted) {
  const auto conflicts = [](int stride) {
    const Report report = RunBlock(32, [=] { StoreShared(Word(stride * Thread()), 1); });
    ExpectSilent(report);
    return report.counters.bank_conflicts;
  };
  EXPECT_EQ(conflicts(1), 0);
  EXPECT_EQ(conflicts(2), 1);
  EXPECT_EQ(conflicts(32), 31);
  EXPECT_EQ(conflicts(33), 0);
}

}  // namespace
}  // namespace latte::cuda::shared_rules_test
