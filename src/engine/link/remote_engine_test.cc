#include "src/engine/link/remote_engine.h"

#include <atomic>
#include <filesystem>
#include <map>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "src/engine/core/create_engine.h"

namespace latte::remote_engine_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr ControlOptions kControl{.interval = milliseconds(100), .missed = 100};

const ModelFiles& Tiny() {
  static const ModelFiles files = ModelFiles::Load("tiny").value();
  return files;
}

bool Until(const std::function<bool()>& condition) {
  for (int i = 0; !condition(); ++i) {
    if (i == 6000) return false;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return true;
}

// An engine of a rank that does what the test says. Every step gives each request a token.
class FakeEngine final : public Engine {
 public:
  std::string text = "a";  // of each token
  std::function<Status()> on_submit = [] { return Status(); };
  std::function<Status()> on_step = [] { return Status(); };
  std::function<Status()> on_save = [] { return Status(); };
  std::atomic<int64_t> steps = 0;

  Result<RequestId> Submit(Request request) override {
    LATTE_RETURN_IF_ERROR(on_submit());
    const std::lock_guard lock(mutex_);
    const RequestId id = request.id;
    requests_.emplace(id, Running{std::move(request)});
    changed_.notify_all();
    return id;
  }
  void Cancel(RequestId id) override {
    const std::lock_guard lock(mutex_);
    if (const auto found = requests_.find(id); found != requests_.end())
      found->second.cancelled = true;
  }
  void SetEventSink(EventSink sink) override { sink_ = std::move(sink); }
  Status Step() override {
    LATTE_RETURN_IF_ERROR(on_step());
    std::vector<TokenEvent> events;
    {
      const std::lock_guard lock(mutex_);
      for (auto& [id, running] : requests_)
        if (!running.done) Advance(id, running, events);
    }
    if (events.empty()) return {};
    ++steps;
    sink_(events);
    return {};
  }
  bool WaitForWork(Clock::time_point deadline) override {
    std::unique_lock lock(mutex_);
    const bool woken = changed_.wait_until(lock, deadline, [this] { return woken_ || HasWork(); });
    woken_ = false;
    return woken;
  }
  void Wake() override {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }
  Status SavePrefixes() override { return on_save(); }
  EngineStats Stats() const override { return {.steps = steps}; }
  const EngineOptions& options() const override { return options_; }

  std::vector<Request> requests() {
    const std::lock_guard lock(mutex_);
    std::vector<Request> out;
    for (const auto& [id, running] : requests_) out.push_back(running.request);
    return out;
  }

 private:
  struct Running {
    Request request;
    int64_t generated = 0;
    bool cancelled = false;
    bool done = false;
  };
  bool HasWork() const {
    return std::ranges::any_of(requests_, [](const auto& one) { return !one.second.done; });
  }
  void Advance(RequestId id, Running& running, std::vector<TokenEvent>& events) const {
    ++running.generated;
    running.done = running.cancelled || running.generated == running.request.stop.max_tokens;
    for (int choice = 0; choice < running.request.n; ++choice) {
      TokenEvent event;
      event.request = id;
      event.user_data = running.request.user_data;
      event.choice = choice;
      event.text = text;
      event.generated_tokens = running.generated;
      if (running.done)
        event.finish = running.cancelled ? FinishReason::kCancelled : FinishReason::kLength;
      events.push_back(std::move(event));
    }
  }

  EventSink sink_;
  EngineOptions options_ = {.max_tokens = 128, .max_queued_requests = 3, .max_queued_tokens = 40};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<RequestId, Running> requests_;
  bool woken_ = false;
};

// Ranks that are threads. Once a rank has joined, it does as the test says.
class ThreadRanks final : public RankProcesses {
 public:
  using Rank = std::function<void(FrontLink&, int rank)>;

  // `started` of `ranks`.
  ThreadRanks(const FrontAddress& front, int ranks, int started, const ControlOptions& control,
              const Rank& rank) {
    FrontAddress at = front;
    if (at.inherited >= 0) at.address = fmt::format("fd:{}", dup(at.inherited));  // as a process
    for (int i = 0; i < started; ++i)
      threads_.emplace_back([this, at, ranks, control, rank, i] {
        const auto link = FrontLink::Join(
            at, i, ranks, [](const RankLost&) {}, control);
        EXPECT_TRUE(link) << ToString(link.error());
        rank(**link, i);
        ++ended_;
      });
  }
  ~ThreadRanks() override {
    for (std::thread& thread : threads_) thread.join();
  }
  std::optional<ProcessEnd> Ended() override {
    if (ended_ < std::ssize(threads_)) return std::nullopt;
    return ProcessEnd{.text = "exit code 0"};
  }
  bool WaitForEnd(milliseconds most) override {
    const auto end = Clock::now() + most;
    while (!Ended() && Clock::now() < end) std::this_thread::sleep_for(milliseconds(1));
    return Ended().has_value();
  }

 private:
  std::atomic<int64_t> ended_ = 0;
  std::vector<std::thread> threads_;
};

// Two ranks, of which the first has `engine`, until the front leaves.
class Group {
 public:
  explicit Group(Engine& engine) : engine_(engine) {}

  ThreadRanks::Rank rank = [this](FrontLink& link, int number) {
    if (number == 0) {
      if (const Status done = link.Serve(engine_); !done) link.Fail(done.error());
      served_ = true;
    }
    Until([this] { return served_.load(); });
  };
  RemoteOptions options{.ranks = 2, .config_hash = std::string(32, 'c'), .control = kControl};

  Result<std::unique_ptr<RemoteEngine>> Start(const std::stop_token& stop = {}) {
    return RemoteEngine::Start(
        options, Tiny(),
        [this](const FrontAddress& front) -> Result<std::unique_ptr<RankProcesses>> {
          address = front.address;
          return std::make_unique<ThreadRanks>(front, options.ranks, options.ranks, options.control,
                                               rank);
        },
        stop);
  }

  std::string address;  // of the last start

 private:
  Engine& engine_;
  std::atomic<bool> served_ = false;
};

// What an engine gives, by the caller's names.
class Events {
 public:
  explicit Events(Engine& engine) : engine_(engine) {
    engine.SetEventSink([this](std::span<const TokenEvent> events) {
      for (const TokenEvent& event : events) Add(event);
    });
  }
  // Steps until so many answers have ended. Errors: of Step.
  Status Run(int ended) {
    while (ended_ < ended) {
      LATTE_RETURN_IF_ERROR(engine_.Step());
      engine_.WaitForWork(Clock::now() + milliseconds(10));
    }
    return {};
  }
  std::map<std::pair<uint64_t, int>, std::string> texts;  // by user_data and choice
  std::map<uint64_t, TokenEvent> last;

 private:
  void Add(const TokenEvent& event) {
    texts[{event.user_data, event.choice}] += event.text;
    last[event.user_data] = event;
    if (event.finish) ++ended_;
  }
  Engine& engine_;
  int ended_ = 0;
};

Request Ask(int64_t max_tokens, uint64_t user_data = 7) {
  Request request{.prompt = "Once upon a time"};
  request.stop.max_tokens = max_tokens;
  request.user_data = user_data;
  return request;
}

TEST(RemoteEngine, AnswersAreThoseOfTheEngine) {
  const EngineOptions options{.threads = 1, .cache_bytes = 4 << 20, .max_tokens = 128};
  std::vector<Request> requests;
  for (uint64_t i = 0; i < 6; ++i) {
    Request request = Ask(10 + static_cast<int64_t>(i), 100 + i);
    request.n = i % 2 == 0 ? 1 : 2;
    request.echo = i == 3;
    request.logprobs = i == 4 ? 2 : -1;
    request.sampling.seed = i;
    requests.push_back(std::move(request));
  }
  const auto answers = [&](Engine& engine) {
    Events events(engine);
    for (const Request& request : requests) EXPECT_TRUE(engine.Submit(request));
    EXPECT_TRUE(events.Run(9));
    return events.texts;
  };
  const auto local = CreateEngine(options, Tiny()).value().engine;
  const auto expected = answers(*local);
  const auto far = CreateEngine(options, Tiny()).value().engine;
  Group group(*far);
  const auto engine = group.Start().value();
  EXPECT_EQ(engine->options().max_tokens, 128);
  EXPECT_EQ(answers(*engine), expected);
  EXPECT_TRUE(Until([&] { return engine->Stats().generated_tokens > 0; }));
}

TEST(RemoteEngine, RequestsAreCheckedAtOnce) {
  FakeEngine fake;
  Group group(fake);
  const auto engine = group.Start().value();
  Request request = Ask(1);
  request.sampling.temperature = -1;
  EXPECT_EQ(engine->Submit(request).error().code, Code::kInvalidArgument);
  request = Ask(1);
  request.prompt = std::string(1000, 'x');
  const auto refused = engine->Submit(request);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("maximum context length is 128 tokens"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(fake.requests().empty());
}

TEST(RemoteEngine, RanksGetTokensAndAnEchoedPrompt) {
  FakeEngine fake;
  Group group(fake);
  const auto engine = group.Start().value();
  Events events(*engine);
  Request echoed = Ask(2, 8);
  echoed.echo = true;
  echoed.cache_salt = "salt";
  ASSERT_TRUE(engine->Submit(Ask(1, 7)));
  ASSERT_TRUE(engine->Submit(echoed));
  ASSERT_TRUE(events.Run(2));
  const std::vector<Request> got = fake.requests();
  EXPECT_EQ(got.at(0).prompt, "");
  EXPECT_EQ(got.at(0).tokens.size(), 5);
  EXPECT_EQ(got.at(1).prompt, "Once upon a time");
  EXPECT_EQ(got.at(1).tokens, got.at(0).tokens);
  EXPECT_EQ(got.at(1).cache_salt, "salt");
  EXPECT_EQ(events.texts[std::pair(8, 0)], "aa");
}

TEST(RemoteEngine, ARefusalOfTheRankIsAnEvent) {
  FakeEngine fake;
  fake.on_submit = [] { return Status(Exhausted("the queue is full")); };
  Group group(fake);
  const auto engine = group.Start().value();
  Events events(*engine);
  Request request = Ask(1);
  request.n = 3;
  ASSERT_TRUE(engine->Submit(request));
  ASSERT_TRUE(events.Run(3)) << "one for each answer";
  EXPECT_EQ(events.last[7].finish, FinishReason::kError);
  EXPECT_EQ(events.last[7].error.code, Code::kExhausted);
  EXPECT_EQ(events.last[7].error.message, "the queue is full");
}

TEST(RemoteEngine, NoMoreRequestsAreOnTheWayThanMayWait) {
  FakeEngine fake;
  std::atomic<bool> blocked = true;
  fake.on_submit = [&] {
    Until([&] { return !blocked.load(); });
    return Status();
  };
  Group group(fake);
  const auto engine = group.Start().value();
  Events events(*engine);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(engine->Submit(Ask(1)));
  const auto refused = engine->Submit(Ask(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "3 requests wait, which is the most; try again later");
  blocked = false;
  ASSERT_TRUE(events.Run(3));
  EXPECT_TRUE(Until([&] { return engine->Submit(Ask(1)).has_value(); }));
  ASSERT_TRUE(events.Run(4));

  blocked = true;
  Request longer = Ask(1);
  longer.tokens.assign(25, 5);
  ASSERT_TRUE(engine->Submit(longer));
  const auto full = engine->Submit(longer);
  blocked = false;
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message,
            "requests with 25 prompt tokens wait, and there is room for 40; try again later");
}

TEST(RemoteEngine, ACancelledRequestEnds) {
  FakeEngine fake;
  Group group(fake);
  const auto engine = group.Start().value();
  Events events(*engine);
  const RequestId id = engine->Submit(Ask(1'000'000)).value();
  ASSERT_TRUE(Until([&] { return fake.steps > 0; }));
  engine->Cancel(id + 5);  // unknown
  engine->Cancel(id);
  ASSERT_TRUE(events.Run(1));
  EXPECT_EQ(events.last[7].finish, FinishReason::kCancelled);
  EXPECT_EQ(events.last[7].request, id);
}

// Rank 0 waits for a front that does not take its events, and none is lost.
TEST(RemoteEngine, AFrontThatIsBehindStopsTheRank) {
  FakeEngine fake;
  fake.text = std::string(10'000, 'x');
  Group group(fake);
  const auto engine = group.Start().value();
  Events events(*engine);
  constexpr int64_t kTokens = 2000;
  ASSERT_TRUE(engine->Submit(Ask(kTokens)));
  int64_t before = -1;
  ASSERT_TRUE(Until([&] {  // no step for a while
    std::this_thread::sleep_for(milliseconds(200));
    return fake.steps > 0 && std::exchange(before, fake.steps) == fake.steps;
  }));
  EXPECT_LT(fake.steps, 120);  // of 10 kB, within 1 MiB
  ASSERT_TRUE(events.Run(1));
  EXPECT_EQ(events.texts[std::pair(7, 0)].size(), kTokens * 10'000);
}

TEST(RemoteEngine, EventsThatDoNotFitIntoOneMessage) {
  FakeEngine fake;
  fake.text = std::string(100'000, 'x');
  Group group(fake);
  group.options.control.most_payload = 250'000;
  const auto engine = group.Start().value();
  Events events(*engine);
  Request request = Ask(2);
  request.n = 7;
  ASSERT_TRUE(engine->Submit(request));
  ASSERT_TRUE(events.Run(7));
  for (int choice = 0; choice < 7; ++choice)
    EXPECT_EQ(events.texts[std::pair(7, choice)].size(), 200'000) << choice;

  fake.text = std::string(300'000, 'x');  // and this not even alone
  ASSERT_TRUE(engine->Submit(Ask(2, 9)));
  ASSERT_TRUE(events.Run(8));
  EXPECT_EQ(events.last[9].error.code, Code::kExhausted);
  EXPECT_NE(events.last[9].error.message.find("expected at most 250000"), std::string::npos);
  ASSERT_TRUE(engine->Submit(Ask(1, 10)));
  ASSERT_TRUE(events.Run(9));
  EXPECT_TRUE(events.last.contains(10)) << "an answer has ended twice";
}

TEST(RemoteEngine, PrefixesAreSavedByTheRank) {
  FakeEngine fake;
  int saves = 0;
  fake.on_save = [&]() -> Status {
    if (++saves == 1) return {};
    return Fail(Code::kUnavailable, "the disk is full");
  };
  Group group(fake);
  const auto engine = group.Start().value();
  EXPECT_TRUE(engine->SavePrefixes());
  const Status failed = engine->SavePrefixes();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "the disk is full");
}

TEST(RemoteEngine, AStepThatFailsEndsTheGroup) {
  FakeEngine fake;
  std::atomic<bool> fails = false;
  fake.on_step = [&]() -> Status { return fails ? Status(Exhausted("no memory")) : Status(); };
  Group group(fake);
  const auto engine = group.Start().value();
  Events events(*engine);
  ASSERT_TRUE(engine->Submit(Ask(1'000'000)));
  fails = true;
  const Status failed = events.Run(1);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::kExhausted);
  EXPECT_EQ(failed.error().message, "rank 0: no memory");
  EXPECT_EQ(engine->Submit(Ask(1)).error().message, "rank 0: no memory");
  EXPECT_FALSE(engine->SavePrefixes());
}

TEST(RemoteEngine, ARankThatEndsIsNamed) {
  FakeEngine fake;
  Group group(fake);
  std::atomic<bool> ends = false;
  group.rank = [&, serve = group.rank](FrontLink& link, int number) {
    if (number == 0) return serve(link, 0);
    Until([&] { return ends.load(); });
  };
  const auto engine = group.Start().value();
  Events events(*engine);
  ASSERT_TRUE(engine->Submit(Ask(1'000'000)));
  ends = true;
  const Status failed = events.Run(1);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::kUnavailable);
  EXPECT_EQ(failed.error().message, "rank 1 has ended");
}

TEST(RemoteEngine, AStepThatIsStuckFails) {
  FakeEngine fake;
  std::atomic<bool> stuck = true;
  fake.on_step = [&] {
    Until([&] { return !stuck.load() || fake.requests().empty(); });
    return Status();
  };
  Group group(fake);
  group.options.step_timeout = 2.5;
  const auto engine = group.Start().value();
  Events events(*engine);
  const auto idle_end = Clock::now() + seconds(3);  // without requests, it reports every second
  while (Clock::now() < idle_end) {
    EXPECT_TRUE(engine->Step());
    engine->WaitForWork(Clock::now() + milliseconds(10));
  }
  ASSERT_TRUE(engine->Submit(Ask(1)));
  const Status failed = events.Run(1);
  stuck = false;
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("--step-timeout 2.5 s"), std::string::npos);
}

// Whatever else is seen at the same time.
TEST(RemoteEngine, ARankThatCannotLoadFailsTheStart) {
  FakeEngine fake;
  Group group(fake);
  std::atomic<int> joined = 0;
  group.rank = [&](FrontLink& link, int number) {
    ++joined;
    Until([&] { return joined == 2; });
    if (number == 1) link.Fail({Code::kCorrupt, "model.safetensors: no"});
  };
  const auto engine = group.Start();
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, Code::kCorrupt);
  EXPECT_EQ(engine.error().message, "rank 1: model.safetensors: no");
}

TEST(RemoteEngine, RanksThatDoNotJoinFailTheStart) {
  FakeEngine fake;
  Group group(fake);
  group.options.joining = milliseconds(300);
  const auto start = [&](const FrontAddress& front) -> Result<std::unique_ptr<RankProcesses>> {
    return std::make_unique<ThreadRanks>(
        front, 2, 1, kControl, [](FrontLink&, int) { std::this_thread::sleep_for(seconds(1)); });
  };
  const auto engine = RemoteEngine::Start(group.options, Tiny(), start, {});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().message,
            "of 2 ranks, 1 did not join before the deadline; look there for the cause");
}

TEST(RemoteEngine, AStopEndsTheStart) {
  FakeEngine fake;
  std::stop_source stop;
  Group group(fake);
  group.rank = [&](FrontLink&, int) { Until([&] { return stop.stop_requested(); }); };
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(50));
    stop.request_stop();
  });
  const auto engine = group.Start(stop.get_token());
  other.join();
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, Code::kCancelled);
}

