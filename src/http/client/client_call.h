// One call of the client: a connection, the request, the response. Includes Boost; for files of
// src/http only.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "src/http/client/client.h"
#include "src/http/client/client_connect.h"
#include "src/http/client/response_reader.h"

namespace latte {

// Connections of one client, idle ones and new ones.
class ClientConnections {
 public:
  virtual ~ClientConnections() = default;
  virtual std::unique_ptr<Transport> TakeIdle() = 0;  // nullptr: there is none
  virtual void GiveIdle(std::unique_ptr<Transport> transport) = 0;
  virtual std::shared_ptr<ClientSocket> Connect(ClientConnector::Connected done) = 0;
};

class ClientCall : public std::enable_shared_from_this<ClientCall> {
 public:
  // `connections` and `url` must outlive the call. `forget` is called before on_end.
  ClientCall(boost::asio::io_context& io, ClientConnections* connections, const HttpUrl& url,
             const HttpClientOptions& options, HttpRequest request, HttpReceiver receiver,
             std::function<void()> forget);

  void Start();
  void Cancel();

 private:
  using Clock = std::chrono::steady_clock;

  void Connect();
  void Exchange();
  void Write();
  void Read();
  void OnRead(const ErrorCode& error, size_t bytes);
  void OnConnectionEnd(const ErrorCode& error);
  void OnHead(const HttpResponse& head);

  // Fails the call unless it goes on within `limit`, or the whole within the total time.
  void SetTimeout(std::chrono::milliseconds limit, std::string_view phase);
  void OnTimeout(std::chrono::milliseconds limit, std::string_view phase);
  void Fail(HttpFailure failure, Code code, const std::string& message);
  void Finish(Status status, HttpFailure failure);
  void Release();

  boost::asio::io_context& io_;
  ClientConnections* connections_;
  const HttpUrl& url_;
  const HttpClientOptions& options_;
  HttpReceiver receiver_;
  std::function<void()> forget_;
  std::string method_;
  std::string out_;  // the request
  size_t sent_ = 0;
  bool bad_request_ = false;
  boost::asio::steady_timer timer_;
  Clock::time_point started_;

  std::shared_ptr<ClientSocket> socket_;  // while connecting
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Transport> retired_;  // lives until its handlers have run
  bool reused_ = false;
  bool head_arrived_ = false;
  std::optional<ResponseReader> reader_;
  std::array<char, 16 << 10> buffer_;  // a record of TLS
  bool over_ = false;
};

}  // namespace latte
