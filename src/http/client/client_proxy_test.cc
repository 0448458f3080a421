// The client behind a proxy that follows a script. Tunnels that work: client_server_test.cc.
#include <chrono>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/http/client/client.h"
#include "tests/support/net/certificate.h"
#include "tests/support/net/scripted_server.h"
#include "tests/support/scratch_dir.h"

namespace latte::client_proxy_test {
namespace {

using std::chrono::milliseconds;
using testing_support::Peer;
using testing_support::ScriptedServer;

constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

HttpClientOptions Through(const ScriptedServer& server, const std::string& user = "") {
  const ProxyVariable variable = {"https_proxy",
                                  fmt::format("{}127.0.0.1:{}", user, server.port())};
  HttpClientOptions out;
  out.proxy = *ProxyFor(*ParseUrl("http://h.example"), {variable, variable, ""});
  return out;
}

struct Answer {
  Result<HttpResponse> response = Internal("none");
  HttpFailure failure = HttpFailure::kNone;
};

HttpRequest Get(std::string path) {
  HttpRequest out;
  out.method = "GET";
  out.path = std::move(path);
  out.fields.Add("Authorization", "Bearer token");
  return out;
}

Answer Ask(const std::string& url, HttpClientOptions options) {
  const testing_support::ScratchDir folder;
  options.ca_file = folder.File("certificate.pem");
  testing_support::MakeCertificate("DNS:localhost", options.ca_file, folder.File("key.pem"));
  auto client = HttpClient::Create(*ParseUrl(url), options);
  EXPECT_TRUE(client) << client.error().message;
  Answer out;
  HttpResponse response;
  (*client)->Start(Get("/x"), {.on_head = [&](const HttpResponse& head) { response = head; },
                               .on_body = [&](std::string_view piece) { response.body += piece; },
                               .on_end =
                                   [&](const Status& status, HttpFailure failure) {
                                     out.failure = failure;
                                     if (status) {
                                       out.response = response;
                                     } else {
                                       out.response = tl::unexpected(status.error());
                                     }
                                   }});
  (*client)->Run();
  return out;
}

TEST(HttpClientProxy, IsAskedForTheWholeAddressOfAnHttpTarget) {
  std::string seen;
  const ScriptedServer proxy([&](int, Peer& peer) {
    seen = peer.Receive();
    peer.Send(kAnswer);
  });
  const Answer answer =
      Ask("http://h.example:8000", Through(proxy, "http://Aladdin:open%20sesame@"));
  ASSERT_TRUE(answer.response) << answer.response.error().message;
  EXPECT_EQ(answer.response->body, "ok");
  EXPECT_EQ(seen,
            "GET http://h.example:8000/x HTTP/1.1\r\nHost: h.example:8000\r\n"
            "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"
            "Authorization: Bearer token\r\n\r\n");
}

TEST(HttpClientProxy, KeepsItsConnection) {
  const ScriptedServer proxy([](int, Peer& peer) {
    while (!peer.Receive().empty()) peer.Send(kAnswer);
  });
  {
    const auto client =
        std::move(*HttpClient::Create(*ParseUrl("http://h.example"), Through(proxy)));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(Fetch(*client, Get("/"))->body, "ok");
  }
  EXPECT_EQ(proxy.connections(), 1);
}

// A request for an https target: the proxy sees it, and answers.
struct Tunnelled {
  std::string seen;
  Answer answer;
};

Tunnelled Tunnel(const std::string& answer, const std::string& user = "") {
  Tunnelled out;
  {
    const ScriptedServer proxy([&](int, Peer& peer) {
      out.seen = peer.Receive();
      peer.Send(answer);
      if (!answer.empty()) peer.Drain();
    });
    HttpClientOptions options = Through(proxy, user);
    options.connect_timeout = milliseconds(300'000);
    out.answer = Ask("https://[2001:db8::1]", options);
  }
  EXPECT_FALSE(out.answer.response);
  EXPECT_EQ(out.answer.response.error().message.find("https://[2001:db8::1]: "), 0u);
  return out;
}

TEST(HttpClientProxy, ConnectHasTheTargetAndNoneOfItsFields) {
  const Tunnelled plain = Tunnel("");
  EXPECT_EQ(plain.seen, "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n\r\n");
  const Tunnelled user = Tunnel("", "http://u:secret@");
  EXPECT_EQ(user.seen,
            "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n"
            "Proxy-Authorization: Basic dTpzZWNyZXQ=\r\n\r\n");
}

TEST(HttpClientProxy, TellsFailuresApart) {
  struct Case {
    std::string answer;
    HttpFailure failure;
    const char* why;
  };
  const Case cases[] = {
      {"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 99\r\n\r\n",
       HttpFailure::kProxy, "does not accept the user and the password of https_proxy"},
      {"HTTP/1.1 403 Forbidden\r\n\r\n", HttpFailure::kProxy, "answers 403 instead of"},
      {"HTTP/1.1 301 Moved\r\nLocation: http://evil/\r\n\r\n", HttpFailure::kProxy, "301"},
      {"HTTP/1.0 502 Bad Gateway\r\n\r\n", HttpFailure::kConnect, "answers 502 instead of"},
      {"", HttpFailure::kLost, "ends the connection before it answers"},
      {"SSH-2.0-OpenSSH_9.2\r\n\r\n", HttpFailure::kBadResponse, "does not answer as one"},
      {"HTTP/1.1 200 OK\r\nX: " + std::string(80'000, 'x'), HttpFailure::kBadResponse,
       "65536 bytes"},
      {"HTTP/1.1 200 OK\r\n\r\n220 ready\r\n", HttpFailure::kBadResponse,
       "sends more than its answer"},
  };
  for (const Case& c : cases) {
    const Answer answer = Tunnel(c.answer, "http://u:secret@").answer;
    const std::string& message = answer.response.error().message;
    EXPECT_EQ(HttpFailureName(answer.failure), HttpFailureName(c.failure)) << message;
    EXPECT_NE(message.find(c.why), std::string::npos) << message;
    EXPECT_NE(message.find("proxy http://127.0.0.1:"), std::string::npos) << message;
    EXPECT_EQ(message.find("secret"), std::string::npos) << message;
  }
}

TEST(HttpClientProxy, OneThatIsSilentIsLeft) {
  const ScriptedServer proxy([](int, Peer& peer) { peer.Drain(); });
  HttpClientOptions options = Through(proxy);
  options.connect_timeout = milliseconds(50);
  const Answer answer = Ask("https://h.example", options);
  EXPECT_EQ(answer.failure, HttpFailure::kTimeout);
  EXPECT_NE(answer.response.error().message.find("no connection within 0.05 s; missing: the answer "
                                                 "of the proxy http://127.0.0.1:"),
            std::string::npos)
      << answer.response.error().message;
}

TEST(HttpClientProxy, OneThatIsNotThere) {
  HttpClientOptions options;
  {
    const ScriptedServer proxy([](int, Peer&) {});
    options = Through(proxy);
  }
  const Answer answer = Ask("http://h.example", options);
  EXPECT_EQ(answer.failure, HttpFailure::kConnect);
  EXPECT_NE(answer.response.error().message.find("no connection to the proxy http://127.0.0.1:"),
            std::string::npos)
      << answer.response.error().message;
}

TEST(HttpClientProxy, AsksForAPasswordOnPlainTargets) {
  const ScriptedServer proxy([](int, Peer& peer) {
    peer.Receive();
    peer.Send("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno");
    peer.Drain();
  });
  const Answer answer = Ask("http://h.example", Through(proxy));
  EXPECT_EQ(answer.failure, HttpFailure::kProxy);
  EXPECT_NE(answer.response.error().message.find("asks for a user and a password"),
            std::string::npos);
}

}  // namespace
}  // namespace latte::client_proxy_test
