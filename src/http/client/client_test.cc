#include "src/http/client/client.h"

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/net/scripted_server.h"

namespace latte::client_test {
namespace {

using std::chrono::milliseconds;

using testing_support::Peer;
using Server = testing_support::ScriptedServer;

std::unique_ptr<HttpClient> Client(const Server& server, const HttpClientOptions& options = {}) {
  return std::move(*HttpClient::Create(*ParseUrl(server.url()), options));
}

HttpRequest Get(std::string path) {
  HttpRequest out;
  out.method = "GET";
  out.path = std::move(path);
  return out;
}

HttpRequest Post(std::string path, std::string body) {
  HttpRequest out;
  out.method = "POST";
  out.path = std::move(path);
  out.fields.Add("Content-Type", "application/json");
  out.body = std::move(body);
  return out;
}

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST(HttpClient, SendsARequestAndReadsTheResponse) {
  std::string seen;
  const Server server([&](int, Peer& peer) {
    seen = peer.Receive();
    peer.Send(
        "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain\r\nRetry-After: 3\r\n"
        "Content-Length: 4\r\n\r\nbusy");
  });
  const auto client = Client(server);
  HttpRequest request = Post("/v1/x", "{}");
  request.query = "a=1";
  const Result<HttpResponse> response = Fetch(*client, std::move(request));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 429);
  EXPECT_EQ(response->content_type, "text/plain");
  EXPECT_EQ(response->fields.Find("retry-after"), "3");
  EXPECT_EQ(response->body, "busy");
  EXPECT_EQ(seen, fmt::format("POST /v1/x?a=1 HTTP/1.1\r\nHost: {}\r\n"
                              "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}",
                              client->url().Authority()));
}

// Pieces of a chunked body arrive as the server sends them, however they are cut.
TEST(HttpClient, ReadsChunksCutAnywhere) {
  const Server server([](int, Peer& peer) {
    peer.Receive();
    const std::string text =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n,\r\n"
        "6\r\n world\r\n0\r\n\r\n";
    for (const char c : text) {
      peer.Send(std::string_view(&c, 1));
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    peer.Drain();
  });
  const auto client = Client(server);
  const Result<HttpResponse> response = Fetch(*client, Get("/"));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "hello, world");
}

TEST(HttpClient, SkipsInterimResponsesAndReadsToTheEnd) {
  const Server server([](int, Peer& peer) {
    peer.Receive();
    peer.Send(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        "HTTP/1.0 200 OK\r\n\r\nall of it");
  });
  const auto client = Client(server);
  std::vector<int> heads;
  std::string body;
  client->Start(Get("/"),
                {.on_head = [&](const HttpResponse& head) { heads.push_back(head.status); },
                 .on_body = [&](std::string_view piece) { body += piece; },
                 .on_end = {}});
  client->Run();
  EXPECT_EQ(heads, std::vector<int>{200});
  EXPECT_EQ(body, "all of it");
}

TEST(HttpClient, UsesAConnectionAgain) {
  const Server server([](int, Peer& peer) {
    while (!peer.Receive().empty()) peer.Send(kOk);
  });
  {
    const auto client = Client(server);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(Fetch(*client, Get("/"))->body, "ok");
    EXPECT_EQ(client->stats().connections, 1);
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpClient, DoesNotUseAConnectionAgainThatTheServerCloses) {
  const Server server([](int, Peer& peer) {
    peer.Receive();
    peer.Send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    peer.Drain();
  });
  const auto client = Client(server);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Fetch(*client, Get("/"))->body, "ok");
  EXPECT_EQ(client->stats().connections, 2);
}

// The server ends an idle connection: the next request goes over a new one.
TEST(HttpClient, SendsAgainWhatAnIdleConnectionDidNotAnswer) {
  const Server server([](int, Peer& peer) {
    peer.Receive();
    peer.Send(kOk);
  });
  const auto client = Client(server);
  for (int i = 0; i < 3; ++i) {
    const Result<HttpResponse> response = Fetch(*client, Post("/", "x"));
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, "ok");
  }
  EXPECT_EQ(client->stats().connections, 3);
}

struct Ended {
  Status status;
  HttpFailure failure = HttpFailure::kNone;
  int calls = 0;
};

