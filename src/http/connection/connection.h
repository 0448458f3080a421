// One connection of the server: reads requests one after the other, lets the handler answer, and
// writes the answers. A state machine:
//
//   kHead ──► kBody ──► kAnswering ──► kFlushing ──► kHead …
//     └─────────┴── refused ─► kFlushing ─► kLingering ─► kClosed
//
// A read is pending in all states, so that the end of a client is noticed at once; what arrives
// while an answer is made is kept, up to a bound.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "src/http/connection/body_reader.h"
#include "src/http/connection/head_check.h"
#include "src/http/server.h"
#include "src/http/transport.h"

namespace latte {

class HttpConnection;
class IoThread;

// The data that the connections of one server share.
struct HttpShared {
  const HttpServerOptions* options = nullptr;
  HttpHandler* handler = nullptr;
  HttpServerStats stats;
  int64_t body_bytes = 0;  // of requests that are arriving
  bool draining = false;   // answers end their connections
  std::function<void(HttpConnection*)> closed;
  std::shared_ptr<IoThread> io;
};

// On the I/O thread.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  using Clock = std::chrono::steady_clock;

  HttpConnection(HttpShared* shared, std::unique_ptr<Transport> transport, std::string peer,
                 bool is_unix);
  ~HttpConnection();

  void Start();
  // Answers 503 and closes: the server has too many connections.
  void RefuseForLoad();
  // Called every 100 ms or so.
  void CheckDeadline(Clock::time_point now);
  bool idle() const { return state_ == State::kHead && in_.empty(); }
  void Close();

  // Of exchange `number`; nothing if that is over.
  bool IsCurrent(uint64_t number) const;
  void Respond(uint64_t number, HttpResponse response);
  void Begin(uint64_t number, HttpResponse head);
  void Write(uint64_t number, std::string_view piece);
  void End(uint64_t number);
  void Abandon(uint64_t number);  // there will be no answer
  void OnGone(uint64_t number, std::function<void()> gone);
  int64_t unsent_bytes() const {
    return static_cast<int64_t>(out_.size() + sending_.size() - sent_);
  }

 private:
  enum class State { kHandshake, kHead, kBody, kAnswering, kFlushing, kLingering, kClosed };

  // Reading.
  void Read();
  void OnRead(ErrorCode error, size_t bytes);
  void OnEnd();
  void Advance();  // as far as the bytes that have arrived go
  bool AdvanceHead();
  bool AdvanceBody();
  void Refuse(HeadError error);
  void Answer(HttpResponse response);
  void StartExchange();
  void Probe();
  void WatchForBreak();
  void CountBody(size_t bytes);

  // Writing.
  void SendHead(const HttpResponse& response, std::string_view framing);
  void Send(std::string_view bytes);
  void SendBody(std::string_view piece);
  void Flush();
  void OnWritten(ErrorCode error, size_t bytes);
  void Complete();  // the answer is in out_
  void OnFlushed();
  void NextRequest();
  void Drop();  // a client that does not read
  void SetDeadline(std::chrono::milliseconds time) { deadline_ = Clock::now() + time; }
  // Runs a callback of the transport; lack of memory ends the connection.
  template <class F>
  void Guard(const F& run);

  HttpShared* const shared_;
  std::unique_ptr<Transport> transport_;
  const std::string peer_;
  const bool is_unix_;
  State state_ = State::kHandshake;
  Clock::time_point deadline_;  // of kHead, kBody, kLingering
  bool head_begun_ = false;     // a byte of the head has arrived, or it is the first one

  std::array<char, 4096> buffer_;
  bool reading_ = false;
  bool ended_ = false;  // the client's direction is over
  std::string in_;      // bytes that are not consumed
  size_t scanned_ = 0;
  HttpRequest request_;
  BodyFraming framing_;
  std::optional<BodyReader> body_;
  size_t counted_ = 0;     // bytes of it in HttpShared::body_bytes
  bool watching_ = false;  // for a reset

  uint64_t number_ = 0;  // of the exchange
  std::function<void()> on_gone_;
  bool begun_ = false;      // an answer in pieces
  bool is_events_ = false;  // of server-sent events
  bool chunked_ = false;
  bool no_body_ = false;      // HEAD
  bool close_after_ = false;  // the answer ends the connection

  std::string out_;      // to be sent
  std::string sending_;  // being sent
  size_t sent_ = 0;      // of it
  bool flush_posted_ = false;
  size_t progress_ = 0;  // bytes sent since last_progress_
  Clock::time_point last_progress_;
};

}  // namespace latte
