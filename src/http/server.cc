#include "src/http/server.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <exception>
#include <filesystem>
#include <unordered_map>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "src/http/connection.h"
#include "src/http/transport.h"
#include "src/http/unix_socket.h"

namespace latte {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::stream_protocol;

constexpr auto kSweep = std::chrono::milliseconds(100);
// After a refusal by the system, which may lack descriptors.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);
// Connections beyond the limit that are told so; further ones are closed.
constexpr int64_t kMostRefusing = 64;

tl::unexpected<Error> CannotListen(const std::string& where, const ErrorCode& error) {
  const bool taken = error == asio::error::address_in_use;
  return Fail(
      error == asio::error::access_denied || taken ? Code::kUnavailable : Code::kInvalidArgument,
      fmt::format("cannot listen on {}: {}{}", where, error.message(),
                  taken ? "; choose another one with --port" : ""));
}

std::string HostInUrl(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return endpoint.address().is_v6() ? "[" + address + "]" : address;
}

class Server final : public HttpServer {
 public:
  Server(const HttpServerOptions& options, HttpHandler* handler) : options_(options), sweep_(io_) {
    shared_.options = &options_;
    shared_.handler = handler;
    shared_.closed = [this](HttpConnection* connection) { Forget(connection); };
    shared_.post = [this](std::function<void()> work) { asio::post(io_, std::move(work)); };
  }
  ~Server() override { unix_path_.reset(); }

  Status Open();

  void Run() override;
  void Post(std::function<void()> work) override { asio::post(io_, std::move(work)); }
  void Repeat(std::chrono::milliseconds period, std::function<void()> work) override;
  void OnSignal(const std::vector<int>& signals, std::function<void(int)> work) override;
  void StopAccepting() override;
  void Stop() override;

  int port() const override { return port_; }
  std::vector<std::string> urls() const override { return urls_; }
  HttpServerStats stats() const override {
    HttpServerStats out = shared_.stats;
    out.connections = static_cast<int64_t>(connections_.size());
    return out;
  }

 private:
  Status LoadCertificate();
  Status OpenTcp();
  Status OpenTcpAt(const tcp::endpoint& endpoint);
  Status OpenUnix();
  template <class Acceptor>
  void Accept(Acceptor* acceptor);
  void Take(tcp::socket socket);
  void Take(stream_protocol::socket socket);
  void Add(std::unique_ptr<Transport> transport, std::string peer, bool is_unix);
  void Forget(HttpConnection* connection) { connections_.erase(connection); }
  void Sweep();
  void WaitForSignal(std::shared_ptr<asio::signal_set> set, std::function<void(int)> work);
  void RepeatOn(std::shared_ptr<asio::steady_timer> timer, std::chrono::milliseconds period,
                std::function<void()> work);

  HttpServerOptions options_;
  HttpShared shared_;
  asio::io_context io_{1};
  std::optional<asio::ssl::context> tls_;
  std::vector<std::unique_ptr<tcp::acceptor>> tcp_;
  std::unique_ptr<stream_protocol::acceptor> unix_;
  std::optional<UnixSocketPath> unix_path_;
  asio::steady_timer sweep_;
  std::unordered_map<HttpConnection*, std::shared_ptr<HttpConnection>> connections_;
  int port_ = 0;
  std::vector<std::string> urls_;
};

Status Server::Open() {
  LATTE_RETURN_IF_ERROR(LoadCertificate());
  if (!options_.host.empty()) LATTE_RETURN_IF_ERROR(OpenTcp());
  if (!options_.unix_socket.empty()) LATTE_RETURN_IF_ERROR(OpenUnix());
  if (urls_.empty()) return InvalidArgument("expected an address or a Unix socket to listen on");
  for (const auto& acceptor : tcp_) Accept(acceptor.get());
  if (unix_) Accept(unix_.get());
  return {};
}

Status Server::LoadCertificate() {
  if (options_.tls_certificate.empty()) return {};
  tls_.emplace(asio::ssl::context::tls_server);
  ErrorCode error;
  tls_->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                    asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 |
                    asio::ssl::context::no_tlsv1_1);
  tls_->use_certificate_chain_file(options_.tls_certificate, error);
  if (error)
    return InvalidArgument(fmt::format("{}: expected a PEM file with a certificate: {}",
                                       options_.tls_certificate, error.message()));
  tls_->use_private_key_file(options_.tls_key, asio::ssl::context::pem, error);
  if (error)
    return InvalidArgument(fmt::format("{}: expected a PEM file with the key of {}: {}",
                                       options_.tls_key, options_.tls_certificate,
                                       error.message()));
  return {};
}

