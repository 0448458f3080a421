#include "src/hub/net/http.h"

#include <cstdlib>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/net/scripted_server.h"

namespace latte::http_test {
namespace {

using testing_support::Peer;
using testing_support::ScriptedServer;

class Clients : public testing::Test {
 protected:
  Clients() {
    for (const char* name : {"http_proxy", "all_proxy", "ALL_PROXY"}) unsetenv(name);
  }

  std::unique_ptr<Http> Make(const ScriptedServer& server, double timeout = 30) {
    return std::move(*HttpClients({timeout, "latte/test", server.url()}, stop_)());
  }

  // A GET of `path` whose body is wanted or not.
  tl::expected<HttpHead, NetError> Get(Http& http, const ScriptedServer& server, bool wanted) {
    body_.clear();
    return http.Get({server.url() + "/a/b?c=d", {"Accept: x", "Range: bytes=0-1"}},
                    {[&](const HttpHead& head) { return wanted && head.status == 200; },
                     [&](std::span<const std::byte> bytes) {
                       body_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
                       return body_.size() <= 10;
                     }});
  }

  std::atomic<bool> stop_ = false;
  std::string body_;
};

TEST_F(Clients, SendAGetAndPassTheResponseOn) {
  std::string seen;
  const ScriptedServer server([&](int, Peer& peer) {
    seen = peer.Receive();
    peer.Send("HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 2\r\n\r\nok");
  });
  const auto http = Make(server);
  const auto head = Get(*http, server, true);
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head->Get("x-a"), "2");
  EXPECT_EQ(body_, "ok");
  EXPECT_EQ(seen,
            fmt::format("GET /a/b?c=d HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nUser-Agent: latte/test\r\n"
                        "Accept: x\r\nRange: bytes=0-1\r\n\r\n",
                        server.port()));
}

// A short body that is not wanted keeps the connection, a long one ends it; the head counts.
TEST_F(Clients, BodiesThatAreNotWanted) {
  const ScriptedServer server([](int number, Peer& peer) {
    const std::string body(number == 0 ? 1000 : 1 << 20, 'x');
    while (!peer.Receive().empty())
      peer.Send(
          fmt::format("HTTP/1.1 302 Found\r\nContent-Length: {}\r\n\r\n{}", body.size(), body));
  });
  {
    const auto http = Make(server);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(Get(*http, server, false)->status, 302);
    EXPECT_EQ(server.connections(), 1);
    const auto other = Make(server);
  }
  const auto http = Make(server);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Get(*http, server, false)->status, 302);
  EXPECT_EQ(body_, "");
  EXPECT_EQ(server.connections(), 3);
}

TEST_F(Clients, KeepConnectionsToAFewHosts) {
  const auto script = [](int, Peer& peer) {
    while (!peer.Receive().empty()) peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  };
  std::vector<std::unique_ptr<ScriptedServer>> servers;
  for (int i = 0; i < 9; ++i) servers.push_back(std::make_unique<ScriptedServer>(script));
  {
    const auto http = Make(*servers[0]);
    for (const int number : {0, 0, 1, 2, 3, 4, 5, 6, 7, 0, 8, 0})
      EXPECT_TRUE(Get(*http, *servers[static_cast<size_t>(number)], true));
  }
  EXPECT_EQ(servers[0]->connections(), 2) << "the ninth host ended it";
  EXPECT_EQ(servers[1]->connections(), 1);
}

TEST_F(Clients, ARefusedBodyEndsTheRequest) {
  const ScriptedServer server([](int, Peer& peer) {
    peer.Receive();
    peer.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n");
    peer.Drain();
  });
  const auto head = Get(*Make(server), server, true);
  ASSERT_FALSE(head);
  EXPECT_EQ(head.error().kind, NetError::Kind::kRejected);
}

TEST_F(Clients, StopWhenAsked) {
  const ScriptedServer server([&](int, Peer& peer) {
    peer.Receive();
    stop_ = true;
    peer.Drain();
  });
  const auto head = Get(*Make(server), server, true);
  ASSERT_FALSE(head);
  EXPECT_EQ(head.error().kind, NetError::Kind::kStopped);
}

TEST_F(Clients, TellFailuresApart) {
  using Kind = NetError::Kind;
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  const std::pair<std::string, Kind> cases[] = {
      {"", Kind::kBroken},
      {"SSH-2.0\r\n\r\n", Kind::kBroken},
      {ok + "Content-Length: 5\r\n\r\nabc", Kind::kBroken},
      {ok + "X: " + std::string(70'000, 'x') + "\r\n\r\n", Kind::kBroken},
  };
  for (const auto& [answer, kind] : cases) {
    const ScriptedServer server([&answer = answer](int, Peer& peer) {
      peer.Receive();
      peer.Send(answer);
    });
    const auto head = Get(*Make(server), server, true);
    ASSERT_FALSE(head) << answer.substr(0, 40);
    EXPECT_EQ(head.error().kind, kind) << head.error().message;
    EXPECT_EQ(head.error().message.find(server.url()), 0u) << head.error().message;
  }
  const ScriptedServer silent([](int, Peer& peer) { peer.Drain(); });
  EXPECT_EQ(Get(*Make(silent, 0.05), silent, true).error().kind, Kind::kStalled);
  const auto http = Make(silent);
  const HttpBody body = {[](const HttpHead&) { return true; },
                         [](std::span<const std::byte>) { return true; }};
  EXPECT_EQ(http->Get({"http://127.0.0.1:1/", {}}, body).error().kind, Kind::kConnect);
  EXPECT_EQ(http->Get({"ftp://h/", {}}, body).error().kind, Kind::kRejected);
  EXPECT_EQ(http->Get({silent.url(), {"X: a\r\nY: b"}}, body).error().kind, Kind::kRejected);
}

TEST_F(Clients, AProxyThatCannotBeUsedIsToldBeforeARequest) {
  setenv("http_proxy", "socks5://u:secret@p", 1);
  const auto http = HttpClients({30, "latte/test", "http://hub.example"}, stop_)();
  unsetenv("http_proxy");
  ASSERT_FALSE(http);
  EXPECT_EQ(http.error().code, Code::kInvalidArgument);
  EXPECT_NE(http.error().message.find("socks5://"), std::string::npos);
}

TEST(RetryAfter, NumbersAndDates) {
  constexpr int64_t kNow = 784111770;  // Sun, 06 Nov 1994 08:49:30 GMT
  EXPECT_EQ(RetryAfter("7", kNow), 7);
  EXPECT_EQ(RetryAfter("Sun, 06 Nov 1994 08:49:37 GMT", kNow), 7);
  EXPECT_EQ(RetryAfter("Sunday, 06-Nov-94 08:49:37 GMT", kNow), 7);
  EXPECT_EQ(RetryAfter("Sun, 06 Nov 1994 07:49:37 GMT", kNow), 0) << "it is over";
  EXPECT_EQ(RetryAfter("Mon, 01 Jan 2024 00:00:00 GMT", 1704067190), 10);
  for (const char* bad : {"", "-1", "1.5", "soon", "99999999999999999999", "Sun, 06 Nov 1994",
                          "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Foo 1994 08:49:37 GMT",
                          "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 19940 08:49:37 GMT",
                          "Sun, 06 anf 1994 08:49:37 GMT", ", , ,"})
    EXPECT_EQ(RetryAfter(bad, kNow), std::nullopt) << bad;
}

}  // namespace
}  // namespace latte::http_test
