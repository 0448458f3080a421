#include "src/http/transport.h"

#include <type_traits>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "src/base/check.h"

namespace latte {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using TlsStream = asio::ssl::stream<tcp::socket>;

// TLS over `below`, as client.
template <class Stream>
std::unique_ptr<Transport> TlsOver(Stream& below, asio::ssl::context& tls, const std::string& host);

template <class Socket>
class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(Socket socket) : socket_(std::move(socket)) {}

  void Handshake(Done done) override {
    asio::post(socket_.get_executor(), [done = std::move(done)] { done({}); });
  }
  void ReadSome(std::span<char> buffer, DoneBytes done) override {
    socket_.async_read_some(asio::buffer(buffer.data(), buffer.size()), std::move(done));
  }
  void WriteSome(std::string_view bytes, DoneBytes done) override {
    socket_.async_write_some(asio::buffer(bytes.data(), bytes.size()), std::move(done));
  }
  void ShutdownWrite() override {
    ErrorCode ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
  }
  void Close() override {
    ErrorCode ignored;
    socket_.close(ignored);
  }
  void WaitForBreak(Done done) override { socket_.async_wait(Socket::wait_error, std::move(done)); }
  bool can_half_close() const override { return true; }
  std::unique_ptr<Transport> StartTls(asio::ssl::context& tls, const std::string& host) override {
    return TlsOver(socket_, tls, host);
  }

 private:
  Socket socket_;
};

// `Below`: a TCP socket, or TLS to a proxy.
template <class Below>
class TlsTransport final : public Transport {
 public:
  using Role = asio::ssl::stream_base::handshake_type;

  TlsTransport(Below below, asio::ssl::context& tls, Role role)
      : stream_(std::move(below), tls), role_(role) {}

  // The certificate of the other side must be for `host`, which is also sent to it if it is a name.
  void Expect(const std::string& host) {
    ErrorCode not_an_address;
    asio::ip::make_address(host, not_an_address);
    std::string name = host;
    if (not_an_address)  // what the macro SSL_set_tlsext_host_name does, without its C cast
      SSL_ctrl(stream_.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
               name.data());
    ErrorCode ignored;
    stream_.set_verify_mode(asio::ssl::verify_peer, ignored);
    stream_.set_verify_callback(
        [problem = problem_, is_for_host = asio::ssl::host_name_verification(host)](
            bool trusted, asio::ssl::verify_context& context) {
          const bool accepted = is_for_host(trusted, context);
          if (!accepted)
            *problem = trusted ? "the certificate is for another host"
                               : X509_verify_cert_error_string(
                                     X509_STORE_CTX_get_error(context.native_handle()));
          return accepted;
        },
        ignored);
  }

  void Handshake(Done done) override { stream_.async_handshake(role_, std::move(done)); }
  void ReadSome(std::span<char> buffer, DoneBytes done) override {
    stream_.async_read_some(asio::buffer(buffer.data(), buffer.size()), std::move(done));
  }
  void WriteSome(std::string_view bytes, DoneBytes done) override {
    stream_.async_write_some(asio::buffer(bytes.data(), bytes.size()), std::move(done));
  }
  // Without TLS's own goodbye, which would have to wait for the client; lengths and chunks delimit
  // the answers.
  void ShutdownWrite() override {
    ErrorCode ignored;
    stream_.lowest_layer().shutdown(tcp::socket::shutdown_send, ignored);
  }
  void Close() override {
    ErrorCode ignored;
    stream_.lowest_layer().close(ignored);
  }
  void WaitForBreak(Done done) override {
    stream_.lowest_layer().async_wait(tcp::socket::wait_error, std::move(done));
  }
  bool can_half_close() const override { return false; }
  std::unique_ptr<Transport> StartTls(asio::ssl::context& tls, const std::string& host) override {
    return TlsOver(stream_, tls, host);
  }
  std::string certificate_problem() const override { return *problem_; }

 private:
  asio::ssl::stream<Below> stream_;
  Role role_;
  // The stream, which calls back, may move on into another transport.
  std::shared_ptr<std::string> problem_ = std::make_shared<std::string>();
};

template <class Stream>
std::unique_ptr<Transport> TlsOver(Stream& below, asio::ssl::context& tls,
                                   const std::string& host) {
  constexpr bool kCarriesTls =
      std::is_same_v<Stream, tcp::socket> || std::is_same_v<Stream, TlsStream>;
  LATTE_CHECK(kCarriesTls, "TLS to {} needs TCP, or TLS to a proxy", host);
  if constexpr (kCarriesTls) {
    auto out = std::make_unique<TlsTransport<Stream>>(std::move(below), tls,
                                                      asio::ssl::stream_base::client);
    out->Expect(host);
    return out;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Transport> MakeTransport(tcp::socket socket) {
  return std::make_unique<PlainTransport<tcp::socket>>(std::move(socket));
}

std::unique_ptr<Transport> MakeTransport(asio::local::stream_protocol::socket socket) {
  return std::make_unique<PlainTransport<asio::local::stream_protocol::socket>>(std::move(socket));
}

std::unique_ptr<Transport> MakeTransport(tcp::socket socket, asio::ssl::context& tls) {
  return std::make_unique<TlsTransport<tcp::socket>>(std::move(socket), tls,
                                                     asio::ssl::stream_base::server);
}

}  // namespace latte
