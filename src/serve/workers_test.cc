#include "src/serve/workers.h"

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace latte::workers_test {
namespace {

constexpr size_t kLarge = kLargeBody + 1;

// Blocks workers until it is opened.
class Gate {
 public:
  void Open() { open_.set_value(); }
  std::function<void()> Wait() {
    return [this] {
      begun_ = true;
      begun_.notify_all();
      opened_.wait();
    };
  }
  void WaitUntilBegun() const { begun_.wait(false); }

 private:
  std::atomic<bool> begun_ = false;
  std::promise<void> open_;
  std::shared_future<void> opened_ = open_.get_future().share();
};

// Counts wakes, and waits for them.
struct Wakes {
  std::atomic<int> count = 0;
  std::function<void()> function() {
    return [this] {
      ++count;
      count.notify_all();
    };
  }
  void WaitFor(int n) {
    for (int seen = count; seen < n; seen = count) count.wait(seen);
  }
};

void Ignore(const Status&) {}

TEST(Workers, DeliverOnTheCallersThread) {
  Wakes wakes;
  Workers workers(1, 8, wakes.function());
  std::thread::id ran;
  std::thread::id ended;
  ASSERT_TRUE(workers.Post({.run = [&] { ran = std::this_thread::get_id(); },
                            .ended =
                                [&](const Status& status) {
                                  EXPECT_TRUE(status);
                                  ended = std::this_thread::get_id();
                                }}));
  wakes.WaitFor(1);
  EXPECT_EQ(ended, std::thread::id());
  workers.Deliver();
  EXPECT_EQ(ended, std::this_thread::get_id());
  EXPECT_NE(ran, ended);
}

TEST(Workers, AnExceptionFailsItsJobAlone) {
  Wakes wakes;
  Workers workers(1, 8, wakes.function());
  std::vector<Status> ended;
  const auto keep = [&](Status status) { ended.push_back(std::move(status)); };
  ASSERT_TRUE(workers.Post({.run = [] { throw std::bad_alloc(); }, .ended = keep}));
  ASSERT_TRUE(workers.Post({.run = [] { throw std::runtime_error("why"); }, .ended = keep}));
  ASSERT_TRUE(workers.Post({.run = [] {}, .ended = keep}));
  wakes.WaitFor(3);
  workers.Deliver();
  ASSERT_EQ(ended.size(), 3);
  EXPECT_EQ(ended[0].error().code, Code::kExhausted);
  EXPECT_EQ(ended[1].error().code, Code::kInternal);
  EXPECT_TRUE(ended[2]);
}

TEST(Workers, NoMemoryToWakeMeansALaterDelivery) {
  std::atomic<int> failed = 0;
  Workers workers(1, 8, [&] {
    ++failed;
    failed.notify_all();
    throw std::bad_alloc();
  });
  int ended = 0;
  ASSERT_TRUE(workers.Post({.run = [] {}, .ended = [&](const Status&) { ++ended; }}));
  failed.wait(0);
  workers.Deliver();
  EXPECT_EQ(ended, 1);
}

TEST(Workers, AnEndThatThrowsLeavesTheOthers) {
  Wakes wakes;
  Workers workers(1, 8, wakes.function());
  int ended = 0;
  ASSERT_TRUE(workers.Post({.run = [] {}, .ended = [](const Status&) { throw std::bad_alloc(); }}));
  ASSERT_TRUE(workers.Post({.run = [] {}, .ended = [&](const Status&) { ++ended; }}));
  wakes.WaitFor(2);
  EXPECT_THROW(workers.Deliver(), std::bad_alloc);
  workers.Deliver();
  EXPECT_EQ(ended, 1);
}

TEST(Workers, WhatNobodyWantsDoesNotBegin) {
  Gate gate;
  Wakes wakes;
  Workers workers(1, 8, wakes.function());
  bool ran = false;
  int ended = 0;
  const auto count = [&](const Status&) { ++ended; };
  const auto body = std::make_shared<std::string>("body");
  const auto running = workers.Post({.run = gate.Wait(), .ended = count});
  const auto waits = workers.Post({.run = [&ran, body] { ran = true; }, .ended = count});
  const auto wanted = workers.Post({.run = [] {}, .ended = count});
  ASSERT_TRUE(running && waits && wanted);
  gate.WaitUntilBegun();
  workers.Drop(*waits);
  EXPECT_EQ(body.use_count(), 1) << "its body is freed at once";
  workers.Drop(*running);
  gate.Open();
  wakes.WaitFor(2);
  workers.Drop(12345);  // ended long ago
  workers.Deliver();
  EXPECT_FALSE(ran);
  EXPECT_EQ(ended, 1) << "only the one that is wanted";
}

TEST(Workers, WhatRanIsNotDeliveredAfterADrop) {
  Wakes wakes;
  Workers workers(1, 8, wakes.function());
  int ended = 0;
  const auto ticket = workers.Post({.run = [] {}, .ended = [&](const Status&) { ++ended; }});
  wakes.WaitFor(1);
  workers.Drop(*ticket);
  workers.Deliver();
  EXPECT_EQ(ended, 0);
}

TEST(Workers, LargeBodiesLeaveAThreadForSmallOnes) {
  Wakes wakes;
  Gate gate;
  Workers workers(2, 8, wakes.function());
  ASSERT_TRUE(workers.Post({.bytes = kLarge, .run = gate.Wait(), .ended = Ignore}));
  ASSERT_TRUE(workers.Post({.bytes = kLarge, .run = gate.Wait(), .ended = Ignore}));
  ASSERT_TRUE(workers.Post({.bytes = kLargeBody, .run = [] {}, .ended = Ignore}));
  wakes.WaitFor(1);  // the small one, though two large ones are before it
  EXPECT_EQ(workers.waiting(), 1);
  gate.Open();
  wakes.WaitFor(3);
}

TEST(Workers, OneThreadRunsLargeBodiesToo) {
  Wakes wakes;
  Workers workers(1, 8, wakes.function());
  ASSERT_TRUE(workers.Post({.bytes = kLarge, .run = [] {}, .ended = Ignore}));
  wakes.WaitFor(1);
}

TEST(Workers, MoreThanMayWaitAreRefused) {
  Gate gate;
  Wakes wakes;
  Workers workers(1, 1, wakes.function());
  ASSERT_TRUE(workers.Post({.run = gate.Wait(), .ended = Ignore}));
  gate.WaitUntilBegun();
  const auto waits = workers.Post({.run = [] {}, .ended = Ignore});
  ASSERT_TRUE(waits);
  EXPECT_FALSE(workers.Post({.run = [] {}, .ended = Ignore}));
  workers.Drop(*waits);
  EXPECT_TRUE(workers.Post({.run = [] {}, .ended = Ignore}));
  gate.Open();
}

}  // namespace
}  // namespace latte::workers_test