Status Server::OpenTcp() {
  ErrorCode error;
  tcp::resolver resolver(io_);
  std::string host = options_.host;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const auto found =
      resolver.resolve(host, std::to_string(options_.port),
                       tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error)
    return InvalidArgument(
        fmt::format("host: expected a name or an address of this machine, found "
                    "'{}': {}",
                    options_.host, error.message()));
  std::vector<tcp::endpoint> endpoints;
  for (const auto& entry : found)
    if (std::find(endpoints.begin(), endpoints.end(), entry.endpoint()) == endpoints.end())
      endpoints.push_back(entry.endpoint());
  Status opened;
  for (tcp::endpoint& endpoint : endpoints) {
    if (port_ != 0) endpoint.port(static_cast<uint16_t>(port_));
    opened = OpenTcpAt(endpoint);
    // A machine without IPv6 still resolves localhost to ::1.
    if (!opened && endpoints.size() == 1) return opened;
  }
  return tcp_.empty() ? opened : Status();
}

Status Server::OpenTcpAt(const tcp::endpoint& endpoint) {
  const std::string where = fmt::format("{}:{}", HostInUrl(endpoint), endpoint.port());
  auto acceptor = std::make_unique<tcp::acceptor>(io_);
  ErrorCode error;
  acceptor->open(endpoint.protocol(), error);
  if (!error) acceptor->set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.address().is_v6())
    acceptor->set_option(asio::ip::v6_only(!endpoint.address().is_unspecified()), error);
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
  if (error) return CannotListen(where, error);
  const tcp::endpoint local = acceptor->local_endpoint(error);
  if (error) return CannotListen(where, error);
  port_ = local.port();
  urls_.push_back(fmt::format("http{}://{}:{}", tls_ ? "s" : "", HostInUrl(local), port_));
  tcp_.push_back(std::move(acceptor));
  return {};
}

Status Server::OpenUnix() {
  LATTE_ASSIGN_OR_RETURN(UnixSocketPath path, UnixSocketPath::Prepare(options_.unix_socket));
  unix_ = std::make_unique<stream_protocol::acceptor>(io_);
  ErrorCode error;
  unix_->open(stream_protocol(), error);
  if (!error) unix_->bind(stream_protocol::endpoint(options_.unix_socket), error);
  if (!error) path.Own();
  unix_path_.emplace(std::move(path));
  if (!error) unix_->listen(asio::socket_base::max_listen_connections, error);
  if (error) return CannotListen(options_.unix_socket, error);
  urls_.push_back("unix:" + options_.unix_socket);
  return {};
}

template <class Acceptor>
void Server::Accept(Acceptor* acceptor) {
  acceptor->async_accept([this, acceptor](ErrorCode error, auto socket) {
    if (!acceptor->is_open()) return;
    if (!error) {
      Take(std::move(socket));
      return Accept(acceptor);
    }
    auto pause = std::make_shared<asio::steady_timer>(io_, kAcceptPause);
    pause->async_wait([this, acceptor, pause](ErrorCode) {
      if (acceptor->is_open()) Accept(acceptor);
    });
  });
}

void Server::Take(tcp::socket socket) {
  try {
    ErrorCode error;
    socket.set_option(tcp::no_delay(true), error);
    const tcp::endpoint peer = socket.remote_endpoint(error);
    const std::string name = error ? "unknown" : fmt::format("{}:{}", HostInUrl(peer), peer.port());
    Add(tls_ ? MakeTransport(std::move(socket), *tls_) : MakeTransport(std::move(socket)), name,
        false);
  } catch (const std::exception&) {  // no memory: the connection ends
  }
}

