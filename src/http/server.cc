#include "src/http/server.h"

#include <algorithm>
#include <exception>
#include <unordered_map>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "src/http/connection/connection.h"
#include "src/http/io_thread.h"
#include "src/http/listen/tcp_options.h"
#include "src/http/listen/tls_context.h"
#include "src/http/listen/unix_socket.h"
#include "src/http/transport.h"

namespace latte {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::stream_protocol;

constexpr auto kSweep = std::chrono::milliseconds(100);
// Ports that are tried until one is free on all addresses of a name.
constexpr int kMostPortTries = 16;
// Connections beyond the limit that are told so; further ones are closed.
constexpr int64_t kMostRefusing = 64;

tl::unexpected<Error> CannotListen(const std::string& where, const ErrorCode& error,
                                   std::string_view advice = "") {
  const bool taken = error == asio::error::address_in_use;
  return Fail(
      error == asio::error::access_denied || taken ? Code::kUnavailable : Code::kInvalidArgument,
      fmt::format("cannot listen on {}: {}{}", where, error.message(), taken ? advice : ""));
}

// A socket that listens. Its accept is not pending after the system has refused one, e.g. because
// descriptors are used up; the sweep tries again.
template <class Protocol>
struct Listener {
  explicit Listener(asio::io_context& io) : acceptor(io) {}

  typename Protocol::acceptor acceptor;
  bool accepting = false;
};
using TcpListener = Listener<tcp>;
using UnixListener = Listener<stream_protocol>;

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
    shared_.too_much_unsent = [this] { PostMakeRoom(); };
    shared_.io = std::make_shared<IoThread>(&io_);
  }
  ~Server() override {
    shared_.io->End();
    unix_path_.reset();
  }

  Status Open();

  void Run() override;
  void Post(std::function<void()> work) override { shared_.io->Post(std::move(work)); }
  void Repeat(std::chrono::milliseconds period, std::function<void()> work) override;
  void OnSignal(const std::vector<int>& signals, std::function<void(int)> work) override;
  void StopAccepting() override;
  void Stop() override;

  int port() const override { return port_; }
  std::vector<std::string> urls() const override { return urls_; }
  HttpServerStats stats() const override {
    HttpServerStats out = shared_.stats;
    out.connections = static_cast<int64_t>(connections_.size());
    out.unsent_bytes = *shared_.unsent_bytes;
    out.body_bytes = *shared_.body_bytes;
    return out;
  }

 private:
  Status OpenTcp();
  Result<std::vector<tcp::endpoint>> Resolve();
  Status OpenTcpAt(const std::vector<tcp::endpoint>& endpoints);
  Status OpenTcpAt(const tcp::endpoint& endpoint);
  Status OpenUnix();
  void AcceptAll();
  template <class Protocol>
  void Accept(Listener<Protocol>* listener);
  void Take(tcp::socket socket);
  void Take(stream_protocol::socket socket);
  void Add(std::unique_ptr<Transport> transport, std::string peer, bool is_unix);
  void Forget(HttpConnection* connection) { connections_.erase(connection); }
  void StartSweep();
  void Sweep();
  void PostMakeRoom();
  void MakeRoom();
  void WaitForSignal(std::shared_ptr<asio::signal_set> set, std::function<void(int)> work);
  void RepeatOn(std::shared_ptr<asio::steady_timer> timer, std::chrono::milliseconds period,
                std::function<void()> work);

  HttpServerOptions options_;
  HttpShared shared_;
  asio::io_context io_{1};
  std::unique_ptr<asio::ssl::context> tls_;
  std::vector<std::unique_ptr<TcpListener>> tcp_;
  std::unique_ptr<UnixListener> unix_;
  std::optional<UnixSocketPath> unix_path_;
  asio::steady_timer sweep_;
  bool sweep_pending_ = false;
  bool room_pending_ = false;
  std::unordered_map<HttpConnection*, std::shared_ptr<HttpConnection>> connections_;
  int port_ = 0;
  std::vector<std::string> urls_;
};

Status Server::Open() {
  if (options_.tls_certificate.empty() != options_.tls_key.empty())
    return InvalidArgument("TLS: expected a certificate and its key, found one of them");
  if (!options_.tls_certificate.empty()) {
    LATTE_ASSIGN_OR_RETURN(tls_, LoadServerTls(options_.tls_certificate, options_.tls_key));
  }
  if (!options_.host.empty()) LATTE_RETURN_IF_ERROR(OpenTcp());
  if (!options_.unix_socket.empty()) LATTE_RETURN_IF_ERROR(OpenUnix());
  if (urls_.empty()) return InvalidArgument("expected an address or a Unix socket to listen on");
  AcceptAll();
  return {};
}

Result<std::vector<tcp::endpoint>> Server::Resolve() {
  if (options_.port < 0 || options_.port > 65535)
    return InvalidArgument(fmt::format("port: expected 0 to 65535, found {}", options_.port));
  std::string host = options_.host;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  ErrorCode error;
  const auto found =
      tcp::resolver(io_).resolve(host, std::to_string(options_.port),
                                 tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error)
    return InvalidArgument(
        fmt::format("host: expected a name or an address of this machine, found '{}': {}",
                    options_.host, error.message()));
  std::vector<tcp::endpoint> out;
  for (const auto& entry : found)
    if (std::find(out.begin(), out.end(), entry.endpoint()) == out.end())
      out.push_back(entry.endpoint());
  return out;
}

