#include "src/http/transport.h"

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
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
  TlsTransport(tcp::socket socket, asio::ssl::context& tls) : stream_(std::move(socket), tls) {}

  void Handshake(Done done) override {
    stream_.async_handshake(asio::ssl::stream_base::server, std::move(done));
  }
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
};

}  // namespace

std::unique_ptr<Transport> MakeTransport(tcp::socket socket) {
  return std::make_unique<PlainTransport<tcp::socket>>(std::move(socket));
}

std::unique_ptr<Transport> MakeTransport(asio::local::stream_protocol::socket socket) {
  return std::make_unique<PlainTransport<asio::local::stream_protocol::socket>>(std::move(socket));
}

std::unique_ptr<Transport> MakeTransport(tcp::socket socket, asio::ssl::context& tls) {
  return std::make_unique<TlsTransport>(std::move(socket), tls);
}

}  // namespace latte
