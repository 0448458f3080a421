// The life of a server: loading, ready, draining, the ways in which it ends. Every server runs in a
// process of its own, because some of them end it, with an engine that the test steers.
#include "src/serve/server.h"

#include <atomic>
#include <functional>
#include <utility>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "src/base/check.h"
#include "tests/support/sanitizers.h"
#include "tests/support/serve/server_process.h"

namespace latte::server_test {
namespace {

using testing_support::Gate;
using testing_support::RawClient;
using testing_support::RawResponse;
using testing_support::ServerProcess;
using testing_support::SleepUntil;
using testing_support::Talking;
using testing_support::TalkingEngine;

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
    engine->on_submit = [left = 1, &asked]() mutable {
      if (left-- == 0) asked.Open();
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