Status Server::OpenTcp() {
  LATTE_ASSIGN_OR_RETURN(const std::vector<tcp::endpoint> endpoints, Resolve());
  Status opened;
  for (int i = 0; i < kMostPortTries; ++i) {
    opened = OpenTcpAt(endpoints);
    // The free port of the first address may be taken at the second one.
    if (opened || options_.port != 0 || opened.error().code != Code::kUnavailable) break;
    tcp_.clear();
    urls_.clear();
    port_ = 0;
  }
  return opened;
}

// The addresses of a name get one port. A machine without IPv6 may still know ::1 as localhost.
Status Server::OpenTcpAt(const std::vector<tcp::endpoint>& endpoints) {
  Status opened;
  for (tcp::endpoint endpoint : endpoints) {
    if (port_ != 0) endpoint.port(static_cast<uint16_t>(port_));
    opened = OpenTcpAt(endpoint);
    if (!opened && opened.error().code == Code::kUnavailable) return opened;
  }
  return tcp_.empty() ? opened : Status();
}

Status Server::OpenTcpAt(const tcp::endpoint& endpoint) {
  const std::string where = fmt::format("{}:{}", HostInUrl(endpoint), endpoint.port());
  auto listener = std::make_unique<TcpListener>(io_);
  tcp::acceptor* acceptor = &listener->acceptor;
  ErrorCode error;
  acceptor->open(endpoint.protocol(), error);
  if (!error) acceptor->set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.address().is_v6())
    acceptor->set_option(asio::ip::v6_only(!endpoint.address().is_unspecified()), error);
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
  if (error) return CannotListen(where, error, "; choose another port with --port");
  const tcp::endpoint local = acceptor->local_endpoint(error);
  if (error) return CannotListen(where, error);
  port_ = local.port();
  urls_.push_back(fmt::format("http{}://{}:{}", tls_ ? "s" : "", HostInUrl(local), port_));
  tcp_.push_back(std::move(listener));
  return {};
}

Status Server::OpenUnix() {
  LATTE_ASSIGN_OR_RETURN(UnixSocketPath path, UnixSocketPath::Prepare(options_.unix_socket));
  unix_ = std::make_unique<UnixListener>(io_);
  ErrorCode error;
  unix_->acceptor.open(stream_protocol(), error);
  if (!error) unix_->acceptor.bind(stream_protocol::endpoint(options_.unix_socket), error);
  if (!error) path.Own();
  unix_path_.emplace(std::move(path));
  if (!error) unix_->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return CannotListen(options_.unix_socket, error);
  urls_.push_back("unix:" + options_.unix_socket);
  return {};
}

void Server::AcceptAll() {
  for (const auto& listener : tcp_) Accept(listener.get());
  if (unix_) Accept(unix_.get());
}

template <class Protocol>
void Server::Accept(Listener<Protocol>* listener) {
  if (listener->accepting || !listener->acceptor.is_open()) return;
  listener->acceptor.async_accept([this, listener](ErrorCode error, auto socket) {
    listener->accepting = false;
    if (error) return;
    Take(std::move(socket));
    Accept(listener);
  });
  listener->accepting = true;
}

void Server::Take(tcp::socket socket) {
  try {
    SetTcpOptions(socket);
    ErrorCode error;
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

void Server::StartSweep() {
  if (sweep_pending_) return;
  sweep_.expires_after(kSweep);
  sweep_.async_wait([this](ErrorCode error) {
    sweep_pending_ = false;
    if (error) return;
    StartSweep();
    Sweep();
  });
  sweep_pending_ = true;
}

void Server::Sweep() {
  AcceptAll();
  std::vector<std::shared_ptr<HttpConnection>> all;
  all.reserve(connections_.size());
  for (const auto& [key, connection] : connections_) all.push_back(connection);
  const auto now = HttpConnection::Clock::now();
  for (const auto& connection : all) connection->CheckDeadline(now);
}

// Not at once: the connection that has too much is inside of a call of its handler.
void Server::PostMakeRoom() {
  if (room_pending_) return;
  shared_.io->Post([this] {
    room_pending_ = false;
    MakeRoom();
  });
  room_pending_ = true;
}

// Drops those that are behind for the longest time. A single answer is sent whatever its length.
void Server::MakeRoom() {
  std::vector<std::shared_ptr<HttpConnection>> behind;
  for (const auto& [key, connection] : connections_)
    if (connection->unsent_bytes() > 0) behind.push_back(connection);
  std::sort(behind.begin(), behind.end(),
            [](const auto& a, const auto& b) { return a->waiting_since() < b->waiting_since(); });
  for (size_t i = 0; i + 1 < behind.size(); ++i) {
    if (*shared_.unsent_bytes <= options_.max_answers_bytes) return;
    behind[i]->Drop();
  }
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
  for (const auto& listener : tcp_) listener->acceptor.close(ignored);
  if (unix_) unix_->acceptor.close(ignored);
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
  while (!io_.stopped()) {
    try {
      StartSweep();
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
