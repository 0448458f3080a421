#include "src/http/transport.h"

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>

namespace latte {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

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

 private:
  Socket socket_;
};

class TlsTransport final : public Transport {
 public:
  using Role = asio::ssl::stream_base::handshake_type;

  TlsTransport(tcp::socket socket, asio::ssl::context& tls, Role role)
      : stream_(std::move(socket), tls), role_(role) {}

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
    stream_.set_verify_callback(asio::ssl::host_name_verification(host), ignored);
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

 private:
  asio::ssl::stream<tcp::socket> stream_;
  Role role_;
};

}  // namespace

std::unique_ptr<Transport> MakeTransport(tcp::socket socket) {
  return std::make_unique<PlainTransport<tcp::socket>>(std::move(socket));
}

std::unique_ptr<Transport> MakeTransport(asio::local::stream_protocol::socket socket) {
  return std::make_unique<PlainTransport<asio::local::stream_protocol::socket>>(std::move(socket));
}

std::unique_ptr<Transport> MakeTransport(tcp::socket socket, asio::ssl::context& tls) {
  return std::make_unique<TlsTransport>(std::move(socket), tls, asio::ssl::stream_base::server);
}

std::unique_ptr<Transport> MakeClientTransport(tcp::socket socket, asio::ssl::context& tls,
                                               const std::string& host) {
  auto out = std::make_unique<TlsTransport>(std::move(socket), tls, asio::ssl::stream_base::client);
  out->Expect(host);
  return out;
}

}  // namespace latte