HttpReceiver Into(Ended* out) {
  return {.on_head = {}, .on_body = {}, .on_end = [out](Status status, HttpFailure failure) {
            out->status = std::move(status);
            out->failure = failure;
            ++out->calls;
          }};
}

Ended Call(HttpClient& client, HttpRequest request) {
  Ended out;
  client.Start(std::move(request), Into(&out));
  client.Run();
  EXPECT_EQ(out.calls, 1);
  return out;
}

TEST(HttpClient, TellsFailuresApart) {
  struct Case {
    std::string_view answer;
    HttpFailure failure;
    std::string_view word;
  };
  const Case cases[] = {
      {"", HttpFailure::kLost, "ended before"},
      {"HTTP/1.1 200 OK\r\nContent-Le", HttpFailure::kLost, "ended before"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", HttpFailure::kLost, "ended before"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", HttpFailure::kLost,
       "ended before"},
      {"SSH-2.0-OpenSSH_9.2\r\n\r\n", HttpFailure::kBadResponse, "HTTP/1.1"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", HttpFailure::kBadResponse,
       "HTTP/1.1"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n", HttpFailure::kBadResponse, "1000 bytes"},
  };
  for (const Case& c : cases) {
    const Server server([&](int, Peer& peer) {
      peer.Receive();
      peer.Send(c.answer);
    });
    const auto client = Client(server, {.max_body_bytes = 1000});
    const Ended ended = Call(*client, Get("/"));
    ASSERT_FALSE(ended.status) << c.answer;
    EXPECT_EQ(HttpFailureName(ended.failure), HttpFailureName(c.failure)) << c.answer;
    EXPECT_NE(ended.status.error().message.find(c.word), std::string::npos)
        << ended.status.error().message;
    EXPECT_TRUE(ended.status.error().message.starts_with(server.url()));
  }
}

TEST(HttpClient, BoundsBodiesWithoutALength) {
  const Server server([](int, Peer& peer) {
    peer.Receive();
    peer.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 40; ++i) peer.Send("32\r\n" + std::string(50, 'x') + "\r\n");
    peer.Drain();
  });
  const auto client = Client(server, {.max_body_bytes = 1000});
  EXPECT_EQ(Call(*client, Get("/")).failure, HttpFailure::kBadResponse);
}

