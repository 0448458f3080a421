// One connection of the server: reads requests one after the other, lets the handler answer, and
// writes the answers. A state machine:
//
//   kHead ──► kBody ──► kAnswering ──► kFlushing ──► kHead …
//     └─────────┴── refused ─► kFlushing ─► kLingering ─► kClosed
//
// A read is pending in all states, so that a disconnected client is detected at once. Bytes that
// arrive during an answer are kept, up to a bound.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "src/http/connection/body_reader.h"
#include "src/http/connection/head_check.h"
#include "src/http/connection/unsent_bytes.h"
#include "src/http/counted_bytes.h"
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
  ByteTotal body_bytes = std::make_shared<std::atomic<int64_t>>(0);
  ByteTotal unsent_bytes = std::make_shared<std::atomic<int64_t>>(0);
  bool draining = false;  // answers end their connections
  std::function<void(HttpConnection*)> closed;
  std::function<void()> too_much_unsent;  // of all connections; called inside of Send
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
  int64_t unsent_bytes() const { return static_cast<int64_t>(unsent_.size()); }
  Clock::time_point waiting_since() const { return unsent_.waiting_since(); }
  void Drop();  // a client that does not read

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

  // Writing.
  void SendHead(const HttpResponse& response, std::string_view framing);
  void Send(std::string_view bytes);
  void SendBody(std::string_view piece);
  void Flush();
  void OnWritten(ErrorCode error, size_t bytes);
  void Complete();  // the answer is in unsent_
  void OnFlushed();
  void NextRequest();
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
  CountedBytes body_bytes_;  // in HttpShared::body_bytes
  bool watching_ = false;    // for a reset

  uint64_t number_ = 0;  // of the exchange
  std::function<void()> on_gone_;
  bool begun_ = false;      // an answer in pieces
  bool is_events_ = false;  // of server-sent events
  bool chunked_ = false;
  bool no_body_ = false;      // HEAD
  bool close_after_ = false;  // the answer ends the connection

  UnsentBytes unsent_;
  bool writing_ = false;
  bool flush_posted_ = false;
};

}  // namespace latte