TEST(RemoteEngine, TheSocketIsThereOnlyUntilRanksHaveJoined) {
  FakeEngine fake;
  Group group(fake);
  const auto engine = group.Start().value();
  const std::filesystem::path path = group.address.substr(std::string("unix:").size());
  EXPECT_TRUE(path.is_absolute());
  EXPECT_FALSE(std::filesystem::exists(path.parent_path()));
}

// A rank that is alone is "the engine's process".
TEST(RemoteEngine, OneProcessOverASocketPair) {
  FakeEngine fake;
  Group group(fake);
  group.options.ranks = 1;
  const auto engine = group.Start().value();
  EXPECT_EQ(group.address, "fd:3");
  Events events(*engine);
  ASSERT_TRUE(engine->Submit(Ask(7)));
  EXPECT_TRUE(events.Run(1));
  EXPECT_EQ(events.last.begin()->second.generated_tokens, 7);
  EXPECT_TRUE(engine->SavePrefixes());
}

TEST(RemoteEngine, OneProcessThatFailsIsNamed) {
  FakeEngine fake;
  std::atomic<bool> fails = false;
  fake.on_step = [&]() -> Status { return fails ? Status(Exhausted("no memory")) : Status(); };
  Group group(fake);
  group.options.ranks = 1;
  const auto engine = group.Start().value();
  Events events(*engine);
  ASSERT_TRUE(engine->Submit(Ask(1'000'000)));
  fails = true;
  EXPECT_EQ(events.Run(1).error().message, "the engine's process: no memory");
}

TEST(RemoteEngine, OneProcessThatDoesNotJoinFailsTheStart) {
  FakeEngine fake;
  Group group(fake);
  group.options.ranks = 1;
  group.options.joining = milliseconds(300);
  const auto start = [&](const FrontAddress& front) -> Result<std::unique_ptr<RankProcesses>> {
    return std::make_unique<ThreadRanks>(front, 1, 0, kControl, [](FrontLink&, int) {});
  };
  const auto engine = RemoteEngine::Start(group.options, Tiny(), start, {});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().message, "the engine's process has ended: exit code 0");
}

}  // namespace
}  // namespace latte::remote_engine_test
