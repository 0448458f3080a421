#include "src/http/client/client.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/asio/connect.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "src/http/client/client_call.h"
#include "src/http/transport.h"

namespace latte {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::stream_protocol;

class Client final : public HttpClient, public ClientConnections {
 public:
  Client(const HttpUrl& url, const HttpClientOptions& options)
      : url_(url), options_(options), resolver_(io_) {}
  ~Client() override;

  Status LoadCertificates();

  CallId Start(HttpRequest request, HttpReceiver receiver) override;
  void Cancel(CallId call) override;
  void After(std::chrono::nanoseconds delay, std::function<void()> work) override;
  void Run() override {
    io_.restart();
    io_.run();
  }
  void Stop() override { io_.stop(); }
  const HttpUrl& url() const override { return url_; }
  HttpClientStats stats() const override { return stats_; }

  std::unique_ptr<Transport> TakeIdle() override;
  void GiveIdle(std::unique_ptr<Transport> transport) override {
    idle_.push_back(std::move(transport));
  }
  std::shared_ptr<ClientSocket> Connect(Connected done) override;

 private:
  class TcpSocket;
  class UnixSocket;
  using Endpoints = std::vector<tcp::endpoint>;
  using Resolved = std::function<void(const ErrorCode&, const Endpoints&)>;

  void Resolve(Resolved done);
  void Forget(CallId call);

  HttpUrl url_;
  HttpClientOptions options_;
  asio::io_context io_{1};
  std::optional<asio::ssl::context> tls_;
  tcp::resolver resolver_;
  Endpoints endpoints_;            // empty: not known
  std::vector<Resolved> waiting_;  // for the endpoints
  std::vector<std::unique_ptr<Transport>> idle_;
  std::unordered_map<CallId, std::shared_ptr<ClientCall>> calls_;
  CallId next_call_ = 1;
  HttpClientStats stats_;
};

// A TCP socket that is being connected.
class Client::TcpSocket final : public ClientSocket,
                                public std::enable_shared_from_this<TcpSocket> {
 public:
  TcpSocket(Client* client, Connected done)
      : client_(client), done_(std::move(done)), socket_(client->io_) {}

  void Start() {
    client_->Resolve([self = shared_from_this()](const ErrorCode& error, const Endpoints& found) {
      if (error) return self->Finish(error);
      if (!self->closed_) self->ConnectTo(found);
    });
  }
  void Close() override {
    closed_ = true;
    ErrorCode ignored;
    socket_.close(ignored);
  }

 private:
  void ConnectTo(const Endpoints& endpoints) {
    asio::async_connect(socket_, endpoints,
                        [self = shared_from_this()](const ErrorCode& error, const tcp::endpoint&) {
                          self->Finish(error);
                        });
  }
  void Finish(const ErrorCode& error) {
    if (closed_) return;
    const Connected done = std::exchange(done_, {});
    if (error) return done(error, nullptr);
    ErrorCode ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    ++client_->stats_.connections;
    done({}, client_->tls_
                 ? MakeClientTransport(std::move(socket_), *client_->tls_, client_->url_.host)
                 : MakeTransport(std::move(socket_)));
  }

  Client* client_;
  Connected done_;
  tcp::socket socket_;
  bool closed_ = false;
};

class Client::UnixSocket final : public ClientSocket,
                                 public std::enable_shared_from_this<UnixSocket> {
 public:
  UnixSocket(Client* client, Connected done)
      : client_(client), done_(std::move(done)), socket_(client->io_) {}

  void Start() {
    socket_.async_connect(
        stream_protocol::endpoint(client_->url_.socket),
        [self = shared_from_this()](const ErrorCode& error) { self->Finish(error); });
  }
  void Close() override {
    closed_ = true;
    ErrorCode ignored;
    socket_.close(ignored);
  }

 private:
  void Finish(const ErrorCode& error) {
    if (closed_) return;
    const Connected done = std::exchange(done_, {});
    if (error) return done(error, nullptr);
    ++client_->stats_.connections;
    done({}, MakeTransport(std::move(socket_)));
  }

  Client* client_;
  Connected done_;
  stream_protocol::socket socket_;
  bool closed_ = false;
};

// Handlers that never ran hold the calls, which hold sockets of io_: they go first.
Client::~Client() {
  for (const auto& [id, call] : calls_) call->Cancel();
  calls_.clear();
  idle_.clear();
}

Status Client::LoadCertificates() {
  if (url_.scheme != HttpUrl::Scheme::kHttps) return {};
  tls_.emplace(asio::ssl::context::tls_client);
  tls_->set_options(asio::ssl::context::no_sslv2 | asio::ssl::context::no_sslv3 |
                    asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1);
  ErrorCode error;
  if (options_.ca_file.empty()) {
    tls_->set_default_verify_paths(error);
  } else {
    tls_->load_verify_file(options_.ca_file, error);
  }
  if (!error) return {};
  return InvalidArgument(fmt::format(
      "{}: expected a PEM file with certificates to trust: {}",
      options_.ca_file.empty() ? "the system's certificates" : options_.ca_file, error.message()));
}

HttpClient::CallId Client::Start(HttpRequest request, HttpReceiver receiver) {
  const CallId id = next_call_++;
  auto call = std::make_shared<ClientCall>(io_, this, url_, options_, std::move(request),
                                           std::move(receiver), [this, id] { Forget(id); });
  calls_.emplace(id, call);
  stats_.open_calls = static_cast<int64_t>(calls_.size());
  stats_.peak_open_calls = std::max(stats_.peak_open_calls, stats_.open_calls);
  call->Start();
  return id;
}

void Client::Cancel(CallId call) {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  const std::shared_ptr<ClientCall> ended = found->second;
  Forget(call);
  ended->Cancel();
}

void Client::Forget(CallId call) {
  calls_.erase(call);
  stats_.open_calls = static_cast<int64_t>(calls_.size());
}

void Client::After(std::chrono::nanoseconds delay, std::function<void()> work) {
  auto timer = std::make_shared<asio::steady_timer>(io_);
  timer->expires_after(delay);
  timer->async_wait([timer, work = std::move(work)](const ErrorCode& error) {
    if (!error) work();
  });
}

std::unique_ptr<Transport> Client::TakeIdle() {
  if (idle_.empty()) return nullptr;
  std::unique_ptr<Transport> out = std::move(idle_.back());
  idle_.pop_back();
  return out;
}

std::shared_ptr<ClientSocket> Client::Connect(Connected done) {
  if (url_.scheme == HttpUrl::Scheme::kUnix) {
    auto socket = std::make_shared<UnixSocket>(this, std::move(done));
    socket->Start();
    return socket;
  }
  auto socket = std::make_shared<TcpSocket>(this, std::move(done));
  socket->Start();
  return socket;
}

void Client::Resolve(Resolved done) {
  if (!endpoints_.empty()) return done({}, endpoints_);
  waiting_.push_back(std::move(done));
  if (waiting_.size() > 1) return;
  resolver_.async_resolve(url_.host, std::to_string(url_.port), tcp::resolver::numeric_service,
                          [this](const ErrorCode& error, const tcp::resolver::results_type& found) {
                            if (!error)
                              for (const auto& entry : found)
                                endpoints_.push_back(entry.endpoint());
                            for (const Resolved& waiting : std::exchange(waiting_, {}))
                              waiting(error, endpoints_);
                          });
}

constexpr auto kPollEvery = std::chrono::milliseconds(50);

// A response on its way. The last timer of PollInterrupt may outlive Fetch.
struct Fetched {
  HttpResponse response;
  Status status;
  bool over = false;

