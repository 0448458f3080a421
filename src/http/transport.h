// A connected socket: TCP, TLS over TCP, or Unix. Includes Boost; for files of src/http only.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>

namespace latte {

using ErrorCode = boost::system::error_code;

// All handlers are called by the io_context, never inside the call. At most one read and one write
// at a time.
class Transport {
 public:
  using Done = std::function<void(ErrorCode)>;
  using DoneBytes = std::function<void(ErrorCode, size_t)>;

  virtual ~Transport() = default;
  // TLS: the handshake, as server or as client; others: done at once.
  virtual void Handshake(Done done) = 0;
  virtual void ReadSome(std::span<char> buffer, DoneBytes done) = 0;
  virtual void WriteSome(std::string_view bytes, DoneBytes done) = 0;
  // Ends the server's direction; the client sees the end of the answer.
  virtual void ShutdownWrite() = 0;
  virtual void Close() = 0;
  // `done` is called when the socket is broken (the client has closed it), or is closed here.
  virtual void WaitForBreak(Done done) = 0;
  // Whether the end of the client's direction may leave the other open.
  virtual bool can_half_close() const = 0;
  // The client's side of TLS over this connection, which moves into it: the handshake fails unless
  // the certificate is trusted and is for `host`. For TCP, and once more over TLS to a proxy.
  virtual std::unique_ptr<Transport> StartTls(boost::asio::ssl::context& tls,
                                              const std::string& host) = 0;
  // After a handshake that failed: why the certificate was not accepted; empty: for another reason.
  virtual std::string certificate_problem() const { return ""; }
};

std::unique_ptr<Transport> MakeTransport(boost::asio::ip::tcp::socket socket);
std::unique_ptr<Transport> MakeTransport(boost::asio::local::stream_protocol::socket socket);
std::unique_ptr<Transport> MakeTransport(boost::asio::ip::tcp::socket socket,
                                         boost::asio::ssl::context& tls);

}  // namespace latte
