// TLS: requests over it, clients that speak something else, certificates that cannot be used.
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "src/base/check.h"
#include "src/http/server.h"
#include "tests/support/http_server_run.h"
#include "tests/support/raw_client.h"
#include "tests/support/scratch_dir.h"

namespace latte::tls_test {
namespace {

using testing_support::HttpServerRun;
using testing_support::RawClient;
using testing_support::ScratchDir;
using testing_support::TestHandler;

template <auto kFree>
struct Freed {
  template <class T>
  void operator()(T* pointer) const {
    kFree(pointer);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using File = std::unique_ptr<std::FILE, Freed<std::fclose>>;

// Writes a certificate for localhost that signs itself, and its key.
void WriteCertificate(const std::string& certificate, const std::string& key,
                      const char* password = nullptr) {
  const Key made(EVP_EC_gen("P-256"));
  const Certificate x509(X509_new());
  ASN1_INTEGER_set(X509_get_serialNumber(x509.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(x509.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(x509.get()), 3600);
  X509_set_pubkey(x509.get(), made.get());
  X509_NAME* name = X509_get_subject_name(x509.get());
  const std::string host = "localhost";
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(host.data()), -1, -1, 0);
  X509_set_issuer_name(x509.get(), name);
  LATTE_CHECK(X509_sign(x509.get(), made.get(), EVP_sha256()) != 0, "no signature");
  const File certificate_file(std::fopen(certificate.c_str(), "w"));
  const File key_file(std::fopen(key.c_str(), "w"));
  PEM_write_X509(certificate_file.get(), x509.get());
  PEM_write_PrivateKey(key_file.get(), made.get(), password ? EVP_aes_128_cbc() : nullptr, nullptr,
                       0, nullptr, const_cast<char*>(password));
}

// A client that trusts every certificate, over the socket of a RawClient.
class TlsClient {
 public:
  explicit TlsClient(int port, int newest_version = TLS1_3_VERSION)
      : raw_(RawClient::Tcp(port)), context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_security_level(context_.get(), 0);  // lets it offer old versions
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context_.get(), newest_version);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), raw_.fd());
    connected_ = SSL_connect(ssl_.get()) == 1;
  }
  bool connected() const { return connected_; }
  std::string version() const { return SSL_get_version(ssl_.get()); }
  void Send(std::string_view bytes) {
    SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
  }
  std::string ReceiveAll() {
    std::string out;
    char buffer[65536];
    int count = 0;
    while ((count = SSL_read(ssl_.get(), buffer, sizeof buffer)) > 0)
      out.append(buffer, static_cast<size_t>(count));
    return out;
  }
  void Goodbye() { SSL_shutdown(ssl_.get()); }
  RawClient& raw() { return raw_; }

 private:
  RawClient raw_;
  std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> context_;
  std::unique_ptr<SSL, Freed<SSL_free>> ssl_;
  bool connected_ = false;
};

class HttpTls : public testing::Test {
 protected:
  HttpTls() {
    WriteCertificate(certificate_, key_);
    options_.tls_certificate = certificate_;
    options_.tls_key = key_;
  }
  std::string Refusal() {
    TestHandler handler;
    const auto server = HttpServer::Listen(options_, &handler);
    return server ? "" : ToString(server.error());
  }

  ScratchDir dir_;
  std::string certificate_ = dir_.File("certificate.pem");
  std::string key_ = dir_.File("key.pem");
  HttpServerOptions options_ = HttpServerRun::Patient();
};

TEST_F(HttpTls, AnswersOverTls) {
  HttpServerRun run(options_);
  EXPECT_TRUE(run.server().urls()[0].starts_with("https://127.0.0.1:"));
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(run.port(), version);
    ASSERT_TRUE(client.connected());
    EXPECT_EQ(client.version(), version == TLS1_2_VERSION ? "TLSv1.2" : "TLSv1.3");
    client.Send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n");
    client.Send("GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    const std::string text = client.ReceiveAll();
    EXPECT_NE(text.find("\r\n\r\nGET /1?\nHost=x\n"), std::string::npos);
    EXPECT_TRUE(text.ends_with(std::string(TestHandler::kLargeBytes, 'x')));
  }
}

TEST_F(HttpTls, OldVersionsAreRefused) {
  HttpServerRun run(options_);
  EXPECT_FALSE(TlsClient(run.port(), TLS1_1_VERSION).connected());
}

TEST_F(HttpTls, ClientsThatLeaveAreNoticed) {
  HttpServerRun run(options_);
  for (int i = 0; i < 3; ++i) {
    TlsClient client(run.port());
    client.Send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    const auto exchange = run.handler.Held();
    if (i == 0) client.Goodbye();
    if (i == 1) client.raw().Close();
    if (i == 2) client.raw().Reset();
    run.handler.WaitForGone(i + 1);
  }
}

// H10, the other way round: something else than TLS ends its own connection only.
TEST_F(HttpTls, OtherProtocols) {
  HttpServerRun run(options_);
  for (const std::string_view bytes :
       {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\xff\xff\xff", "\r\n\r\n"}) {
    RawClient client = RawClient::Tcp(run.port());
    client.Send(bytes);
    client.ShutdownWrite();
    EXPECT_EQ(client.ReceiveAll().find("HTTP"), std::string::npos);
  }
  EXPECT_TRUE(TlsClient(run.port()).connected());
}

TEST_F(HttpTls, AHandshakeThatNeverCompletes) {
  options_.head_timeout = std::chrono::milliseconds(200);
  HttpServerRun run(options_);
  RawClient client = RawClient::Tcp(run.port());
  client.Send("\x16\x03\x01");
  EXPECT_EQ(client.ReceiveAll(), "");
}

TEST_F(HttpTls, CertificatesThatCannotBeUsed) {
  options_.tls_key = "";
  EXPECT_NE(Refusal().find("expected a certificate and its key"), std::string::npos);
  options_.tls_key = dir_.File("none.pem");
  EXPECT_NE(Refusal().find("none.pem: expected a PEM file with the key"), std::string::npos);
  options_.tls_key = certificate_;
  EXPECT_NE(Refusal().find("expected a PEM file with the key"), std::string::npos);
  options_.tls_certificate = key_;
  EXPECT_NE(Refusal().find("expected a PEM file with a certificate"), std::string::npos);
}

TEST_F(HttpTls, TheKeyOfAnotherCertificate) {
  options_.tls_key = dir_.File("other_key.pem");
  WriteCertificate(dir_.File("other.pem"), options_.tls_key);
  EXPECT_NE(Refusal().find("expected a PEM file with the key of"), std::string::npos);
}

// OpenSSL would ask the terminal for the password.
TEST_F(HttpTls, AKeyWithAPassword) {
  WriteCertificate(certificate_, key_, "secret");
  EXPECT_NE(Refusal().find("expected a PEM file with the key of"), std::string::npos);
}

}  // namespace
}  // namespace latte::tls_test
