// The life of a server: loading, ready, draining, the ways in which it ends. Every server runs in a
// process of its own, because some of them end it, with an engine that the test steers.
#include "src/serve/server.h"

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/check.h"
#include "tests/support/raw_client.h"
#include "tests/support/sanitizers.h"

namespace latte::server_test {
namespace {

using testing_support::RawClient;
using testing_support::RawResponse;

// Answers each request with max_tokens tokens, one per step. The text of token i is `text(i)`.
class TalkingEngine : public Engine {
 public:
  std::function<std::string(int64_t)> text = [](int64_t) { return std::string(" a"); };
  std::function<Status()> on_step = [] { return Status(); };

  Result<RequestId> Submit(Request request) override {
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
    generated_.push_back(0);
    changed_.notify_all();
    return requests_.size();
  }
  void Cancel(RequestId id) override {
    const std::lock_guard lock(mutex_);
    generated_[id - 1] = requests_[id - 1].stop.max_tokens;
  }
  void SetEventSink(EventSink sink) override { sink_ = std::move(sink); }
  Status Step() override {
    std::vector<TokenEvent> events;
    {
      const std::lock_guard lock(mutex_);
      if (!HasWork()) return {};
    }
    LATTE_RETURN_IF_ERROR(on_step());
    {
      const std::lock_guard lock(mutex_);
      for (size_t i = 0; i < requests_.size(); ++i)
        if (generated_[i] < requests_[i].stop.max_tokens) events.push_back(Next(i));
    }
    if (!events.empty()) sink_(events);
    return {};
  }
  bool WaitForWork(std::chrono::steady_clock::time_point deadline) override {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline, [this] { return woken_ || HasWork(); });
    woken_ = false;
    return HasWork();
  }
  void Wake() override {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }
  Status SavePrefixes() override { return {}; }
  EngineStats Stats() const override { return {}; }
  const EngineOptions& options() const override { return options_; }

 private:
  bool HasWork() const {
    for (size_t i = 0; i < requests_.size(); ++i)
      if (generated_[i] < requests_[i].stop.max_tokens) return true;
    return false;
  }
  TokenEvent Next(size_t i) {
    TokenEvent event;
    event.request = i + 1;
    event.user_data = requests_[i].user_data;
    event.token = 5;
    event.text = text(generated_[i]);
    event.generated_tokens = ++generated_[i];
    if (generated_[i] == requests_[i].stop.max_tokens) event.finish = FinishReason::kLength;
    return event;
  }

