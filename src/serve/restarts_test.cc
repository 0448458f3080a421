#include "src/serve/restarts.h"

#include <thread>

#include <gtest/gtest.h>

namespace latte::restarts_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Restarts, EachWaitsTwiceAsLongUntilAnEngineLasts) {
  Restarts restarts;
  Restarts::Clock::time_point now(seconds(1000));
  for (const int64_t delay : {1, 2, 4, 8, 16, 32, 60, 60}) {
    restarts.Ready(now);
    now += seconds(59);
    EXPECT_EQ(restarts.Failed(now, {}), seconds(delay));
  }
  EXPECT_EQ(restarts.Failed(now + seconds(100), {}), seconds(60)) << "it was never ready";
  restarts.Ready(now);
  EXPECT_EQ(restarts.Failed(now + seconds(60), {}), seconds(1));
  EXPECT_EQ(restarts.count(), 10);
}

TEST(Restarts, AnEngineThatGaveATokenIsFollowedSoon) {
  Restarts restarts;
  const Restarts::Clock::time_point now(seconds(1000));
  for (const int64_t delay : {1, 2, 4}) EXPECT_EQ(restarts.Failed(now, {}), seconds(delay));
  for (int i = 0; i < 20; ++i) {
    restarts.Ready(now);
    EXPECT_EQ(restarts.Failed(now + seconds(2), {.generated_tokens = 1}), seconds(1));
  }
  EXPECT_EQ(restarts.Failed(now, {}), seconds(2));
}

TEST(Restarts, CountersGoOnAndTheStateIsThatOfTheEngine) {
  Restarts restarts;
  restarts.Failed({}, {.running = 5, .steps = 7, .generated_tokens = 10, .step_seconds = 0.5});
  restarts.Failed({}, {.steps = 1, .generated_tokens = 20});
  const EngineStats total =
      restarts.Total({.waiting = 2, .steps = 3, .generated_tokens = 1, .step_seconds = 0.25});
  EXPECT_EQ(total.steps, 11);
  EXPECT_EQ(total.generated_tokens, 31);
  EXPECT_EQ(total.step_seconds, 0.75);
  EXPECT_EQ(total.waiting, 2);
  EXPECT_EQ(total.running, 0);
}

TEST(Restarts, AStopEndsTheWait) {
  Restarts restarts;
  EXPECT_TRUE(restarts.Wait(milliseconds(1)));
  std::thread other([&] { restarts.Stop(); });
  EXPECT_FALSE(restarts.Wait(seconds(60)));
  other.join();
  EXPECT_FALSE(restarts.Wait(seconds(60)));
}

}  // namespace
}  // namespace latte::restarts_test
