// Rules of cp.async: when copies land, and who sees them.
#include <vector>

#include "tests/cuda/rules/rules.h"

namespace latte::cuda::async_rules_test {
namespace {

using namespace emulator;

Options With(Landing landing) {
  Options options;
  options.landing = landing;
  return options;
}

class AsyncRules : public testing::Test {
 protected:
  AsyncRules() : values_(256) {
    for (int i = 0; i < 256; ++i) values_[static_cast<size_t>(i)] = i;
    memory_.Add(values_.data(), 1024, Content::kWritten, false);
  }

  Report Run(const std::function<void(const int32_t*)>& body, Landing landing = Landing::kLate) {
    return RunBlock(
        64, [&] { body(values_.data()); }, With(landing), &memory_);
  }

  std::vector<int32_t> values_;
  GlobalMemory memory_;
};

// Each lane starts the copy of its four words.
void Start(const int32_t* from, bool valid = true) {
  CopyAsync16(Word(4 * Thread()), from + 4 * Thread(), valid);
  CopyAsyncCommit();
}

TEST_F(AsyncRules, ACopyIsThereAfterItsWait) {
  for (const Landing landing : {Landing::kLate, Landing::kEarly, Landing::kRandom})
    ExpectSilent(Run(
        [](const int32_t* from) {
          Start(from);
          CopyAsyncWait<0>();
          EXPECT_EQ(LoadShared<int>(Word(4 * Thread() + 3)), 4 * Thread() + 3);
          SyncThreads();
          EXPECT_EQ(LoadShared<int>(Word(255 - Thread())), 255 - Thread());
        },
        landing));
}

TEST_F(AsyncRules, AReadBeforeTheWaitIsAnError) {
  for (const Landing landing : {Landing::kLate, Landing::kEarly})
    ExpectError(Run(
                    [](const int32_t* from) {
                      Start(from);
                      LoadShared<int>(Word(4 * Thread()));
                      CopyAsyncWait<0>();
                    },
                    landing),
                "of what an asynchronous copy has yet to bring, async_test.cc:");
}

TEST_F(AsyncRules, LateAndEarlyLandingShowDifferentBytesBeforeTheWait) {
  const auto seen = [&](Landing landing) {
    int value = 0;
    Run(
        [&](const int32_t* from) {
          StoreShared(Word(4 * Thread()), -1);
          CopyAsync16(Word(4 * Thread()), from + 4 * Thread(), true);
          CopyAsyncCommit();
          const int v = LoadShared<int>(Word(4 * Thread()));
          if (Thread() == 5) value = v;
          CopyAsyncWait<0>();
        },
        landing);
    return value;
  };
  EXPECT_EQ(seen(Landing::kLate), -1);
  EXPECT_EQ(seen(Landing::kEarly), 20);
}

TEST_F(AsyncRules, OtherLanesNeedABarrierAfterTheWait) {
  ExpectError(Run([](const int32_t* from) {
                SyncThreads();
                Start(from);
                CopyAsyncWait<0>();
                ShuffleXor(1, 1);
                LoadShared<int>(Word(255 - Thread()));
              }),
              "async_test.cc:");
}

TEST_F(AsyncRules, EveryCopyIsWaitedFor) {
  ExpectError(Run([](const int32_t* from) { Start(from); }), "cp.async never waited for");
  ExpectError(Run([](const int32_t* from) { CopyAsync16(Word(4 * Thread()), from, true); }),
              "cp.async never committed");
  ExpectError(Run([](const int32_t* from) {
                Start(from);
                CopyAsyncWait<1>();
              }),
              "cp.async never waited for");
}

TEST_F(AsyncRules, TheTargetIsNotWrittenMeanwhile) {
  ExpectError(Run([](const int32_t* from) {
                Start(from);
                StoreShared(Word(4 * Thread()), 1);
                CopyAsyncWait<0>();
              }),
              "while an asynchronous copy is under way");
}

TEST_F(AsyncRules, AnInvalidCopyIsZeroAndReadsNothing) {
  ExpectSilent(Run([](const int32_t*) {
    CopyAsync16(Word(4 * Thread()), nullptr, false);
    CopyAsyncCommit();
    CopyAsyncWait<0>();
    EXPECT_EQ(LoadShared<int>(Word(4 * Thread() + 1)), 0);
  }));
  ExpectError(Run([](const int32_t* from) { Start(from + 4); }), "global read of 16 bytes");
  ExpectError(Run([](const int32_t* from) { Start(from + 1); }), "misaligned global address");
}

}  // namespace
}  // namespace latte::cuda::async_rules_test