  void End(HttpClient* client, Status ended) {
    status = std::move(ended);
    over = true;
    client->Stop();
  }
};

void PollInterrupt(HttpClient* client, HttpClient::CallId call,
                   const std::shared_ptr<Fetched>& fetched, std::function<bool()> interrupted) {
  if (fetched->over) return;
  if (interrupted()) {
    client->Cancel(call);
    return fetched->End(
        client, Fail(Code::kCancelled, "stopped while waiting for " + client->url().Origin()));
  }
  client->After(kPollEvery, [=] { PollInterrupt(client, call, fetched, interrupted); });
}

}  // namespace

std::string_view HttpFailureName(HttpFailure failure) {
  switch (failure) {
    case HttpFailure::kNone:
      return "none";
    case HttpFailure::kRequest:
      return "bad request";
    case HttpFailure::kConnect:
      return "no connection";
    case HttpFailure::kTimeout:
      return "timeout";
    case HttpFailure::kLost:
      return "connection lost";
    case HttpFailure::kBadResponse:
      return "bad response";
  }
  return "unknown";
}

Result<std::unique_ptr<HttpClient>> HttpClient::Create(const HttpUrl& url,
                                                       const HttpClientOptions& options) {
  auto client = std::make_unique<Client>(url, options);
  LATTE_RETURN_IF_ERROR(client->LoadCertificates());
  return client;
}

Result<HttpResponse> Fetch(HttpClient& client, HttpRequest request,
                           std::function<bool()> interrupted) {
  const auto fetched = std::make_shared<Fetched>();
  const HttpClient::CallId call = client.Start(
      std::move(request),
      {.on_head = [=](const HttpResponse& head) { fetched->response = head; },
       .on_body = [=](std::string_view piece) { fetched->response.body += piece; },
       .on_end = [=, &client](Status status,
                              HttpFailure) { fetched->End(&client, std::move(status)); }});
  if (interrupted) PollInterrupt(&client, call, fetched, std::move(interrupted));
  while (!fetched->over) client.Run();
  LATTE_RETURN_IF_ERROR(fetched->status);
  return std::move(fetched->response);
}

}  // namespace latte