  EventSink sink_;
  EngineOptions options_ = {.max_tokens = 4096};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  std::vector<Request> requests_;
  std::vector<int64_t> generated_;
};

const OpenAiModel& Tiny() {
  static const OpenAiModel model =
      OpenAiModel::Create("tiny", ModelFiles::Load("tiny").value()).value();
  return model;
}

// Waits in steps, so that a process that lost its parent ends.
void SleepUntil(const std::function<bool()>& condition) {
  for (int i = 0; !condition(); ++i) {
    LATTE_CHECK(i < 6000, "the test waits too long");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// A file that the test makes and the server waits for.
class Gate {
 public:
  Gate() : path_(fmt::format("{}/gate.{}.{}", testing::TempDir(), ::getpid(), ++made_)) {}
  ~Gate() { std::remove(path_.c_str()); }
  void Open() const { std::fclose(std::fopen(path_.c_str(), "w")); }
  void Wait() const {
    SleepUntil([this] { return ::access(path_.c_str(), F_OK) == 0; });
  }

 private:
  static inline int made_ = 0;
  std::string path_;
};

class ServerProcess {
 public:
  // end_loading: ServeParts::end_loading, of a server that starts its engine again; empty: it does not.
  ServerProcess(const ServeOptions& options, const EngineLoader& load,
                const std::function<void()>& end_loading = {}) {
    Tiny();
    int ends[2];
    LATTE_CHECK(::pipe(ends) == 0, "no pipe");
    child_ = ::fork();
    LATTE_CHECK(child_ >= 0, "no process");
    if (child_ == 0) Run(options, load, end_loading, ends[1]);
    ::close(ends[1]);
    said_ = ::fdopen(ends[0], "r");
    const std::string line = Line();
    port_ = std::atoi(line.substr(line.rfind(':') + 1).c_str());
  }
  ~ServerProcess() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    std::fclose(said_);
  }

  // The next line that the server says; empty if it has ended.
  std::string Line() {
    char line[1000];
    return std::fgets(line, sizeof line, said_) == nullptr ? "" : line;
  }
  void WaitUntilReady() {
    std::string line;
    do line = Line();
    while (!line.empty() && !line.starts_with("ready"));
    ASSERT_FALSE(line.empty());
  }
  void Signal() const { ::kill(child_, SIGTERM); }
  // Waits for the end: the exit status, or −1 for a signal.
  int ExitStatus() {
    int status = 0;
    ::waitpid(std::exchange(child_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  RawClient Connect() const { return RawClient::Tcp(port_); }
  RawResponse Get(std::string_view path) const {
    RawClient client = Connect();
    Send(client, fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", path));
    return client.Receive();
  }
  RawResponse Complete(int max_tokens) const {
    RawClient client = Connect();
    Ask(client, max_tokens, /*stream=*/false);
    return client.Receive();
  }
  static void Ask(RawClient& client, int max_tokens, bool stream) {
    const std::string body =
        fmt::format(R"({{"prompt": "Once", "max_tokens": {}, "stream": {}}})", max_tokens, stream);
    Send(client, fmt::format("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                             "application/json\r\nContent-Length: {}\r\n\r\n{}",
                             body.size(), body));
  }

 private:
  static void Send(RawClient& client, const std::string& bytes) { client.Send(bytes); }
  [[noreturn]] static void Run(ServeOptions options, const EngineLoader& load,
                               const std::function<void()>& end_loading, int said) {
    options.port = 0;
    const ServeParts parts{.options = options,
                           .names = {"tiny"},
                           .version = "1",
                           .model = &Tiny(),
                           .load = load,
                           .restarts = static_cast<bool>(end_loading),
                           .end_loading = end_loading,
                           .say = [said](const std::string& text) {
                             const std::string line = text + "\n";
                             if (::write(said, line.data(), line.size()) < 0) std::_Exit(99);
                           }};
    const Status status = Serve(parts);
    std::_Exit(status ? 0 : ExitCode(status.error().code));
  }

  pid_t child_ = -1;
  FILE* said_ = nullptr;
  int port_ = 0;
};

Result<std::unique_ptr<Engine>> Talking() { return std::make_unique<TalkingEngine>(); }

TEST(Server, WhileTheModelIsLoaded) {
  const Gate loaded;
  ServerProcess server({}, [&] {
    loaded.Wait();
    return Talking();
  });
  EXPECT_EQ(server.Get("/health").status, 200);
  EXPECT_EQ(server.Get("/version").status, 200);
  EXPECT_EQ(server.Get("/metrics").status, 200);
  EXPECT_EQ(server.Get("/").status, 200);
  EXPECT_EQ(server.Get("/page/main.js").status, 200);
  EXPECT_EQ(server.Get("/nothing").status, 404);
  for (const char* path : {"/ready", "/v1/models", "/v1/models/tiny", "/props"}) {
    const RawResponse refused = server.Get(path);
    EXPECT_EQ(refused.status, 503) << path;
    EXPECT_NE(refused.head.find("\r\nRetry-After: "), std::string::npos) << path;
    EXPECT_NE(refused.body.find("being loaded"), std::string::npos) << refused.body;
  }
  EXPECT_EQ(server.Complete(1).status, 503);

  loaded.Open();
  server.WaitUntilReady();
  EXPECT_EQ(server.Get("/ready").status, 200);
  EXPECT_EQ(server.Get("/v1/models").status, 200);
  EXPECT_EQ(server.Complete(1).status, 200);
  server.Signal();
  EXPECT_EQ(server.ExitStatus(), 0);
}

TEST(Server, ASignalWhileLoadingEndsTheProcess) {
  const Gate never;
  ServerProcess server({}, [&] {
    never.Wait();
    return Talking();
  });
  EXPECT_EQ(server.Get("/health").status, 200);
  server.Signal();
  EXPECT_EQ(server.ExitStatus(), 0);
}

TEST(Server, AModelThatCannotBeLoadedEndsIt) {
  const Gate failing;
  ServerProcess server({}, [&]() -> Result<std::unique_ptr<Engine>> {
    failing.Wait();
    return Corrupt("model.safetensors: no");
  });
  failing.Open();
  EXPECT_EQ(server.ExitStatus(), ExitCode(Code::kCorrupt));
}

// Runs `steps` steps, then waits for `gate` once.
EngineLoader StopsAt(int64_t steps, const Gate& gate) {
  return [steps, &gate] {
    auto engine = std::make_unique<TalkingEngine>();
    engine->on_step = [left = steps, &gate]() mutable {
      if (left-- == 0) gate.Wait();
      return Status();
    };
    return engine;
  };
}

TEST(Server, DrainsAfterASignal) {
  const Gate drained;
  ServerProcess server({}, StopsAt(3, drained));
  server.WaitUntilReady();
  RawClient kept = server.Connect();
  kept.Send("GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(kept.Receive().status, 200);
  RawClient other = server.Connect();
  RawClient stream = server.Connect();
  ServerProcess::Ask(stream, 20, /*stream=*/true);
  std::string events;
  ASSERT_TRUE(stream.TakeUntil("\"text\":\" a\"", &events));

  server.Signal();
  SleepUntil([&] { return server.Get("/ready").status == 503; });
  EXPECT_EQ(server.Get("/health").status, 200);
  EXPECT_EQ(server.Get("/requests").status, 200);
  EXPECT_EQ(server.Get("/v1/models").status, 503);
  for (RawClient* client : {&kept, &other}) {
    ServerProcess::Ask(*client, 1, /*stream=*/false);
    const RawResponse refused = client->Receive();
    EXPECT_EQ(refused.status, 503);
    EXPECT_NE(refused.head.find("\r\nRetry-After: "), std::string::npos);
    EXPECT_NE(refused.body.find("shutting down"), std::string::npos);
  }

  drained.Open();
  const std::string rest = stream.ReceiveAll();
  EXPECT_NE(rest.find("\"finish_reason\":\"length\""), std::string::npos);
  EXPECT_NE(rest.find("data: [DONE]"), std::string::npos);
  EXPECT_EQ(server.ExitStatus(), 0);
}

TEST(Server, AStepThatIsStuckEndsTheProcess) {
  const Gate never;
  ServerProcess server({.step_timeout = 0.5}, StopsAt(1, never));
  server.WaitUntilReady();
  RawClient stream = server.Connect();
  ServerProcess::Ask(stream, 20, /*stream=*/true);
  const std::string events = stream.ReceiveAll();
  EXPECT_NE(events.find("counts as stuck"), std::string::npos) << events;
  EXPECT_NE(events.find("data: [DONE]"), std::string::npos);
  EXPECT_EQ(server.ExitStatus(), ExitCode(Code::kUnavailable));
}

TEST(Server, AStepThatFailsEndsIt) {
  const Gate asked;
  ServerProcess server({}, [&] {
    auto engine = std::make_unique<TalkingEngine>();
    engine->on_step = [left = 1, &asked]() mutable -> Status {
      if (left-- > 0) return {};
      asked.Wait();
      return Exhausted("no memory");
    };
    return engine;
  });
  server.WaitUntilReady();
  RawClient stream = server.Connect();
  RawClient plain = server.Connect();
  ServerProcess::Ask(stream, 20, /*stream=*/true);
  std::string events;
  ASSERT_TRUE(stream.TakeUntil("\"text\":\" a\"", &events));
  ServerProcess::Ask(plain, 20, /*stream=*/false);
  asked.Open();
  events += stream.ReceiveAll();
  EXPECT_NE(events.find("the engine has failed: no memory"), std::string::npos) << events;
  EXPECT_NE(events.find("data: [DONE]"), std::string::npos);
  EXPECT_EQ(plain.Receive().status, 503);
  EXPECT_EQ(server.ExitStatus(), ExitCode(Code::kExhausted));
}

// An engine whose end takes as long as the test wants.
class EndingEngine final : public TalkingEngine {
 public:
  explicit EndingEngine(const std::function<void()>& at_end) : at_end_(at_end) {}
  ~EndingEngine() override { at_end_(); }

 private:
  std::function<void()> at_end_;
};

// Its second step fails; the engines after it work.
EngineLoader FailsOnce(const std::function<void()>& at_end_of_first,
                       const std::function<void()>& before_second) {
  const auto loads = std::make_shared<int>(0);
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  return [=]() -> Result<std::unique_ptr<Engine>> {
    if (++*loads > 1) {
      LATTE_CHECK(*ended, "two engines at once");
      before_second();
      return Talking();
    }
    auto engine = std::make_unique<EndingEngine>([=] {
      at_end_of_first();
      *ended = true;
    });
    engine->on_step = [left = 1]() mutable -> Status {
      if (left-- == 0) return Fail(Code::kUnavailable, "rank 1 is lost");
      return {};
    };
    return engine;
  };
}

TEST(Server, AnEngineThatFailsIsStartedAgain) {
  const Gate ended;
  const Gate loaded;
  ServerProcess server({}, FailsOnce([&] { ended.Wait(); }, [&] { loaded.Wait(); }), [] {});
  server.WaitUntilReady();
  RawClient stream = server.Connect();
  ServerProcess::Ask(stream, 20, /*stream=*/true);
  std::string events;
  ASSERT_TRUE(stream.TakeUntil("data: [DONE]", &events));
  EXPECT_NE(events.find("the engine has failed: rank 1 is lost"), std::string::npos) << events;
  for (const char* path : {"/ready", "/v1/models"}) {
    const RawResponse refused = server.Get(path);
    EXPECT_EQ(refused.status, 503);
    EXPECT_NE(refused.body.find("rank 1 is lost"), std::string::npos) << refused.body;
  }
  EXPECT_EQ(server.Complete(1).status, 503);
  EXPECT_EQ(server.Get("/health").status, 200);
  EXPECT_NE(server.Get("/metrics").body.find("latte:engine_restarts_total 1\n"), std::string::npos);
  ended.Open();
  loaded.Open();
  SleepUntil([&] { return server.Get("/ready").status == 200; });
  EXPECT_EQ(server.Complete(3).status, 200);
  server.Signal();
  EXPECT_EQ(server.ExitStatus(), 0);
}

TEST(Server, ASignalWhileTheEngineIsStartedAgain) {
  const Gate loading;
  const Gate stopped;
  const auto load = [&] {
    loading.Open();
    stopped.Wait();
  };
  ServerProcess server({}, FailsOnce([] {}, load), [&] { stopped.Open(); });
  server.WaitUntilReady();
  EXPECT_EQ(server.Complete(20).status, 503);
  loading.Wait();
  server.Signal();
  EXPECT_EQ(server.ExitStatus(), 0);
}

TEST(Server, AFirstLoadThatFailsIsNotTriedAgain) {
  ServerProcess server(
      {}, []() -> Result<std::unique_ptr<Engine>> { return Corrupt("no"); }, [] {});
  EXPECT_EQ(server.ExitStatus(), ExitCode(Code::kCorrupt));
}

// The answer to a request is too large to be written as JSON: the request fails, the server lives.
TEST(Server, ALackOfMemoryWhileEventsAreDelivered) {
  if (testing_support::kUnderAsan || testing_support::kUnderTsan)
    GTEST_SKIP() << "sanitizers reserve the whole address space";
  constexpr size_t kTextBytes = 128 << 20;
  ServerProcess server({}, [] {
    auto engine = std::make_unique<TalkingEngine>();
    engine->text = [](int64_t i) {
      return i == 0 ? std::string(" a") : std::string(kTextBytes, '\n');
    };
    // The engine's text and the copy of the event; not the answer's text too.
    const rlimit limit = {.rlim_cur = 3 * kTextBytes, .rlim_max = RLIM_INFINITY};
    LATTE_CHECK(::setrlimit(RLIMIT_DATA, &limit) == 0, "no limit");
    return engine;
  });
  server.WaitUntilReady();
  for (int i = 0; i < 10; ++i) {  // the engine must not wait for events that were lost
    const RawResponse failed = server.Complete(2);
    EXPECT_GE(failed.status, 429) << failed.body.size();
    EXPECT_NE(failed.body.find("out of memory"), std::string::npos) << failed.body.substr(0, 500);
  }
  EXPECT_EQ(server.Complete(1).status, 200);
  server.Signal();
  EXPECT_EQ(server.ExitStatus(), 0);
}

}  // namespace
}  // namespace latte::server_test
