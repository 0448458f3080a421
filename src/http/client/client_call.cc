#include "src/http/client/client_call.h"

#include <algorithm>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <fmt/format.h>

namespace latte {
namespace {

namespace asio = boost::asio;

bool IsFieldText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= ' ' && byte != 0x7f) || c == '\t';
  });
}

bool IsTarget(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

bool CanBeSent(const HttpRequest& request) {
  const auto& fields = request.fields.list();
  return IsTarget(request.method) && IsTarget(request.path) && IsTarget(request.query) &&
         std::all_of(fields.begin(), fields.end(), [](const auto& field) {
           return IsTarget(field.first) && IsFieldText(field.second);
         });
}

// `proxy`: one that gets requests with the whole address of the target, or nullptr.
std::string RequestText(const HttpRequest& request, const HttpUrl& url, const HttpProxy* proxy) {
  std::string out = fmt::format("{} {}{}{}{} HTTP/1.1\r\nHost: {}\r\n", request.method,
                                proxy != nullptr ? url.Origin() : "", request.path,
                                request.query.empty() ? "" : "?", request.query, url.Authority());
  if (proxy != nullptr && !proxy->authorization.empty())
    out += fmt::format("Proxy-Authorization: {}\r\n", proxy->authorization);
  for (const auto& [name, value] : request.fields.list())
    out += fmt::format("{}: {}\r\n", name, value);
  if (!request.body.empty() || request.method == "POST")
    out += fmt::format("Content-Length: {}\r\n", request.body.size());
  out += "\r\n";
  return out.append(request.body.text());
}

// The proxy that reads the requests for `url` themselves.
const HttpProxy* ReadingProxy(const HttpUrl& url, const HttpClientOptions& options) {
  return options.proxy && url.scheme == HttpUrl::Scheme::kHttp ? &*options.proxy : nullptr;
}

}  // namespace

ClientCall::ClientCall(asio::io_context& io, ClientConnections* connections, const HttpUrl& url,
                       const HttpClientOptions& options, HttpRequest request, HttpReceiver receiver,
                       std::function<void()> forget)
    : io_(io),
      connections_(connections),
      url_(url),
      options_(options),
      receiver_(std::move(receiver)),
      forget_(std::move(forget)),
      method_(request.method),
      bad_request_(!CanBeSent(request)),
      timer_(io) {
  if (!bad_request_) out_ = RequestText(request, url, ReadingProxy(url, options));
}

void ClientCall::Start() {
  started_ = Clock::now();
  if (bad_request_) {
    asio::post(io_, [self = shared_from_this()] {
      self->Fail(HttpFailure::kRequest, Code::kInvalidArgument,
                 "the request has a character that HTTP does not allow in its path or in a field");
    });
    return;
  }
  if ((transport_ = connections_->TakeIdle())) {
    reused_ = true;
    Exchange();
  } else {
    Connect();
  }
}

void ClientCall::Cancel() {
  if (over_) return;
  Release();
}

void ClientCall::Connect() {
  SetTimeout(options_.connect_timeout, "no connection");
  socket_ = connections_->Connect(
      [self = shared_from_this()](tl::expected<std::unique_ptr<Transport>, ConnectError> result) {
        if (self->over_) return;
        self->socket_.reset();
        if (!result)
          return self->Fail(result.error().failure,
                            result.error().failure == HttpFailure::kBadResponse
                                ? Code::kCorrupt
                                : Code::kUnavailable,
                            result.error().message);
        self->transport_ = *std::move(result);
        self->Exchange();
      });
}

void ClientCall::Exchange() {
  reader_.emplace(
      ResponseLimits{options_.max_head_bytes, options_.max_body_bytes}, method_ == "HEAD",
      ResponseReader::Events{.on_head = [this](const HttpResponse& head) { OnHead(head); },
                             .on_body =
                                 [this](std::string_view piece) {
                                   if (!over_ && receiver_.on_body) receiver_.on_body(piece);
                                 }});
  SetTimeout(options_.first_byte_timeout, "no response");
  sent_ = 0;
  head_arrived_ = false;
  Write();
  Read();
}

void ClientCall::OnHead(const HttpResponse& head) {
  if (over_) return;
  const HttpProxy* const proxy = ReadingProxy(url_, options_);
  if (proxy != nullptr && head.status == 407)
    return Fail(HttpFailure::kProxy, Code::kUnavailable, ProxyRefusal(*proxy, head.status, url_));
  head_arrived_ = true;
  if (receiver_.on_head) receiver_.on_head(head);
}

