#include "src/http/client/client.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "src/http/client/client_call.h"

namespace latte {
namespace {

namespace asio = boost::asio;

class Client final : public HttpClient, public ClientConnections {
 public:
  Client(const HttpUrl& url, const HttpClientOptions& options)
      : url_(url), options_(options), connector_(io_, url_, options_) {}
  ~Client() override;

  ClientConnector& connector() { return connector_; }

  CallId Start(HttpRequest request, HttpReceiver receiver) override;
  void Cancel(CallId call) override;
  void After(std::chrono::nanoseconds delay, std::function<void()> work) override;
  void Run() override {
    io_.restart();
    io_.run();
  }
  void RunFor(std::chrono::nanoseconds limit) override {
    io_.restart();
    io_.run_for(limit);
  }
  void Stop() override { io_.stop(); }
  const HttpUrl& url() const override { return url_; }
  HttpClientStats stats() const override { return stats_; }

  std::unique_ptr<Transport> TakeIdle() override;
  void GiveIdle(std::unique_ptr<Transport> transport) override {
    idle_.push_back(std::move(transport));
  }
  std::shared_ptr<ClientSocket> Connect(ClientConnector::Connected done) override;

 private:
  void Forget(CallId call);

  HttpUrl url_;
  HttpClientOptions options_;
  asio::io_context io_{1};
  ClientConnector connector_;
  std::vector<std::unique_ptr<Transport>> idle_;
  std::unordered_map<CallId, std::shared_ptr<ClientCall>> calls_;
  CallId next_call_ = 1;
  HttpClientStats stats_;
};

// Handlers that never ran hold the calls, which hold sockets of io_: they go first.
Client::~Client() {
  for (const auto& [id, call] : calls_) call->Cancel();
  calls_.clear();
  idle_.clear();
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

std::shared_ptr<ClientSocket> Client::Connect(ClientConnector::Connected done) {
  return connector_.Connect([this, done = std::move(done)](auto result) {
    if (result) ++stats_.connections;
    done(std::move(result));
  });
}

constexpr auto kPollEvery = std::chrono::milliseconds(50);

}  // namespace

std::string_view HttpFailureName(HttpFailure failure) {
  switch (failure) {
    case HttpFailure::kNone:
      return "none";
    case HttpFailure::kRequest:
      return "bad request";
    case HttpFailure::kName:
      return "no address";
    case HttpFailure::kConnect:
      return "no connection";
    case HttpFailure::kProxy:
      return "refused by proxy";
    case HttpFailure::kTls:
      return "no secure connection";
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
  LATTE_RETURN_IF_ERROR(client->connector().LoadCertificates());
  return client;
}

Result<HttpResponse> Fetch(HttpClient& client, HttpRequest request,
                           std::function<bool()> interrupted) {
  HttpResponse response;
  Status status;
  bool over = false;
  const HttpClient::CallId call = client.Start(
      std::move(request), {.on_head = [&](const HttpResponse& head) { response = head; },
                           .on_body = [&](std::string_view piece) { response.body += piece; },
                           .on_end =
                               [&](Status ended, HttpFailure) {
                                 status = std::move(ended);
                                 over = true;
                                 client.Stop();
                               }});
  while (!over) {
    if (!interrupted) {
      client.Run();
      continue;
    }
    if (interrupted()) {
      client.Cancel(call);
      return Fail(Code::kCancelled, "stopped while waiting for " + client.url().Origin());
    }
    client.RunFor(kPollEvery);
  }
  LATTE_RETURN_IF_ERROR(status);
  return response;
}

}  // namespace latte
