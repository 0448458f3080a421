// Which calls several threads may make while one thread steps, and which the sink may make; a
// thread that waits for work sleeps.
#include <atomic>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/engine_run.h"
#include "tests/support/plain_answer.h"
#include "tests/support/scratch_dir.h"

namespace latte::engine_threads_test {
namespace {

using std::chrono::milliseconds;
using testing_support::AnswerPlainly;
using testing_support::EngineRun;
using testing_support::FakeModel;
using testing_support::kFirstRareToken;
using testing_support::Outcome;
using testing_support::ScratchDir;
using Clock = std::chrono::steady_clock;

constexpr int64_t kMaxTokens = 128;

EngineOptions Options() {
  EngineOptions o;
  o.draft_tokens = "0";
  o.page_tokens = 16;
  o.max_tokens = kMaxTokens;
  o.max_batch_tokens = 64;
  o.max_sequences = 8;
  o.cache_bytes = 32 * 16 * 16;
  o.threads = 2;
  o.deterministic = "strict";
  return o;
}

std::unique_ptr<EngineRun> Make(const Model& model, const EngineOptions& options) {
  auto run = EngineRun::Create(model, options);
  EXPECT_TRUE(run) << ToString(run.error());
  return std::move(*run);
}

Request Ask(uint64_t seed) {
  Request r;
  for (uint64_t i = 0; i < 20 + seed % 50; ++i)
    r.tokens.push_back(static_cast<int32_t>(Mix64(seed / 4 + i) % kFirstRareToken));
  r.sampling.seed = seed;
  r.stop.max_tokens = static_cast<int64_t>(1 + seed % 20);
  r.n = static_cast<int>(1 + seed % 3);
  return r;
}

double CpuSeconds() {
  timespec t = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

TEST(EngineThreadsTest, ManySubmitCancelAndLookWhileOneSteps) {
  constexpr int kThreads = 3;
  constexpr uint64_t kEach = 150;
  const FakeModel model;
  const auto run = Make(model, Options());
  std::vector<std::map<RequestId, uint64_t>> seeds(kThreads);  // of requests, by thread
  std::atomic<int> busy = kThreads;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      int64_t finished = 0;
      for (uint64_t i = 0; i < kEach; ++i) {
        const uint64_t seed = i * kThreads + static_cast<uint64_t>(t);
        const auto id = run->core().Submit(Ask(seed));
        if (id) seeds[static_cast<size_t>(t)][*id] = seed;
        if (id && i % 5 == 0) run->core().Cancel(*id);
        const EngineStats stats = run->core().Stats();
        EXPECT_GE(stats.requests_finished, finished);
        finished = stats.requests_finished;
        if (i % 16 == 0) std::this_thread::sleep_for(milliseconds(1));
      }
      --busy;
    });
  while (busy > 0) {
    run->core().WaitForWork(Clock::now() + milliseconds(20));
    ASSERT_TRUE(run->core().Step());
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(run->Finish(), "");
  std::set<RequestId> ids;
  for (const auto& of_thread : seeds)
    for (const auto& [id, seed] : of_thread) {
      EXPECT_TRUE(ids.insert(id).second);
      const Request request = Ask(seed);
      for (int choice = 0; choice < request.n; ++choice) {
        const Outcome& out = run->Of(id, choice);
        ASSERT_TRUE(out.finish);
        if (out.finish == FinishReason::kCancelled) continue;
        EXPECT_EQ(out.tokens, AnswerPlainly(request, choice, kMaxTokens).tokens);
      }
    }
  EXPECT_EQ(ids.size(), kThreads * kEach);
}

// Text is taken apart on the threads that submit it, while the engine's puts answers together.
TEST(EngineThreadsTest, TextOfManyThreadsGetsTheSameAnswers) {
  constexpr int kThreads = 3;
  const std::vector<std::string> prompts = {"Once upon a time", "Tom's 12 red cars",
                                            "Él dijo: 你好"};
  EngineOptions options = Options();
  options.model = std::string(LATTE_SOURCE_DIR) + "/models/tiny";
  options.cache_bytes = int64_t{1} << 24;
  const auto engine = Engine::Create(options);
  ASSERT_TRUE(engine) << ToString(engine.error());
  std::map<RequestId, std::string> answers;
  size_t finished = 0;
  (*engine)->SetEventSink([&](std::span<const TokenEvent> events) {
    for (const TokenEvent& e : events) {
      answers[e.request] += e.text;
      if (e.finish) ++finished;
    }
  });
  std::vector<std::vector<RequestId>> ids(kThreads);  // one per prompt, by thread
  std::vector<std::thread> threads;
  for (auto& own : ids)
    threads.emplace_back([&] {
      for (const std::string& prompt : prompts) {
        Request r;
        r.prompt = prompt;
        r.echo = true;
        r.stop.max_tokens = 12;
        r.stop.strings = {"zebra"};
        own.push_back((*engine)->Submit(std::move(r)).value_or(0));
      }
    });
  while (finished < kThreads * prompts.size()) {
    ASSERT_TRUE((*engine)->WaitForWork(Clock::now() + std::chrono::seconds(60)));
    ASSERT_TRUE((*engine)->Step());
  }
  for (std::thread& t : threads) t.join();
  for (const auto& own : ids)
    for (size_t i = 0; i < prompts.size(); ++i) {
      EXPECT_TRUE(answers[own[i]].starts_with(prompts[i])) << answers[own[i]];
      EXPECT_GT(answers[own[i]].size(), prompts[i].size());
      EXPECT_EQ(answers[own[i]], answers[ids[0][i]]);
    }
}

// Events of a request may come before Submit has returned its id to the thread that submits it.
// With user data that thread knows them nevertheless.
TEST(EngineThreadsTest, EventsThatComeBeforeTheIdAreKnownByTheirUserData) {
  constexpr uint64_t kRequests = 200;
  const FakeModel model;
  const auto run = Make(model, Options());
  struct Known {
    std::mutex mutex;
    std::set<uint64_t> open;  // user data of requests without an end
    std::set<RequestId> ids;  // that Submit has returned
    int64_t unknown = 0;      // events of requests that are not open
    int64_t early = 0;        // events that came before the id
  } known;
  run->on_events = [&](std::span<const TokenEvent> events) {
    const std::lock_guard lock(known.mutex);
    for (const TokenEvent& e : events) {
      if (!known.open.contains(e.user_data)) ++known.unknown;
      if (!known.ids.contains(e.request)) ++known.early;
      if (e.finish) known.open.erase(e.user_data);
    }
  };
  std::atomic<bool> done = false;
  std::thread engine([&] {
    while (!done) {
      run->core().WaitForWork(Clock::now() + milliseconds(1));
      EXPECT_TRUE(run->core().Step());
    }
  });
  for (uint64_t i = 1; i <= kRequests; ++i) {
    Request r = Ask(4);
    r.n = 1;
    r.user_data = uint64_t{1} << 63 | i;
    {
      const std::lock_guard lock(known.mutex);
      known.open.insert(r.user_data);
    }
    const auto id = run->core().Submit(r);
    // The first request's events certainly come before its id is known here.
    for (bool waits = i == 1; waits; std::this_thread::sleep_for(milliseconds(1))) {
      const std::lock_guard lock(known.mutex);
      waits = known.early == 0;
    }
    ASSERT_TRUE(id);
    // A slow submitter: the engine is not.
    if (i % 10 == 0) std::this_thread::sleep_for(milliseconds(5));
    const std::lock_guard lock(known.mutex);
    known.ids.insert(*id);
  }
  done = true;
  engine.join();
  EXPECT_EQ(run->Finish(), "");
  EXPECT_EQ(known.unknown, 0);
  EXPECT_TRUE(known.open.empty());
  EXPECT_GT(known.early, 0);  // or else this test shows nothing
}

TEST(EngineThreadsTest, SinkSubmitsAndCancelsFromInside) {
  const FakeModel model;
  const auto run = Make(model, Options());
  const Request r = Ask(39);
  std::set<RequestId> ids;
  const auto submit = [&] {
    const auto id = run->core().Submit(r);
    EXPECT_TRUE(id && ids.insert(*id).second);
    return *id;
  };
  run->on_events = [&](std::span<const TokenEvent> events) {
    for (const TokenEvent& e : events) {
      if (e.token && e.generated_tokens == 5 && ids.size() < 20) {
        run->core().Cancel(submit());
        submit();
        run->core().Cancel(e.request);
      }
      if (e.finish) run->core().Cancel(e.request);
    }
  };
  submit();
  EXPECT_EQ(run->Finish(), "");
  EXPECT_EQ(ids.size(), 21u);
  EXPECT_EQ(run->core().Stats().requests_finished, std::ssize(ids));
  EXPECT_EQ(run->core().Stats().requests_cancelled, 20);
}

TEST(EngineThreadsTest, WaitingSleepsUntilThereIsWork) {
  const FakeModel model;
  const auto run = Make(model, Options());
  const auto none = [&] {
    const double cpu = CpuSeconds();
    EXPECT_FALSE(run->core().WaitForWork(Clock::now() + milliseconds(300)));
    EXPECT_LT(CpuSeconds() - cpu, 0.1);
  };
  none();
  EXPECT_TRUE(run->core().Submit(Ask(1)));
  EXPECT_EQ(run->Finish(), "");
  none();
  run->core().Cancel(12345);
  EXPECT_TRUE(run->core().WaitForWork(Clock::now()));  // a message, even if it concerns no request
  ASSERT_TRUE(run->core().Step());
  none();
}

TEST(EngineThreadsTest, SubmitAndCancelWake) {
  const FakeModel model;
  const auto run = Make(model, Options());
  for (const bool submit : {true, false}) {
    const Clock::time_point start = Clock::now();
    std::thread other([&] {
      std::this_thread::sleep_for(milliseconds(50));
      if (submit)
        EXPECT_TRUE(run->core().Submit(Ask(1)));
      else
        run->core().Cancel(1);
    });
    EXPECT_TRUE(run->core().WaitForWork(Clock::time_point::max()));
    EXPECT_GE(Clock::now() - start, milliseconds(40));
    other.join();
    EXPECT_EQ(run->Finish(), "");
  }
}

// While pages are read there is nothing to step for: their arrival wakes.
TEST(EngineThreadsTest, LoadsFromDiskWake) {
  const FakeModel model;
  const ScratchDir dir;
  EngineOptions options = Options();
  options.cache_dir = dir.File("prefixes");
  Request r = Ask(49);
  r.stop.max_tokens = 3;
  r.n = 1;
  for (int round = 0; round < 20; ++round) {
    const auto run = Make(model, options);
    EXPECT_TRUE(run->core().Submit(r));
    int64_t steps = 0;
    EngineStats stats;
    do {
      ASSERT_TRUE(run->core().WaitForWork(Clock::now() + std::chrono::seconds(30)));
      ASSERT_TRUE(run->core().Step());
      ++steps;
      stats = run->core().Stats();
    } while (stats.running + stats.waiting > 0);
    EXPECT_LE(steps, 16);  // a step per page that came alone, and three tokens
    EXPECT_EQ(stats.disk_tokens > 0, round > 0);
    EXPECT_TRUE(run->core().SavePrefixes());
  }
}

}  // namespace
}  // namespace latte::engine_threads_test
