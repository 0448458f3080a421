#include "src/http/client/client_connect.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "src/http/client/certificates.h"
#include "src/http/client/response_reader.h"

namespace latte {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::stream_protocol;
using Scheme = HttpUrl::Scheme;

// How long an address may be silent before the next one is tried, too (RFC 8305 §5).
constexpr auto kNextAddressAfter = std::chrono::milliseconds(250);
constexpr size_t kMostToldAddresses = 4;  // in a message

std::string AddressText(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return fmt::format("{}:{}", endpoint.address().is_v6() ? "[" + address + "]" : address,
                     endpoint.port());
}

std::string ConnectText(const HttpProxy& proxy, const HttpUrl& url) {
  const std::string target = url.HostAndPort();
  std::string out = fmt::format("CONNECT {} HTTP/1.1\r\nHost: {}\r\n", target, target);
  if (!proxy.authorization.empty())
    out += fmt::format("Proxy-Authorization: {}\r\n", proxy.authorization);
  return out + "\r\n";
}

// A thread that starts meanwhile takes no signals.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

// A TCP connection: addresses, one of which answers; the proxy's tunnel; TLS.
class ClientConnector::TcpSocket final : public ClientSocket,
                                         public std::enable_shared_from_this<TcpSocket> {
 public:
  TcpSocket(ClientConnector* connector, Connected done)
      : connector_(connector),
        url_(connector->url_),
        options_(connector->options_),
        done_(std::move(done)),
        timer_(connector->io_) {}

  void Start() {
    waits_for_ = fmt::format("the address of {}", connector_->first().host);
    connector_->Resolve([self = shared_from_this()](const ErrorCode& error) {
      if (self->closed_) return;
      if (!error) return self->TryAll();
      const auto& proxy = self->options_.proxy;
      self->Fail(HttpFailure::kName,
                 fmt::format("no address for '{}'{}: {}; {}", self->connector_->first().host,
                             proxy ? ", the " + proxy->Text() : "", error.message(),
                             self->options_.connect_advice));
    });
  }

  void Close() override {
    closed_ = true;
    timer_.cancel();
    tries_.clear();
    if (transport_) transport_->Close();
  }

  std::string waits_for() const override {
    std::string out = waits_for_;
    for (size_t i = 0; i < tries_.size(); ++i)
      if (tries_[i].socket) out += (out.empty() ? "" : ", ") + AddressText(tries_[i].endpoint);
    return out;
  }

 private:
  struct Try {
    tcp::endpoint endpoint;
    std::unique_ptr<tcp::socket> socket;  // while it goes on
    std::string error;                    // that ended it
  };

  void TryAll() {
    waits_for_.clear();
    for (const tcp::endpoint& endpoint : connector_->endpoints_)
      tries_.push_back({endpoint, nullptr, ""});
    TryNext();
  }

  void TryNext() {
    if (next_ >= tries_.size()) return;
    const size_t number = next_++;
    auto& socket = tries_[number].socket;
    socket = std::make_unique<tcp::socket>(connector_->io_);
    socket->async_connect(tries_[number].endpoint,
                          [self = shared_from_this(), number](const ErrorCode& error) {
                            if (!self->closed_ && !self->tries_.empty())
                              self->OnTried(number, error);
                          });
    if (next_ == tries_.size()) return;
    timer_.expires_after(kNextAddressAfter);
    timer_.async_wait([self = shared_from_this()](const ErrorCode& error) {
      if (!error && !self->closed_) self->TryNext();
    });
  }

  void OnTried(size_t number, const ErrorCode& error) {
    if (!error) return OnConnected(number);
    tries_[number].error = error.message();
    tries_[number].socket.reset();
    const bool all_failed = std::all_of(tries_.begin(), tries_.end(),
                                        [](const Try& tried) { return !tried.error.empty(); });
    if (!all_failed) return TryNext();
    std::string told;
    for (size_t i = 0; i < std::min(tries_.size(), kMostToldAddresses); ++i)
      told += fmt::format("{}{}: {}", i == 0 ? "" : ", ", AddressText(tries_[i].endpoint),
                          tries_[i].error);
    if (tries_.size() > kMostToldAddresses)
      told += fmt::format(", and {} more", tries_.size() - kMostToldAddresses);
    connector_->endpoints_.clear();  // a name may have others by now
    Fail(HttpFailure::kConnect, fmt::format("no connection{}: {}; {}", connector_->ToFirst(), told,
                                            options_.connect_advice));
  }

  void OnConnected(size_t number) {
    tcp::socket socket = std::move(*tries_[number].socket);
    Endpoints& known = connector_->endpoints_;
    const auto found = std::find(known.begin(), known.end(), tries_[number].endpoint);
    if (found != known.end())
      std::rotate(known.begin(), found, found + 1);  // the next one begins here
    tries_.clear();
    timer_.cancel();
    ErrorCode ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    transport_ = MakeTransport(std::move(socket));
    if (options_.proxy && options_.proxy->url.scheme == Scheme::kHttps)
      return StartTls(options_.proxy->url.host, connector_->ToFirst(), &TcpSocket::OpenTunnel);
    OpenTunnel();
  }

  void OpenTunnel() {
    if (url_.scheme != Scheme::kHttps) return Finish();
    if (!options_.proxy) return StartTls(url_.host, "", &TcpSocket::Finish);
    waits_for_ = fmt::format("the answer of the {} to CONNECT", options_.proxy->Text());
    out_ = ConnectText(*options_.proxy, url_);
    answer_.emplace(
        ResponseLimits{.max_head_bytes = options_.max_head_bytes}, true,
        ResponseReader::Events{
            .on_head = [this](const HttpResponse& head) { status_ = head.status; }, .on_body = {}});
    WriteConnect();
  }

  void WriteConnect() {
    transport_->WriteSome(out_, [self = shared_from_this()](const ErrorCode& error, size_t bytes) {
      if (self->closed_) return;
      if (error) return self->LoseTunnel(error.message());
      self->out_.erase(0, bytes);
      if (!self->out_.empty()) return self->WriteConnect();
      self->ReadAnswer();
    });
  }

  void ReadAnswer() {
    transport_->ReadSome(buffer_,
                         [self = shared_from_this()](const ErrorCode& error, size_t bytes) {
                           if (self->closed_) return;
                           if (error) return self->LoseTunnel(error.message());
                           self->OnAnswer(std::string_view(self->buffer_.data(), bytes));
                         });
  }

  void OnAnswer(std::string_view bytes) {
    const HttpProxy& proxy = *options_.proxy;
    const Status added = answer_->Add(bytes);
    if (!added)
      return Fail(HttpFailure::kBadResponse, fmt::format("the {} does not answer as one: {}",
                                                         proxy.Text(), added.error().message));
    if (!answer_->done()) return ReadAnswer();
    if (status_ / 100 != 2)  // 5xx: it does not reach the target
      return Fail(status_ / 100 == 5 ? HttpFailure::kConnect : HttpFailure::kProxy,
                  ProxyRefusal(proxy, status_, url_));
    if (answer_->has_rest())  // the target speaks only when it is spoken to
      return Fail(HttpFailure::kBadResponse,
                  fmt::format("the {} sends more than its answer", proxy.Text()));
    StartTls(url_.host, "", &TcpSocket::Finish);
  }

  void LoseTunnel(const std::string& why) {
    Fail(HttpFailure::kLost,
         fmt::format("the {} ends the connection before it answers: {}; see {} and no_proxy",
                     options_.proxy->Text(), why, options_.proxy->variable));
  }

  // `next` goes on when the other side has proved that it is `host`.
  void StartTls(const std::string& host, const std::string& to, void (TcpSocket::*next)()) {
    waits_for_ = "TLS of " + host;
    transport_ = transport_->StartTls(*connector_->tls_, host);
    transport_->Handshake([self = shared_from_this(), to, next](const ErrorCode& error) {
      if (self->closed_) return;
      if (!error) return (self.get()->*next)();
      const std::string problem = self->transport_->certificate_problem();
      self->Fail(HttpFailure::kTls, fmt::format("no secure connection{}: {}; {}", to,
                                                problem.empty() ? error.message() : problem,
                                                self->options_.tls_advice));
    });
  }

  void Finish() {
    closed_ = true;
    std::exchange(done_, {})(std::move(transport_));
  }

  void Fail(HttpFailure failure, std::string message) {
    Close();
    std::exchange(done_, {})(tl::unexpected(ConnectError{failure, std::move(message)}));
  }

  ClientConnector* connector_;
  const HttpUrl& url_;
  const HttpClientOptions& options_;
  Connected done_;
  std::string waits_for_;
  std::vector<Try> tries_;  // empty: before and after
  size_t next_ = 0;
  asio::steady_timer timer_;  // until the next try
  std::unique_ptr<Transport> transport_;
  std::string out_;  // what is left of the request to the proxy
  std::optional<ResponseReader> answer_;
  int status_ = 0;
  std::array<char, 4096> buffer_;
  bool closed_ = false;
};

class ClientConnector::UnixSocket final : public ClientSocket,
                                          public std::enable_shared_from_this<UnixSocket> {
 public:
  UnixSocket(ClientConnector* connector, Connected done)
      : connector_(connector), done_(std::move(done)), socket_(connector->io_) {}

  void Start() {
    socket_.async_connect(
        stream_protocol::endpoint(connector_->url_.socket),
        [self = shared_from_this()](const ErrorCode& error) { self->Finish(error); });
  }
  void Close() override {
    closed_ = true;
    ErrorCode ignored;
    socket_.close(ignored);
  }
  std::string waits_for() const override { return "the socket"; }

 private:
  void Finish(const ErrorCode& error) {
    if (closed_) return;
    const Connected done = std::exchange(done_, {});
    if (!error) return done(MakeTransport(std::move(socket_)));
    done(tl::unexpected(
        ConnectError{HttpFailure::kConnect, fmt::format("no connection: {}; {}", error.message(),
                                                        connector_->options_.connect_advice)}));
  }

  ClientConnector* connector_;
  Connected done_;
  stream_protocol::socket socket_;
  bool closed_ = false;
};

ClientConnector::ClientConnector(asio::io_context& io, const HttpUrl& url,
                                 const HttpClientOptions& options, Endpoints endpoints)
    : io_(io), url_(url), options_(options), resolver_(io), endpoints_(std::move(endpoints)) {}

Status ClientConnector::LoadCertificates() {
  const bool is_needed = url_.scheme == Scheme::kHttps || first().scheme == Scheme::kHttps;
  if (!is_needed) return {};
  tls_.emplace(asio::ssl::context::tls_client);
  tls_->set_options(asio::ssl::context::no_sslv2 | asio::ssl::context::no_sslv3 |
                    asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1 |
                    SSL_OP_NO_RENEGOTIATION);
  return LoadAuthorities(options_.ca_file, &*tls_);
}

std::shared_ptr<ClientSocket> ClientConnector::Connect(Connected done) {
  if (url_.scheme == Scheme::kUnix) {
    auto socket = std::make_shared<UnixSocket>(this, std::move(done));
    socket->Start();
    return socket;
  }
  auto socket = std::make_shared<TcpSocket>(this, std::move(done));
  socket->Start();
  return socket;
}

void ClientConnector::Resolve(Resolved done) {
  if (!endpoints_.empty()) return done({});
  waiting_.push_back(std::move(done));
  if (waiting_.size() > 1) return;
  const SignalsBlocked blocked;  // Asio starts a thread for names; signals are the program's
  resolver_.async_resolve(first().host, std::to_string(first().port),
                          tcp::resolver::numeric_service,
                          [this](const ErrorCode& error, const tcp::resolver::results_type& found) {
                            Endpoints all;
                            if (!error)
                              for (const auto& entry : found) all.push_back(entry.endpoint());
                            endpoints_ = InTurn(all);
                            const ErrorCode none = asio::error::host_not_found;
                            for (const Resolved& waiting : std::exchange(waiting_, {}))
                              waiting(!error && endpoints_.empty() ? none : error);
                          });
}

std::string ClientConnector::ToFirst() const {
  return options_.proxy ? " to the " + options_.proxy->Text() : "";
}

ClientConnector::Endpoints InTurn(const ClientConnector::Endpoints& endpoints) {
  ClientConnector::Endpoints first;
  ClientConnector::Endpoints second;
  for (const tcp::endpoint& endpoint : endpoints)
    (endpoint.address().is_v6() ? first : second).push_back(endpoint);
  ClientConnector::Endpoints out;
  for (size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) out.push_back(first[i]);
    if (i < second.size()) out.push_back(second[i]);
  }
  return out;
}

}  // namespace latte
