#include "src/http/connection/connection.h"

#include <exception>
#include <utility>

#include <boost/asio/error.hpp>
#include <fmt/format.h>

#include "src/http/connection/exchange.h"
#include "src/http/connection/response_head.h"
#include "src/http/io_thread.h"

namespace latte {
namespace {

// Bytes that a client may send ahead while its earlier request is answered.
constexpr size_t kMostAhead = 64 << 10;
// A client gets so long to read the last answer before its connection is closed.
constexpr auto kLingerTime = std::chrono::milliseconds(1000);
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

HeadLimits LimitsOf(const HttpServerOptions& options) {
  return {.bytes = static_cast<size_t>(options.max_head_bytes),
          .fields = static_cast<size_t>(options.max_head_fields)};
}

}  // namespace

HttpConnection::HttpConnection(HttpShared* shared, std::unique_ptr<Transport> transport,
                               std::string peer, bool is_unix)
    : shared_(shared),
      transport_(std::move(transport)),
      peer_(std::move(peer)),
      is_unix_(is_unix),
      body_bytes_(shared->body_bytes),
      unsent_(shared->unsent_bytes, static_cast<size_t>(shared->options->max_unsent_bytes)) {
  SetDeadline(shared_->options->head_timeout);
}

HttpConnection::~HttpConnection() = default;

template <class F>
void HttpConnection::Guard(const F& run) {
  try {
    run();
  } catch (const std::exception&) {
    Close();
  }
}

void HttpConnection::Start() {
  transport_->Handshake([self = shared_from_this()](ErrorCode error) {
    self->Guard([&] {
      if (self->state_ != State::kHandshake) return;
      if (error) return self->Close();
      self->state_ = State::kHead;
      self->head_begun_ = true;
      self->Read();
    });
  });
}

void HttpConnection::RefuseForLoad() {
  framing_.keep_alive = false;
  HttpResponse response = shared_->handler->BadRequest(
      nullptr, 503, "the server has as many connections as it accepts");
  if (!response.fields.Has("Retry-After")) response.fields.Add("Retry-After", "1");
  Answer(std::move(response));
  Read();
}

void HttpConnection::Close() {
  if (state_ == State::kClosed) return;
  const auto self = shared_from_this();
  state_ = State::kClosed;
  unsent_.Abandon();
  body_bytes_.Set(0);
  transport_->Close();
  shared_->closed(this);
  if (const auto gone = std::exchange(on_gone_, {})) gone();
}

void HttpConnection::Drop() {
  if (state_ == State::kClosed) return;
  ++shared_->stats.dropped_slow;
  Close();
}

void HttpConnection::CheckDeadline(Clock::time_point now) {
  if (state_ == State::kClosed) return;
  Guard([&] {
    if (unsent_.IsStalled(now, shared_->options->stall_timeout)) return Drop();
    if (now < deadline_) return;
    switch (state_) {
      case State::kHead:
        if (in_.empty()) return Close();
        return Refuse({408, "the head of the request did not arrive in time"});
      case State::kBody:
        return Refuse({408, "the body of the request did not arrive in time"});
      case State::kHandshake:
      case State::kLingering:
        return Close();
      default:
        return;
    }
  });
}

// ---- Reading

void HttpConnection::Read() {
  const bool answering = state_ == State::kAnswering || state_ == State::kFlushing;
  if (reading_ || ended_ || state_ == State::kClosed) return;
  if (answering && in_.size() >= kMostAhead) return WatchForBreak();
  reading_ = true;
  transport_->ReadSome(buffer_, [self = shared_from_this()](ErrorCode error, size_t bytes) {
    self->Guard([&] { self->OnRead(error, bytes); });
  });
}

void HttpConnection::OnRead(ErrorCode error, size_t bytes) {
  reading_ = false;
  if (state_ == State::kClosed) return;
  if (error == boost::asio::error::eof) return OnEnd();
  if (error) return Close();
  if (state_ != State::kLingering) {
    in_.append(buffer_.data(), bytes);
    Advance();
  }
  Read();
}

void HttpConnection::OnEnd() {
  ended_ = true;
  const bool answering = state_ == State::kAnswering || state_ == State::kFlushing;
  if (!answering || !transport_->can_half_close()) return Close();
  if (state_ == State::kAnswering) Probe();
}

// The client sends no more. It may be gone, or wait for its answer with this direction closed. A
// client that is gone answers the next bytes with a reset, so it gets some that mean nothing.
void HttpConnection::Probe() {
  if (begun_ && is_events_) SendBody(":\n\n");
  if (!begun_ && !framing_.is_http_1_0) Send(kContinue);
  WatchForBreak();
}

// While nothing is read, a reset is noticed all the same.
void HttpConnection::WatchForBreak() {
  if (std::exchange(watching_, true)) return;
  transport_->WaitForBreak(
      [self = shared_from_this()](ErrorCode) { self->Guard([&] { self->Close(); }); });
}

void HttpConnection::Advance() {
  while (true) {
    const bool more = state_ == State::kHead   ? AdvanceHead()
                      : state_ == State::kBody ? AdvanceBody()
                                               : false;
    if (!more) return;
  }
}

bool HttpConnection::AdvanceHead() {
  // RFC 9112 §2.2: empty lines before a request are ignored.
  size_t blank = 0;
  while (std::string_view(in_).substr(blank).starts_with("\r\n")) blank += 2;
  in_.erase(0, blank);
  if (in_.empty() || in_ == "\r") return false;
  if (!std::exchange(head_begun_, true)) SetDeadline(shared_->options->head_timeout);
  const HeadLimits limits = LimitsOf(*shared_->options);
  const HeadScan scan = ScanHead(in_, std::exchange(scanned_, in_.size()), limits);
  if (scan.error) return Refuse(*scan.error), false;
  if (scan.end == 0) return false;
  request_ = {.peer = peer_, .is_unix = is_unix_};
  framing_ = {};
  const auto error =
      ReadHead(std::string_view(in_).substr(0, scan.end), limits, &request_, &framing_);
  in_.erase(0, scan.end);
  scanned_ = 0;
  no_body_ = request_.method == "HEAD";
  if (error) return Refuse(*error), false;
  body_.emplace(framing_, static_cast<uint64_t>(shared_->options->max_body_bytes));
  if (std::optional<HttpResponse> refusal = shared_->handler->CheckHead(request_)) {
    if (!body_->done()) refusal->close = true;  // the body is not read
    Answer(std::move(*refusal));
    return false;
  }
  if (body_->error()) return Refuse(*body_->error()), false;
  if (framing_.expects_continue && !body_->done() && in_.empty()) Send(kContinue);
  state_ = State::kBody;
  SetDeadline(shared_->options->body_timeout);
  return true;
}

bool HttpConnection::AdvanceBody() {
  in_.erase(0, body_->Take(in_));
  if (body_->error()) return Refuse(*body_->error()), false;
  body_bytes_.Set(static_cast<int64_t>(body_->body().capacity()));
  if (*shared_->body_bytes > shared_->options->max_bodies_bytes)
    return Refuse({503,
                   "the bodies of the requests that arrive or wait to be parsed are too large "
                   "together; try again later"}),
           false;
  if (body_->done()) StartExchange();
  return false;
}

void HttpConnection::StartExchange() {
  request_.body = CountedBody(std::move(body_->body()), std::move(body_bytes_));
  body_.reset();
  state_ = State::kAnswering;
  begun_ = is_events_ = chunked_ = close_after_ = false;
  auto exchange = std::make_shared<Exchange>(weak_from_this(), ++number_, shared_->io);
  shared_->handler->Handle(std::exchange(request_, {}), std::move(exchange));
}

void HttpConnection::Refuse(HeadError error) {
  ++shared_->stats.bad_requests;
  const HttpRequest* const head = body_ ? &request_ : nullptr;
  HttpResponse response = shared_->handler->BadRequest(head, error.status, error.message);
  response.close = true;
  Answer(std::move(response));
}

// An answer without an exchange.
void HttpConnection::Answer(HttpResponse response) {
  body_.reset();
  body_bytes_.Set(0);
  state_ = State::kAnswering;
  begun_ = is_events_ = chunked_ = close_after_ = false;
  Respond(++number_, std::move(response));
}

// ---- Answering

bool HttpConnection::IsCurrent(uint64_t number) const {
  return state_ == State::kAnswering && number == number_;
}

void HttpConnection::SendHead(const HttpResponse& response, std::string_view framing) {
  close_after_ = close_after_ || response.close || !framing_.keep_alive || shared_->draining ||
                 (ended_ && in_.empty());
  Send(ResponseHead(response, framing, close_after_));
}

void HttpConnection::Respond(uint64_t number, HttpResponse response) {
  if (!IsCurrent(number) || begun_) return;
  const bool has_body = response.status != 204 && response.status != 304;
  SendHead(response,
           has_body ? fmt::format("Content-Length: {}\r\n", response.body.size()) : std::string());
  if (has_body && !no_body_) Send(response.body);
  Complete();
}

void HttpConnection::Begin(uint64_t number, HttpResponse head) {
  if (!IsCurrent(number) || begun_) return;
  begun_ = true;
  is_events_ = head.content_type.starts_with("text/event-stream");
  chunked_ = !framing_.is_http_1_0;
  if (!chunked_) close_after_ = true;  // the end of the connection is the end of the body
  SendHead(head, chunked_ ? "Transfer-Encoding: chunked\r\n" : "");
  if (!head.body.empty()) SendBody(head.body);
}

void HttpConnection::Write(uint64_t number, std::string_view piece) {
  if (!IsCurrent(number) || !begun_ || piece.empty()) return;
  SendBody(piece);
  if (unsent_bytes() > shared_->options->max_unsent_bytes) Drop();
}

void HttpConnection::End(uint64_t number) {
  if (!IsCurrent(number) || !begun_) return;
  if (chunked_ && !no_body_) Send("0\r\n\r\n");
  Complete();
}

void HttpConnection::Abandon(uint64_t number) {
  if (IsCurrent(number)) Close();
}

void HttpConnection::OnGone(uint64_t number, std::function<void()> gone) {
  if (IsCurrent(number)) on_gone_ = std::move(gone);
}

void HttpConnection::Complete() {
  on_gone_ = {};
  state_ = State::kFlushing;
  Send({});
}

// ---- Writing

void HttpConnection::SendBody(std::string_view piece) {
  if (no_body_) return;
  if (!chunked_) return Send(piece);
  Send(fmt::format("{:x}\r\n", piece.size()));
  Send(piece);
  Send("\r\n");
}

// All that is sent in one turn of the event loop becomes one write.
void HttpConnection::Send(std::string_view bytes) {
  unsent_.Append(bytes);
  if (*shared_->unsent_bytes > shared_->options->max_answers_bytes) shared_->too_much_unsent();
  if (writing_ || std::exchange(flush_posted_, true)) return;
  shared_->io->Post([self = shared_from_this()] {
    self->Guard([&] {
      self->flush_posted_ = false;
      self->Flush();
    });
  });
}

void HttpConnection::Flush() {
  if (state_ == State::kClosed || writing_) return;
  const std::string_view next = unsent_.Next();
  if (next.empty()) {
    if (state_ == State::kFlushing) OnFlushed();
    return;
  }
  writing_ = true;
  transport_->WriteSome(next, [self = shared_from_this()](ErrorCode error, size_t bytes) {
    self->Guard([&] { self->OnWritten(error, bytes); });
  });
}

void HttpConnection::OnWritten(ErrorCode error, size_t bytes) {
  writing_ = false;
  if (state_ == State::kClosed) return;
  if (error) return Close();
  unsent_.Sent(bytes);
  Flush();
}

void HttpConnection::OnFlushed() {
  if (!close_after_) return NextRequest();
  if (ended_) return Close();
  // Bytes that the client still sends must not reset the connection before it has read its answer.
  transport_->ShutdownWrite();
  state_ = State::kLingering;
  SetDeadline(kLingerTime);
  in_.clear();
  Read();
}

void HttpConnection::NextRequest() {
  state_ = State::kHead;
  head_begun_ = no_body_ = false;
  SetDeadline(shared_->options->idle_timeout);
  Advance();
  if (state_ == State::kHead && (ended_ || (shared_->draining && in_.empty()))) return Close();
  Read();
}

}  // namespace latte