void Server::Take(stream_protocol::socket socket) {
  try {
    Add(MakeTransport(std::move(socket)), "unix", true);
  } catch (const std::exception&) {
  }
}

void Server::Add(std::unique_ptr<Transport> transport, std::string peer, bool is_unix) {
  ++shared_.stats.accepted;
  const auto open = static_cast<int64_t>(connections_.size());
  const bool full = open >= options_.max_connections;
  if (full) ++shared_.stats.refused_connections;
  if (full && (tls_ || open >= options_.max_connections + kMostRefusing)) return;
  auto connection =
      std::make_shared<HttpConnection>(&shared_, std::move(transport), std::move(peer), is_unix);
  connections_.emplace(connection.get(), connection);
  if (full) {
    connection->RefuseForLoad();
  } else {
    connection->Start();
  }
}

void Server::Sweep() {
  sweep_.expires_after(kSweep);
  sweep_.async_wait([this](ErrorCode error) {
    if (error) return;
    std::vector<std::shared_ptr<HttpConnection>> all;
    all.reserve(connections_.size());
    for (const auto& [key, connection] : connections_) all.push_back(connection);
    const auto now = HttpConnection::Clock::now();
    for (const auto& connection : all) connection->CheckDeadline(now);
    Sweep();
  });
}

void Server::Repeat(std::chrono::milliseconds period, std::function<void()> work) {
  RepeatOn(std::make_shared<asio::steady_timer>(io_), period, std::move(work));
}

void Server::RepeatOn(std::shared_ptr<asio::steady_timer> timer, std::chrono::milliseconds period,
                      std::function<void()> work) {
  timer->expires_after(period);
  timer->async_wait([this, timer, period, work = std::move(work)](ErrorCode error) {
    if (error) return;
    RepeatOn(timer, period, work);
    work();
  });
}

void Server::OnSignal(const std::vector<int>& signals, std::function<void(int)> work) {
  auto set = std::make_shared<asio::signal_set>(io_);
  for (const int signal : signals) set->add(signal);
  WaitForSignal(std::move(set), std::move(work));
}

void Server::WaitForSignal(std::shared_ptr<asio::signal_set> set, std::function<void(int)> work) {
  set->async_wait([this, set, work = std::move(work)](ErrorCode error, int signal) {
    if (error) return;
    WaitForSignal(set, work);
    work(signal);
  });
}

void Server::StopAccepting() {
  ErrorCode ignored;
  for (const auto& acceptor : tcp_) acceptor->close(ignored);
  if (unix_) unix_->close(ignored);
  unix_path_.reset();
  shared_.draining = true;
  std::vector<std::shared_ptr<HttpConnection>> idle;
  for (const auto& [key, connection] : connections_)
    if (connection->idle()) idle.push_back(connection);
  for (const auto& connection : idle) connection->Close();
}

void Server::Stop() {
  asio::post(io_, [this] {
    std::vector<std::shared_ptr<HttpConnection>> all;
    for (const auto& [key, connection] : connections_) all.push_back(connection);
    for (const auto& connection : all) connection->Close();
    io_.stop();
  });
}

void Server::Run() {
  Sweep();
  while (!io_.stopped()) {
    try {
      io_.run();
    } catch (const std::exception&) {
      // A lack of memory outside of connections, which catch theirs: what threw is lost, and the
      // others go on.
    }
  }
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::Listen(const HttpServerOptions& options,
                                                       HttpHandler* handler) {
  try {
    auto server = std::make_unique<Server>(options, handler);
    LATTE_RETURN_IF_ERROR(server->Open());
    return server;
  } catch (const boost::system::system_error& thrown) {
    return Fail(Code::kUnavailable, fmt::format("cannot listen: {}", thrown.what()));
  }
}

}  // namespace latte
