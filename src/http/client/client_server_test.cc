// The client and the server of src/http together: TLS, Unix sockets, many streams.
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "src/http/client/client.h"
#include "src/http/server.h"
#include "tests/support/net/certificate.h"
#include "tests/support/net/scripted_server.h"
#include "tests/support/scratch_dir.h"

namespace latte::client_server_test {
namespace {

using testing_support::MakeCertificate;
using Folder = testing_support::ScratchDir;

// Answers "/events" by `events` pieces of a stream, and everything else by its body.
class Handler final : public HttpHandler {
 public:
  std::optional<HttpResponse> CheckHead(const HttpRequest&) override { return std::nullopt; }
  void Handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) override {
    if (request.path != "/events") return exchange->Respond({.body = std::string(request.body)});
    exchange->Begin({.content_type = "text/event-stream"});
    for (int i = 0; i < kEvents; ++i) exchange->Write("data: x\n\n");
    exchange->End();
  }
  HttpResponse BadRequest(const HttpRequest*, int status, std::string_view) override {
    return {.status = status};
  }

  static constexpr int kEvents = 20;
};

class Running {
 public:
  explicit Running(const HttpServerOptions& options) {
    server_ = std::move(*HttpServer::Listen(options, &handler_));
    thread_ = std::thread([this] { server_->Run(); });
  }
  ~Running() {
    server_->Stop();
    thread_.join();
  }
  const HttpServer& server() const { return *server_; }

 private:
  Handler handler_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

Result<HttpResponse> Echo(const std::string& url, const HttpClientOptions& options) {
  LATTE_ASSIGN_OR_RETURN(const HttpUrl parsed, ParseUrl(url));
  LATTE_ASSIGN_OR_RETURN(const auto client, HttpClient::Create(parsed, options));
  LATTE_RETURN_IF_ERROR(Fetch(*client, {.method = "POST", .path = "/", .body = "first"}));
  Result<HttpResponse> second =
      Fetch(*client, {.method = "POST", .path = "/", .body = std::string(100'000, 'x')});
  EXPECT_EQ(client->stats().connections, 1);
  return second;
}

TEST(HttpClientAndServer, Tls) {
  const Folder folder;
  const std::string certificate = folder.File("certificate.pem");
  MakeCertificate("DNS:localhost,IP:127.0.0.1", certificate, folder.File("key.pem"));
  const Running running(
      {.port = 0, .tls_certificate = certificate, .tls_key = folder.File("key.pem")});
  const std::string port = std::to_string(running.server().port());
  for (const std::string host : {"localhost", "127.0.0.1"}) {
    const Result<HttpResponse> response =
        Echo("https://" + host + ":" + port, {.ca_file = certificate});
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body.size(), 100'000u);
  }
  const Result<HttpResponse> untrusted = Echo("https://localhost:" + port, {});
  ASSERT_FALSE(untrusted);
  EXPECT_NE(untrusted.error().message.find("--ca-file"), std::string::npos);
  EXPECT_FALSE(Echo("http://localhost:" + port, {}));
}

// A trusted certificate of another host is refused.
TEST(HttpClientAndServer, TlsOfAnotherHost) {
  const Folder folder;
  const std::string certificate = folder.File("certificate.pem");
  MakeCertificate("DNS:example.org", certificate, folder.File("key.pem"));
  const Running running(
      {.port = 0, .tls_certificate = certificate, .tls_key = folder.File("key.pem")});
  for (const std::string host : {"localhost", "127.0.0.1"}) {
    const Result<HttpResponse> response =
        Echo("https://" + host + ":" + std::to_string(running.server().port()),
             {.ca_file = certificate});
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, Code::kUnavailable);
  }
}

// Behind the CONNECT of a proxy, the target proves who it is, not the proxy.
TEST(HttpClientAndServer, TlsThroughAProxy) {
  const Folder folder;
  const std::string certificate = folder.File("certificate.pem");
  MakeCertificate("DNS:h.example", certificate, folder.File("key.pem"));
  const Running running(
      {.port = 0, .tls_certificate = certificate, .tls_key = folder.File("key.pem")});
  std::vector<std::string> seen;
  {
    const testing_support::ScriptedServer server([&](int, testing_support::Peer& peer) {
      seen.push_back(peer.Receive());
      peer.Send("HTTP/1.1 200 Connection established\r\nProxy-Agent: x\r\n\r\n");
      peer.Relay(running.server().port());
    });
    HttpClientOptions options = {.ca_file = certificate};
    options.proxy = HttpProxy{*ParseUrl(server.url()), "", "https_proxy"};
    const Result<HttpResponse> response = Echo("https://h.example", options);
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body.size(), 100'000u);
    const Result<HttpResponse> other = Echo("https://other.example", options);
    ASSERT_FALSE(other);
    EXPECT_NE(other.error().message.find("the certificate is for another host"), std::string::npos)
        << other.error().message;
  }
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0], "CONNECT h.example:443 HTTP/1.1\r\nHost: h.example:443\r\n\r\n");
}

TEST(HttpClientAndServer, UnixSocket) {
  const Folder folder;
  const Running running({.host = "", .unix_socket = folder.File("socket")});
  const Result<HttpResponse> response = Echo("unix:" + folder.File("socket"), {});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body.size(), 100'000u);
  EXPECT_FALSE(Echo("unix:" + folder.File("other"), {}));
}

TEST(HttpClientAndServer, ManyStreamsAtOnce) {
  const Folder folder;
  const Running running({.host = "", .unix_socket = folder.File("socket")});
  const auto client =
      std::move(*HttpClient::Create(*ParseUrl("unix:" + folder.File("socket")), {}));
  constexpr int kStreams = 200;
  int whole = 0;
  for (int i = 0; i < kStreams; ++i) {
    auto bytes = std::make_shared<size_t>(0);
    client->Start({.method = "GET", .path = "/events"},
                  {.on_head = {},
                   .on_body = [bytes](std::string_view piece) { *bytes += piece.size(); },
                   .on_end =
                       [&whole, bytes](const Status& status, HttpFailure) {
                         whole += status && *bytes == 9 * Handler::kEvents ? 1 : 0;
                       }});
  }
  client->Run();
  EXPECT_EQ(whole, kStreams);
  EXPECT_EQ(client->stats().peak_open_calls, kStreams);
}

}  // namespace
}  // namespace latte::client_server_test
