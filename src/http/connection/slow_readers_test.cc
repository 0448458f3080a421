// Clients that do not read what they asked for: each has a bound, and so have all together.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "tests/support/http_server_run.h"
#include "tests/support/raw_client.h"

namespace latte::slow_readers_test {
namespace {

using testing_support::HttpServerRun;
using testing_support::RawClient;
using testing_support::TestHandler;

// A client that reads nothing of a whole answer, and one that reads a byte now and then.
TEST(HttpSlowReaders, AreDropped) {
  HttpServerOptions options = HttpServerRun::Patient();
  options.stall_timeout = std::chrono::seconds(1);
  HttpServerRun run(options);
  RawClient still = RawClient::Tcp(run.port(), 4096);
  still.Get("/large");
  RawClient slow = RawClient::Tcp(run.port(), 4096);
  slow.Get("/large");
  std::string text;
  for (int i = 0; run.stats().dropped_slow < 2; ++i) {
    ASSERT_LT(i, 6000);
    char byte = 0;
    ::recv(slow.fd(), &byte, 1, MSG_DONTWAIT);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  RawClient other = RawClient::Tcp(run.port());
  other.Get("/");
  EXPECT_EQ(other.Receive().status, 200);
  EXPECT_EQ(run.stats().dropped_slow, 2);
}

// The bytes that clients do not read have a bound together. The one that has been behind longest
// goes first; a client that reads gets its answer, also one that is longer than the bound.
TEST(HttpSlowReaders, HaveABoundTogether) {
  HttpServerOptions options = HttpServerRun::Patient();
  options.max_answers_bytes = TestHandler::kLargeBytes + (1 << 20);
  HttpServerRun run(options);
  RawClient first = RawClient::Tcp(run.port(), 4096);
  first.Get("/large");
  run.WaitFor([](const HttpServerStats& stats) { return stats.unsent_bytes > 0; });
  RawClient second = RawClient::Tcp(run.port());
  second.Get("/large");
  run.WaitFor([](const HttpServerStats& stats) { return stats.dropped_slow == 1; });
  EXPECT_LE(run.stats().unsent_bytes, options.max_answers_bytes);
  EXPECT_EQ(first.Receive().status, 0);
  RawClient stream = RawClient::Tcp(run.port());
  stream.Get("/hold");
  const auto exchange = run.handler.Held();
  run.Call([&] { exchange->Begin({.content_type = "text/event-stream"}); });
  EXPECT_EQ(second.Receive().body.size(), TestHandler::kLargeBytes);
  run.Call([&] { exchange->End(); });
  EXPECT_EQ(stream.Receive().status, 200);
  EXPECT_EQ(run.stats().dropped_slow, 1);
  run.WaitFor([](const HttpServerStats& stats) { return stats.unsent_bytes == 0; });
}

TEST(HttpSlowReaders, ASingleAnswerMayExceedTheBound) {
  HttpServerOptions options = HttpServerRun::Patient();
  options.max_answers_bytes = 1 << 20;
  HttpServerRun run(options);
  RawClient client = RawClient::Tcp(run.port());
  client.Get("/large");
  EXPECT_EQ(client.Receive().body, std::string(TestHandler::kLargeBytes, 'x'));
  EXPECT_EQ(run.stats().dropped_slow, 0);
}

// Many streams and many whole answers, none of which is read.
TEST(HttpSlowReaders, ManyHaveABoundTogether) {
  constexpr int kClients = 40;
  HttpServerOptions options = HttpServerRun::Patient();
  options.max_answers_bytes = 20 << 20;
  HttpServerRun run(options);
  std::vector<RawClient> clients;
  std::vector<std::shared_ptr<HttpExchange>> streams;
  const std::string piece(1 << 20, 'x');
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(RawClient::Tcp(run.port(), 4096));
    clients.back().Get(i % 2 == 0 ? "/large" : "/hold");
    if (i % 2 == 0) continue;
    streams.push_back(run.handler.Held());
    run.Call([&] {
      streams.back()->Begin({.content_type = "text/event-stream"});
      for (int j = 0; j < 3; ++j) streams.back()->Write(piece);
    });
  }
  // The bound has room for two answers and two streams.
  run.WaitFor([&](const HttpServerStats& stats) {
    return stats.dropped_slow >= kClients - 4 && stats.unsent_bytes <= options.max_answers_bytes;
  });
  RawClient other = RawClient::Tcp(run.port());
  other.Get("/large");
  EXPECT_EQ(other.Receive().body.size(), TestHandler::kLargeBytes);
  clients.clear();
  run.WaitFor([](const HttpServerStats& stats) {
    return stats.unsent_bytes == 0 && stats.connections <= 1;
  });
}

}  // namespace
}  // namespace latte::slow_readers_test