// A server may answer, and close, before it has read everything: what it says is found by Read.
void ClientCall::Write() {
  transport_->WriteSome(
      std::string_view(out_).substr(sent_),
      [self = shared_from_this(), to = transport_.get()](const ErrorCode& error, size_t bytes) {
        if (self->over_ || self->transport_.get() != to || error) return;
        self->sent_ += bytes;
        if (self->sent_ < self->out_.size()) self->Write();
      });
}

void ClientCall::Read() {
  transport_->ReadSome(buffer_, [self = shared_from_this()](const ErrorCode& error, size_t bytes) {
    self->OnRead(error, bytes);
  });
}

void ClientCall::OnRead(const ErrorCode& error, size_t bytes) {
  if (over_) return;
  if (error) return OnConnectionEnd(error);
  const Status added = reader_->Add(std::string_view(buffer_.data(), bytes));
  if (over_) return;  // a callback has cancelled the call
  if (!added) return Fail(HttpFailure::kBadResponse, Code::kCorrupt, added.error().message);
  if (reader_->done()) return Finish({}, HttpFailure::kNone);
  if (head_arrived_) SetTimeout(options_.stall_timeout, "silent: no byte");
  Read();
}

void ClientCall::OnConnectionEnd(const ErrorCode& error) {
  if (reused_ && !reader_->begun()) {  // the server had ended the idle connection
    reused_ = false;
    transport_->Close();
    retired_ = std::move(transport_);
    return Connect();
  }
  // Without TLS's goodbye, a body that only the end delimits may have been cut by anybody.
  const bool clean = error == asio::error::eof || (error == asio::ssl::error::stream_truncated &&
                                                   !reader_->ends_with_connection());
  if (!clean)
    return Fail(HttpFailure::kLost, Code::kUnavailable,
                fmt::format("the connection was lost: {}", error.message()));
  const Status ended = reader_->End();
  if (over_) return;
  if (!ended) return Fail(HttpFailure::kLost, Code::kUnavailable, ended.error().message);
  Finish({}, HttpFailure::kNone);
}

void ClientCall::SetTimeout(std::chrono::milliseconds limit, std::string_view phase) {
  constexpr std::chrono::milliseconds kNone{0};
  const auto now = Clock::now();
  auto at = Clock::time_point::max();
  if (limit > kNone) at = now + limit;
  if (options_.total_timeout > kNone && started_ + options_.total_timeout < at) {
    at = started_ + options_.total_timeout;
    limit = options_.total_timeout;
    phase = "no complete response";
  }
  if (at == Clock::time_point::max()) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(at);
  timer_.async_wait([self = shared_from_this(), limit, phase](const ErrorCode& error) {
    if (!error && !self->over_) self->OnTimeout(limit, phase);
  });
}

void ClientCall::OnTimeout(std::chrono::milliseconds limit, std::string_view phase) {
  Fail(HttpFailure::kTimeout, Code::kUnavailable,
       fmt::format("{} within {} s{}", phase, static_cast<double>(limit.count()) / 1000,
                   socket_ ? "; missing: " + socket_->waits_for() : ""));
}

void ClientCall::Fail(HttpFailure failure, Code code, const std::string& message) {
  const HttpProxy* const proxy = ReadingProxy(url_, options_);
  const bool may_be_its =
      proxy != nullptr && (failure == HttpFailure::kTimeout || failure == HttpFailure::kLost ||
                           failure == HttpFailure::kBadResponse);
  const std::string through = may_be_its ? fmt::format(" through the {}", proxy->Text()) : "";
  Finish(latte::Fail(code, fmt::format("{}{}: {}", url_.Origin(), through, message)), failure);
}

void ClientCall::Finish(Status status, HttpFailure failure) {
  const bool whole = status && reader_->done() && sent_ == out_.size();
  if (whole && reader_->keep_alive()) connections_->GiveIdle(std::move(transport_));
  Release();
  forget_();
  if (receiver_.on_end) receiver_.on_end(std::move(status), failure);
}

void ClientCall::Release() {
  over_ = true;
  timer_.cancel();
  if (socket_) std::exchange(socket_, nullptr)->Close();  // it holds this call
  if (transport_) transport_->Close();
}

}  // namespace latte