TEST(HttpClient, BoundsHeads) {
  const Server server([](int, Peer& peer) {
    peer.Receive();
    peer.Send("HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'x') + "\r\n\r\n");
    peer.Drain();
  });
  const auto client = Client(server);
  EXPECT_EQ(Call(*client, Get("/")).failure, HttpFailure::kBadResponse);
}

TEST(HttpClient, RefusesAFieldThatWouldBeTwo) {
  const Server server([](int, Peer&) {});
  const auto client = Client(server);
  HttpRequest request = Get("/");
  request.fields.Add("Authorization", "Bearer x\r\nX-Other: y");
  const Ended ended = Call(*client, std::move(request));
  EXPECT_EQ(ended.failure, HttpFailure::kRequest);
  EXPECT_EQ(ended.status.error().code, Code::kInvalidArgument);
  EXPECT_EQ(server.connections(), 0);
}

TEST(HttpClient, NobodyListens) {
  std::string url;
  {
    const Server server([](int, Peer&) {});
    url = server.url();
  }
  const auto client = std::move(*HttpClient::Create(*ParseUrl(url), {}));
  const Ended ended = Call(*client, Get("/"));
  EXPECT_EQ(ended.failure, HttpFailure::kConnect);
  EXPECT_EQ(ended.status.error().code, Code::kUnavailable);
  EXPECT_NE(ended.status.error().message.find("is the server running"), std::string::npos);
}

TEST(HttpClient, Timeouts) {
  const Server silent([](int, Peer& peer) { peer.Drain(); });
  const Ended first = Call(*Client(silent, {.first_byte_timeout = milliseconds(50)}), Get("/"));
  EXPECT_EQ(first.failure, HttpFailure::kTimeout);
  EXPECT_NE(first.status.error().message.find("no response within 0.05 s"), std::string::npos);

  const Server stuck([](int, Peer& peer) {
    peer.Receive();
    peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
    peer.Drain();
  });
  const HttpClientOptions total = {.first_byte_timeout = milliseconds(60'000),
                                   .total_timeout = milliseconds(50)};
  EXPECT_EQ(Call(*Client(stuck, total), Get("/")).failure, HttpFailure::kTimeout);
}

TEST(HttpClient, StallsAreLeftAndSlowBodiesAreNot) {
  const Server stuck([](int, Peer& peer) {
    peer.Receive();
    peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
    peer.Drain();
  });
  const Ended ended = Call(*Client(stuck, {.stall_timeout = milliseconds(50)}), Get("/"));
  EXPECT_EQ(ended.failure, HttpFailure::kTimeout);
  EXPECT_NE(ended.status.error().message.find("silent: no byte within 0.05 s"), std::string::npos);

  const Server slow([](int, Peer& peer) {
    peer.Receive();
    peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n");
    for (int i = 0; i < 40; ++i) {
      peer.Send("x");
      std::this_thread::sleep_for(milliseconds(50));
    }
    peer.Drain();
  });
  EXPECT_TRUE(Call(*Client(slow, {.stall_timeout = milliseconds(1'500)}), Get("/")).status);
}

TEST(HttpClient, RunForEndsWithoutAnAnswer) {
  const Server silent([](int, Peer& peer) { peer.Drain(); });
  const auto client = Client(silent);
  Ended ended;
  const HttpClient::CallId call = client->Start(Get("/"), Into(&ended));
  client->RunFor(milliseconds(20));
  EXPECT_EQ(client->stats().open_calls, 1);
  client->Cancel(call);
  EXPECT_EQ(ended.calls, 0);
}

// The connection of a cancelled call is closed, and its callbacks are silent.
TEST(HttpClient, Cancel) {
  std::atomic<bool> left = false;
  Ended ended;
  {
    const Server server([&](int, Peer& peer) {
      peer.Receive();
      peer.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n");
      peer.Drain();
      left = true;
    });
    const auto client = Client(server);
    int pieces = 0;
    HttpClient::CallId call = 0;
    HttpReceiver receiver = Into(&ended);
    receiver.on_body = [&](std::string_view) {
      ++pieces;
      client->Cancel(call);
      client->Cancel(call);
    };
    call = client->Start(Get("/"), std::move(receiver));
    client->Run();
    EXPECT_EQ(pieces, 1);
    EXPECT_EQ(client->stats().open_calls, 0);
  }
  EXPECT_TRUE(left);
  EXPECT_EQ(ended.calls, 0);
}

TEST(HttpClient, TimersRunWhileCallsWait) {
  const Server server([](int, Peer& peer) {
    peer.Receive();
    peer.Drain();
  });
  const auto client = Client(server);
  Ended ended;
  const HttpClient::CallId call = client->Start(Get("/"), Into(&ended));
  int ticks = 0;
  std::function<void()> tick = [&] {
    if (++ticks == 3) return client->Cancel(call);
    client->After(milliseconds(5), tick);
  };
  client->After(milliseconds(5), tick);
  client->Run();
  EXPECT_EQ(ticks, 3);
  EXPECT_EQ(ended.calls, 0);
}

// A client that is destroyed with open calls leaves nothing behind.
TEST(HttpClient, EndsWithOpenCalls) {
  const Server server([](int, Peer& peer) { peer.Drain(); });
  const auto client = Client(server);
  Ended ended;
  client->Start(Get("/"), Into(&ended));
  client->After(milliseconds(20), [&] { client->Stop(); });
  client->Run();
  EXPECT_EQ(ended.calls, 0);
}

TEST(HttpClient, ServerThatAnswersBeforeItHasReadAll) {
  const Server server([](int, Peer& peer) {
    peer.Send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nbig!");
    peer.Drain();
  });
  const auto client = Client(server);
  const Result<HttpResponse> response = Fetch(*client, Post("/", std::string(8 << 20, 'x')));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 413);
  EXPECT_EQ(response->body, "big!");
}

TEST(HttpClient, MissingCertificates) {
  const auto client =
      HttpClient::Create(*ParseUrl("https://localhost:1"), {.ca_file = "/no/such/file"});
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, Code::kInvalidArgument);
  EXPECT_NE(client.error().message.find("/no/such/file"), std::string::npos);
}

}  // namespace
}  // namespace latte::client_test
