// Opens the connections of a client: names, addresses, proxies, TLS. Includes Boost; for files of
// src/http only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include "src/http/client/client.h"
#include "src/http/transport.h"

namespace latte {

// A connection that is being opened.
class ClientSocket {
 public:
  virtual ~ClientSocket() = default;
  virtual void Close() = 0;  // the function of Connect is not called afterwards
  // What has not happened yet, for a message: "an answer of 192.0.2.1:443".
  virtual std::string waits_for() const = 0;
};

struct ConnectError {
  HttpFailure failure = HttpFailure::kConnect;
  std::string message;
};

class ClientConnector {
 public:
  using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;
  using Connected = std::function<void(tl::expected<std::unique_ptr<Transport>, ConnectError>)>;
  using Resolved = std::function<void(const ErrorCode&)>;

  // `url` and `options` must outlive the connector. `endpoints`: of the first host on the way, the
  // server or its proxy; empty: the name tells them.
  ClientConnector(boost::asio::io_context& io, const HttpUrl& url, const HttpClientOptions& options,
                  Endpoints endpoints = {});

  // Before the first connection. Errors: of LoadAuthorities.
  [[nodiscard]] Status LoadCertificates();

  // `done` gets a connection that requests can be sent over. Until then, or until it is closed, the
  // socket is alive. The caller limits the time.
  std::shared_ptr<ClientSocket> Connect(Connected done);

 private:
  class TcpSocket;
  class UnixSocket;

  void Resolve(Resolved done);
  const HttpUrl& first() const { return options_.proxy ? options_.proxy->url : url_; }
  std::string ToFirst() const;

  boost::asio::io_context& io_;
  const HttpUrl& url_;
  const HttpClientOptions& options_;
  std::optional<boost::asio::ssl::context> tls_;
  boost::asio::ip::tcp::resolver resolver_;
  Endpoints endpoints_;            // empty: not known
  std::vector<Resolved> waiting_;  // for the endpoints
};

// IPv6 and IPv4 in turn, so that a network without one of them costs one try only (RFC 8305 §4).
ClientConnector::Endpoints InTurn(const ClientConnector::Endpoints& endpoints);

}  // namespace latte
