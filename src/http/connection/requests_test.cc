// Requests that the server answers or refuses, over real sockets.
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/http/server.h"
#include "tests/support/http_server_run.h"
#include "tests/support/raw_client.h"

namespace latte::requests_test {
namespace {

using std::chrono::milliseconds;
using testing_support::HttpServerRun;
using testing_support::RawClient;
using testing_support::RawResponse;

bool Has(const RawResponse& response, std::string_view line) {
  return response.head.find(std::string(line) + "\r\n") != std::string::npos;
}

TEST(HttpRequests, OneAfterTheOther) {
  HttpServerRun run;
  RawClient client = RawClient::Tcp(run.port());
  for (int i = 0; i < 3; ++i) {
    client.Send("POST /a?b HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody");
    const RawResponse response = client.Receive();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "POST /a?b\nHost=x\nContent-Length=4\nbody");
    EXPECT_TRUE(Has(response, "Connection: keep-alive"));
    EXPECT_TRUE(Has(response, "Content-Type: application/json"));
    EXPECT_NE(response.head.find("\r\nDate: "), std::string::npos);
    EXPECT_NE(response.head.find(" GMT\r\n"), std::string::npos);
  }
  EXPECT_EQ(run.stats().accepted, 1);
  EXPECT_EQ(run.stats().bad_requests, 0);
}

TEST(HttpRequests, EndOfTheConnectionAsAsked) {
  HttpServerRun run;
  RawClient closing = RawClient::Tcp(run.port());
  closing.Get("/", "Connection: close\r\n");
  EXPECT_TRUE(Has(closing.Receive(), "Connection: close"));
  EXPECT_EQ(closing.ReceiveAll(), "");

  RawClient old = RawClient::Tcp(run.port());
  old.Send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(Has(old.Receive(), "Connection: close"));
  EXPECT_EQ(old.ReceiveAll(), "");

  RawClient kept = RawClient::Tcp(run.port());
  for (int i = 0; i < 2; ++i) {
    kept.Send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_TRUE(Has(kept.Receive(), "Connection: keep-alive"));
  }
}

TEST(HttpRequests, MethodsGoToTheHandler) {
  HttpServerRun run;
  RawClient client = RawClient::Tcp(run.port());
  for (const std::string method : {"TRACE", "PUT", "DELETE", "OPTIONS", "WHATEVER"}) {
    client.Send(method + " / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(client.Receive().body, method + " /?\nHost=x\n");
  }
  client.Send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(Has(client.Receive(/*is_head=*/true), "Content-Length: 15"));
  client.Get("/none");
  const RawResponse none = client.Receive();
  EXPECT_EQ(none.status, 204);
  EXPECT_EQ(none.head.find("Content-Length"), std::string::npos);
  client.Get("/known");
  const RawResponse known = client.Receive();
  EXPECT_EQ(known.status, 304);
  EXPECT_EQ(known.head.find("Content-Length"), std::string::npos);
  client.Get("/");
  EXPECT_EQ(client.Receive().status, 200);
}

// A refusal after a HEAD request has a body again.
TEST(HttpRequests, HeadThenARefusal) {
  HttpServerRun run;
  RawClient client = RawClient::Tcp(run.port());
  client.Send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n\x16");
  client.Receive(/*is_head=*/true);
  EXPECT_EQ(client.Receive().body, "expected an HTTP/1.1 request");
}

// H25.
TEST(HttpRequests, CutAtEveryByte) {
  HttpServerRun run;
  const std::string request =
      "\r\nPOST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
      "chunked\r\n\r\n2\r\nbo\r\n2;e\r\ndy\r\n"
      "0\r\nTrailer: t\r\n\r\n";
  RawClient client = RawClient::Tcp(run.port());
  client.Send(request);
  const std::string body = client.Receive().body;
  EXPECT_EQ(body, "POST /a?\nHost=x\nTransfer-Encoding=chunked\nbody");
  for (size_t cut = 1; cut < request.size(); ++cut) {
    client.Send(request.substr(0, cut));
    run.Call([] {});  // most often, the server has read the first part
    client.Send(request.substr(cut));
    ASSERT_EQ(client.Receive().body, body) << cut;
  }
  for (const char byte : request) client.Send(std::string(1, byte));
  EXPECT_EQ(client.Receive().body, body);
}

// H16.
TEST(HttpRequests, PipelinedAreAnsweredInOrder) {
  HttpServerRun run;
  constexpr int kRequests = 1000;
  RawClient client = RawClient::Tcp(run.port());
  std::thread sender([&] {
    for (int i = 0; i < kRequests; ++i) client.Get(fmt::format("/{}", i));
  });
  for (int i = 0; i < kRequests; ++i)
    ASSERT_TRUE(client.Receive().body.starts_with(fmt::format("GET /{}?\n", i)));
  sender.join();
}

// While an answer is made, the server takes a bounded part of what follows.
TEST(HttpRequests, ReadsABoundedPartAhead) {
  HttpServerRun run;
  RawClient client = RawClient::Tcp(run.port());
  client.Get("/hold");
  const auto exchange = run.handler.Held();
  const timeval most = {0, 300'000};
  ::setsockopt(client.fd(), SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  EXPECT_FALSE(client.Send(std::string(64 << 20, 'x')));
  run.Call([&] { exchange->Respond({.body = "first"}); });
  EXPECT_EQ(client.Receive().body, "first");
}

// H13.
TEST(HttpRequests, ExpectContinue) {
  HttpServerRun run;
  RawClient client = RawClient::Tcp(run.port());
  const std::string fields = "Host: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
  client.Send("POST / HTTP/1.1\r\n" + fields);
  std::string interim;
  ASSERT_TRUE(client.TakeUntil("\r\n\r\n", &interim));
  EXPECT_EQ(interim, "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("body");
  EXPECT_TRUE(client.Receive().body.ends_with("\nbody"));
  // A head that is refused gets its answer instead, and the connection ends.
  client.Send("POST /refused HTTP/1.1\r\n" + fields);
  EXPECT_EQ(client.ReceiveAll().substr(0, 12), "HTTP/1.1 403");
}

TEST(HttpRequests, RefusedHeads) {
  HttpServerRun run;
  RawClient client = RawClient::Tcp(run.port());
  client.Get("/refused");
  EXPECT_EQ(client.Receive().status, 403);
  client.Get("/");  // there was no body to skip
  EXPECT_EQ(client.Receive().status, 200);
}

// H03, H04, H06, H08, H09, H10, H14, H24: the answer, the end of the connection, and nothing else.
TEST(HttpRequests, BadRequests) {
  HttpServerOptions options = HttpServerRun::Patient();
  options.max_body_bytes = 1000;
  HttpServerRun run(options);
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\n";
  const std::vector<std::pair<std::string, int>> cases = {
      {"\x16\x03\x01\x02\x05", 400},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\nHost: x\n\n", 400},
      {post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {post + "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", 415},
      {post + "Content-Length: 1001\r\n\r\n", 413},
      {post + "Content-Length: 18446744073709551616\r\n\r\n", 413},
      {post + "Transfer-Encoding: chunked\r\n\r\n3E9\r\n", 413},
      {post + "Transfer-Encoding: chunked\r\n\r\n-2\r\n", 400},
      {post + "Transfer-Encoding: gzip\r\n\r\n", 501},
      {"GET /" + std::string(100'000, 'x'), 414},
      {post + "X: " + std::string(1 << 20, 'x'), 431},
  };
  for (const auto& [bytes, status] : cases) {
    RawClient client = RawClient::Tcp(run.port());
    client.Send(bytes);
    const RawResponse response = client.Receive();
    EXPECT_EQ(response.status, status) << bytes.substr(0, 100);
    EXPECT_TRUE(Has(response, "Connection: close"));
    EXPECT_TRUE(Has(response, "Content-Type: text/plain"));
    EXPECT_EQ(client.ReceiveAll(), "");
  }
  EXPECT_EQ(run.stats().bad_requests, static_cast<int64_t>(cases.size()));
}

// A client that sends its whole body before it reads still sees why it is refused. R09.
TEST(HttpRequests, ALargeBodyIsRefusedVisibly) {
  HttpServerRun run;
  RawClient client = RawClient::Tcp(run.port());
  client.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n");
  const std::string piece(1 << 20, 'x');
  for (int i = 0; i < 8; ++i) client.Send(piece);
  EXPECT_EQ(client.Receive().status, 413);
}

TEST(HttpRequests, BodiesHaveABoundTogether) {
  HttpServerOptions options = HttpServerRun::Patient();
  options.max_bodies_bytes = 100'000;
  HttpServerRun run(options);
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 80000\r\n\r\n";
  RawClient first = RawClient::Tcp(run.port());
  first.Send(head + std::string(70'000, 'x'));
  RawClient second = RawClient::Tcp(run.port());
  second.Send(head + std::string(70'000, 'x'));
  // Which one comes too late is open, the other one is answered.
  run.WaitFor([](const HttpServerStats& stats) { return stats.bad_requests == 1; });
  first.Send(std::string(10'000, 'x'));
  second.Send(std::string(10'000, 'x'));
  const int statuses = first.Receive().status + second.Receive().status;
  EXPECT_EQ(statuses, 200 + 503);
  RawClient third = RawClient::Tcp(run.port());
  third.Send(head + std::string(80'000, 'x'));
  EXPECT_EQ(third.Receive().status, 200);
}

// A body that waits for a worker takes as much memory as one that arrives.
TEST(HttpRequests, BodiesCountAsLongAsTheyAreKept) {
  HttpServerOptions options = HttpServerRun::Patient();
  options.max_bodies_bytes = 100'000;
  HttpServerRun run(options);
  const std::string body(80'000, 'x');
  const auto post = [&](std::string_view path, std::string_view framing, std::string_view sent) {
    RawClient client = RawClient::Tcp(run.port());
    client.Send(fmt::format("POST {} HTTP/1.1\r\nHost: x\r\n{}\r\n\r\n{}", path, framing, sent));
    return client.Receive();
  };
  constexpr std::string_view kLength = "Content-Length: 80000";
  EXPECT_EQ(post("/keep", kLength, body).body, "kept");
  EXPECT_GE(run.stats().body_bytes, 80'000);
  for (const std::string& chunks : {std::string(), "13880\r\n" + body + "\r\n0\r\n\r\n"}) {
    const RawResponse refused =
        chunks.empty() ? post("/", kLength, body) : post("/", "Transfer-Encoding: chunked", chunks);
    EXPECT_EQ(refused.status, 503);
    EXPECT_NE(refused.body.find("try again later"), std::string::npos);
  }
  EXPECT_EQ(post("/", "Content-Length: 5", "small").status, 200);
  // Copies share it; the last one ends it, on any thread.
  std::vector<CountedBody> kept;
  run.Call([&] { kept = std::exchange(run.handler.kept, {}); });
  CountedBody copy = kept.front();
  kept.clear();
  EXPECT_EQ(copy.text(), body);
  EXPECT_EQ(post("/", kLength, body).status, 503);
  std::thread([last = std::exchange(copy, {})] { EXPECT_EQ(last.size(), 80'000U); }).join();
  EXPECT_EQ(post("/keep", kLength, body).status, 200);
  EXPECT_GE(run.stats().body_bytes, 80'000);
  run.Call([&] { run.handler.kept.clear(); });
  run.WaitFor([](const HttpServerStats& stats) { return stats.body_bytes == 0; });
}

// A body may outlive the server.
TEST(HttpRequests, BodiesAreReleasedAnywhere) {
  HttpServerRun run;
  RawClient client = RawClient::Tcp(run.port());
  client.Send("POST /keep HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody");
  EXPECT_EQ(client.Receive().status, 200);
  const CountedBody body = run.handler.kept.front();
  run.Destroy();
  run.handler.kept.clear();
  EXPECT_EQ(body.text(), "body");
}

// No browser runs the text of a model as a script or shows it as a page.
TEST(HttpRequests, NoAnswerMayBeTakenForAnotherType) {
  HttpServerRun run;
  const auto expect = [](const std::string& head) {
    const std::string field = "\r\nX-Content-Type-Options: nosniff\r\n";
    const size_t at = head.find(field);
    EXPECT_NE(at, std::string::npos) << head;
    EXPECT_EQ(head.find(field, at + 1), std::string::npos) << head;
  };
  for (const char* path : {"/", "/refused", "/none", "/known", "/large"}) {
    RawClient client = RawClient::Tcp(run.port());
    client.Get(path);
    expect(client.Receive().head);
  }
  for (const char* bytes : {"\x16\x03\x01\x02\x05", "GET / HTTP/1.1\r\n\r\n"}) {
    RawClient client = RawClient::Tcp(run.port());
    client.Send(bytes);
    expect(client.Receive().head);
  }
  RawClient head = RawClient::Tcp(run.port());
  head.Send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
  expect(head.Receive(/*is_head=*/true).head);
  RawClient stream = RawClient::Tcp(run.port());
  stream.Get("/hold");
  const auto exchange = run.handler.Held();
  run.Call([&] {
    exchange->Begin({.content_type = "text/event-stream"});
    exchange->End();
  });
  expect(stream.Receive().head);
}

// H01, H02. The waits are short, but only the outcome counts.
TEST(HttpRequests, SlowRequests) {
  HttpServerOptions options = HttpServerRun::Patient();
  options.head_timeout = options.body_timeout = options.idle_timeout = milliseconds(200);
  HttpServerRun run(options);
  RawClient slow_head = RawClient::Tcp(run.port());
  slow_head.Send("GET / HTTP/1.1\r\nHost:");
  RawClient slow_body = RawClient::Tcp(run.port());
  slow_body.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
  RawClient no_last_chunk = RawClient::Tcp(run.port());
  no_last_chunk.Send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
  RawClient silent = RawClient::Tcp(run.port());
  RawClient blank = RawClient::Tcp(run.port());
  blank.Send("\r\n\r\n");
  RawClient idle = RawClient::Tcp(run.port());
  idle.Get("/");
  EXPECT_EQ(idle.Receive().status, 200);
  EXPECT_EQ(slow_head.Receive().status, 408);
  EXPECT_EQ(slow_body.Receive().status, 408);
  EXPECT_EQ(no_last_chunk.Receive().status, 408);
  EXPECT_EQ(silent.ReceiveAll(), "");
  EXPECT_EQ(blank.ReceiveAll(), "");
  EXPECT_EQ(idle.ReceiveAll(), "");
}

// A byte now and then does not keep a head or a body alive.
TEST(HttpRequests, TrickledRequests) {
  HttpServerOptions options = HttpServerRun::Patient();
  options.head_timeout = options.body_timeout = milliseconds(200);
  HttpServerRun run(options);
  RawClient head = RawClient::Tcp(run.port());
  RawClient body = RawClient::Tcp(run.port());
  body.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
  head.Send("GET / HTTP/1.1\r\nX: ");
  for (int i = 0; run.stats().bad_requests < 2; ++i) {
    ASSERT_LT(i, 6000);
    head.Send("x");
    body.Send("x");
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(head.Receive().status, 408);
  EXPECT_EQ(body.Receive().status, 408);
}

TEST(HttpRequests, AHandlerThatLacksMemoryEndsOneConnection) {
  HttpServerRun run;
  RawClient other = RawClient::Tcp(run.port());
  other.Get("/hold");
  const auto exchange = run.handler.Held();
  for (const char* path : {"/throw", "/drop"}) {
    RawClient client = RawClient::Tcp(run.port());
    client.Get(path);
    EXPECT_EQ(client.ReceiveAll(), "") << path;
  }
  run.Call([&] { exchange->Respond({.body = "here"}); });
  EXPECT_EQ(other.Receive().body, "here");
}

// Work that fails for lack of memory is lost; the server goes on.
TEST(HttpRequests, PostedWorkThatLacksMemory) {
  HttpServerRun run;
  run.server().Post([] { throw std::bad_alloc(); });
  RawClient client = RawClient::Tcp(run.port());
  client.Get("/");
  EXPECT_EQ(client.Receive().status, 200);
}

}  // namespace
}  // namespace latte::requests_test
