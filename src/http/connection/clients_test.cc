// Clients that leave, close one direction, or do not read.
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/http/server.h"
#include "tests/support/http_server_run.h"
#include "tests/support/raw_client.h"
#include "tests/support/scratch_dir.h"

namespace latte::clients_test {
namespace {

using testing_support::HttpServerRun;
using testing_support::RawClient;
using testing_support::RawResponse;
using testing_support::ScratchDir;
using testing_support::TestHandler;

const HttpResponse kEvents = {.content_type = "text/event-stream"};

// Every test of this kind runs over TCP and over a Unix socket.
class HttpClients : public testing::TestWithParam<bool> {
 protected:
  HttpClients() {
    HttpServerOptions options = HttpServerRun::Patient();
    if (GetParam()) {
      options.host = "";
      options.unix_socket = path_;
    }
    run_ = std::make_unique<HttpServerRun>(options);
  }
  RawClient Connect() { return GetParam() ? RawClient::Unix(path_) : RawClient::Tcp(run_->port()); }

  ScratchDir dir_;
  std::string path_ = dir_.File("socket");
  std::unique_ptr<HttpServerRun> run_;
};
INSTANTIATE_TEST_SUITE_P(Sockets, HttpClients, testing::Bool(),
                         [](const auto& test) { return test.param ? "Unix" : "Tcp"; });

TEST_P(HttpClients, AStreamArrivesPieceByPiece) {
  RawClient client = Connect();
  client.Get("/hold");
  const auto exchange = run_->handler.Held();
  run_->Call([&] { exchange->Begin(kEvents); });
  std::string text;
  ASSERT_TRUE(client.TakeUntil("\r\n\r\n", &text));
  EXPECT_NE(text.find("Transfer-Encoding: chunked\r\n"), std::string::npos);
  EXPECT_EQ(text.find("Content-Length"), std::string::npos);
  for (const std::string piece : {"data: 1\n\n", "data: 22\n\n"}) {
    run_->Call([&] { exchange->Write(piece); });
    ASSERT_TRUE(client.TakeUntil(piece + "\r\n", &text));
    EXPECT_EQ(text, fmt::format("{:x}\r\n{}\r\n", piece.size(), piece));
  }
  run_->Call([&] { exchange->End(); });
  ASSERT_TRUE(client.TakeUntil("0\r\n\r\n", &text));
  client.Get("/");
  EXPECT_EQ(client.Receive().status, 200);
  EXPECT_EQ(run_->handler.gone(), 0);
}

TEST_P(HttpClients, AStreamForHttp10EndsWithTheConnection) {
  RawClient client = Connect();
  client.Send("GET /hold HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const auto exchange = run_->handler.Held();
  run_->Call([&] {
    exchange->Begin(kEvents);
    exchange->Write("one ");
    exchange->Write("two");
    exchange->End();
  });
  EXPECT_EQ(client.Receive().body, "one two");
}

// H18, H20: a client that ends is noticed while its answer is made, before any of it is written.
TEST_P(HttpClients, LeavesBeforeTheAnswer) {
  RawClient client = Connect();
  client.Get("/hold");
  const auto exchange = run_->handler.Held();
  client.Close();
  run_->handler.WaitForGone(1);
  run_->Call([&] {
    EXPECT_TRUE(exchange->gone());
    exchange->Begin(kEvents);
    exchange->Write("unheard");
    exchange->End();
    exchange->Respond({});
  });
  EXPECT_EQ(run_->stats().connections, 0);
}

TEST_P(HttpClients, LeavesMidStream) {
  RawClient client = Connect();
  client.Get("/hold");
  const auto exchange = run_->handler.Held();
  run_->Call([&] {
    exchange->Begin(kEvents);
    exchange->Write("data: 1\n\n");
  });
  std::string text;
  ASSERT_TRUE(client.TakeUntil("data: 1", &text));
  client.Close();
  run_->handler.WaitForGone(1);
  run_->Call([&] { EXPECT_TRUE(exchange->gone()); });
}

TEST_P(HttpClients, LeavesWithAReset) {
  for (const bool begun : {false, true}) {
    RawClient client = Connect();
    client.Get("/hold");
    const auto exchange = run_->handler.Held();
    if (begun) run_->Call([&] { exchange->Begin({.content_type = "text/plain"}); });
    client.Reset();
    run_->handler.WaitForGone(begun ? 2 : 1);
  }
}

// Also a client that has sent so much ahead that the server has stopped reading.
TEST_P(HttpClients, LeavesWithRequestsAhead) {
  RawClient client = Connect();
  client.Get("/hold");
  const auto exchange = run_->handler.Held();
  client.Send(std::string(100'000, 'x'));
  client.Reset();
  run_->handler.WaitForGone(1);
}

TEST_P(HttpClients, LeavesInsideARequest) {
  for (const std::string_view part :
       {"GET / HT", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab"}) {
    RawClient client = Connect();
    client.Send(part);
    client.ShutdownWrite();
    EXPECT_EQ(client.ReceiveAll(), "");
  }
}

// H17: the client closes its direction, and reads. An interim response or a comment asks whether it
// is still there.
TEST_P(HttpClients, HalfClosedGetsItsAnswer) {
  RawClient client = Connect();
  client.Get("/hold");
  const auto exchange = run_->handler.Held();
  client.ShutdownWrite();
  std::string interim;
  ASSERT_TRUE(client.TakeUntil("\r\n\r\n", &interim));
  EXPECT_EQ(interim, "HTTP/1.1 100 Continue\r\n\r\n");
  run_->Call([&] {
    EXPECT_FALSE(exchange->gone());
    exchange->Respond({.body = "answer"});
  });
  const RawResponse response = client.Receive();
  EXPECT_EQ(response.body, "answer");
  EXPECT_NE(response.head.find("Connection: close\r\n"), std::string::npos);
  EXPECT_EQ(client.ReceiveAll(), "");
}

TEST_P(HttpClients, HalfClosedGetsItsStream) {
  RawClient client = Connect();
  client.Get("/hold");
  const auto exchange = run_->handler.Held();
  run_->Call([&] { exchange->Begin(kEvents); });
  client.ShutdownWrite();
  std::string text;
  ASSERT_TRUE(client.TakeUntil("3\r\n:\n\n\r\n", &text));
  run_->Call([&] {
    exchange->Write("data: 1\n\n");
    exchange->End();
  });
  EXPECT_EQ(client.ReceiveAll(), "9\r\ndata: 1\n\n\r\n0\r\n\r\n");
  EXPECT_EQ(run_->handler.gone(), 0);
}

TEST_P(HttpClients, HalfClosedGetsAllItsAnswers) {
  RawClient client = Connect();
  for (int i = 0; i < 20; ++i) client.Get(fmt::format("/{}", i));
  client.ShutdownWrite();
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(client.Receive().body.starts_with(fmt::format("GET /{}?", i))) << i;
  EXPECT_EQ(client.ReceiveAll(), "");
}

// A half-closed client that leaves later.
TEST_P(HttpClients, HalfClosedThenGone) {
  RawClient client = Connect();
  client.Get("/hold");
  const auto exchange = run_->handler.Held();
  client.ShutdownWrite();
  client.Close();
  run_->handler.WaitForGone(1);
}

// H19. Another stream goes on as if nothing was.
TEST_P(HttpClients, AReaderTooFarBehindIsDropped) {
  RawClient lazy = Connect();
  lazy.Get("/hold");
  const auto unread = run_->handler.Held();
  RawClient other = Connect();
  other.Get("/hold");
  const auto exchange = run_->handler.Held();
  run_->Call([&] {
    unread->Begin(kEvents);
    exchange->Begin(kEvents);
  });
  std::string text;
  const std::string piece(1 << 20, 'x');
  for (int i = 0; run_->handler.gone() == 0; ++i) {
    ASSERT_LT(i, 100);
    run_->Call([&] {
      unread->Write(piece);
      exchange->Write(fmt::format("data: {}\n\n", i));
    });
    ASSERT_TRUE(other.TakeUntil(fmt::format("data: {}\n\n", i), &text));
  }
  run_->Call([&] {
    EXPECT_TRUE(unread->gone());
    EXPECT_FALSE(exchange->gone());
  });
  EXPECT_EQ(run_->stats().dropped_slow, 1);
  run_->WaitFor([](const HttpServerStats& stats) { return stats.unsent_bytes == 0; });
}

// The unsent bytes of a whole answer have no bound of their own.
TEST_P(HttpClients, ALargeAnswerArrives) {
  RawClient client = Connect();
  client.Get("/large");
  EXPECT_EQ(client.Receive().body, std::string(TestHandler::kLargeBytes, 'x'));
  client.Get("/");
  EXPECT_EQ(client.Receive().status, 200);
  run_->WaitFor([](const HttpServerStats& stats) { return stats.unsent_bytes == 0; });
}

// All pieces of one turn are sent in order and together.
TEST_P(HttpClients, ManySmallPieces) {
  RawClient client = Connect();
  client.Get("/hold");
  const auto exchange = run_->handler.Held();
  std::string all;
  run_->Call([&] {
    exchange->Begin(kEvents);
    for (int i = 0; i < 10'000; ++i) {
      all += fmt::format("data: {}\n\n", i);
      exchange->Write(fmt::format("data: {}\n\n", i));
    }
    exchange->End();
  });
  EXPECT_EQ(client.Receive().body, all);
}

TEST_P(HttpClients, ExchangesAreReleasedAnywhere) {
  RawClient client = Connect();
  client.Get("/hold");
  auto exchange = run_->handler.Held();
  exchange.reset();  // on this thread, without an answer
  EXPECT_EQ(client.ReceiveAll(), "");

  RawClient last = Connect();
  last.Get("/hold");
  exchange = run_->handler.Held();
  run_->Destroy();
  EXPECT_TRUE(exchange->gone());
  exchange->Respond({});
}

// A second answer, and writes after the end, belong to no later request.
TEST_P(HttpClients, AnExchangeEndsOnce) {
  RawClient client = Connect();
  client.Get("/hold");
  const auto exchange = run_->handler.Held();
  run_->Call([&] {
    exchange->Respond({.body = "one"});
    exchange->Respond({.body = "two"});
    exchange->Write("three");
  });
  EXPECT_EQ(client.Receive().body, "one");
  client.Get("/hold");
  const auto next = run_->handler.Held();
  run_->Call([&] {
    exchange->Respond({.body = "four"});
    next->Respond({.body = "five"});
  });
  EXPECT_EQ(client.Receive().body, "five");
  EXPECT_EQ(run_->handler.gone(), 0);
}

// H22: nothing is left of clients that come and go in whatever way.
TEST(HttpChurn, NothingIsLeft) {
  HttpServerRun run;
  for (int i = 0; i < 3000; ++i) {
    RawClient client = RawClient::Tcp(run.port());
    ASSERT_TRUE(client.connected());
    if (i % 3 == 1) client.Get("/");
    if (i % 2 == 1) client.Reset();
  }
  run.WaitFor([](const HttpServerStats& stats) {
    return stats.connections == 0 && stats.accepted >= 1500;
  });
  RawClient client = RawClient::Tcp(run.port());
  client.Get("/");
  EXPECT_EQ(client.Receive().status, 200);
  run.WaitFor([](const HttpServerStats& stats) { return stats.unsent_bytes == 0; });
}

}  // namespace
}  // namespace latte::clients_test
