// The client and the server of src/http together: TLS, Unix sockets, many streams.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include "src/http/client/client.h"
#include "src/http/server.h"

namespace latte::client_server_test {
namespace {

class Folder {
 public:
  Folder() {
    std::string name = testing::TempDir() + "latte-http-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

template <class Write>
void WritePem(const std::string& path, const Write& write) {
  FILE* const file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(write(file), 1);
  std::fclose(file);
}

// A certificate that signs itself, for the names in `names`: "DNS:localhost,IP:127.0.0.1".
void MakeCertificate(const char* names, const std::string& certificate, const std::string& key) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> pair(EVP_EC_gen("P-256"),
                                                                 EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> x509(X509_new(), X509_free);
  ASSERT_TRUE(pair && x509);
  X509_set_version(x509.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x509.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(x509.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(x509.get()), 3600);
  X509_set_pubkey(x509.get(), pair.get());
  X509_NAME* const name = X509_get_subject_name(x509.get());
  const unsigned char text[] = "latte test";
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0);
  X509_set_issuer_name(x509.get(), name);
  X509_EXTENSION* const extension =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names);
  X509_add_ext(x509.get(), extension, -1);
  X509_EXTENSION_free(extension);
  ASSERT_GT(X509_sign(x509.get(), pair.get(), EVP_sha256()), 0);
  WritePem(certificate, [&](FILE* file) { return PEM_write_X509(file, x509.get()); });
  WritePem(key, [&](FILE* file) {
    return PEM_write_PrivateKey(file, pair.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

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
