// One end of a control connection: received frames, frames to send, and the time of the last
// received byte. It never blocks, so a peer that does not read stops nothing else.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/comm/control/frame.h"
#include "src/comm/control/socket.h"

namespace latte {

struct ControlOptions {
  // A peer that was not heard for interval · missed is dead. Both ends need the same.
  std::chrono::milliseconds interval = std::chrono::seconds(1);
  int missed = 3;
  // A connection that has not joined after this time is dropped.
  std::chrono::milliseconds handshake = std::chrono::seconds(5);
  size_t most_payload = size_t{32} << 20;   // of a kData frame
  size_t most_waiting = size_t{128} << 20;  // bytes that a peer has not read

  std::chrono::milliseconds patience() const { return interval * missed; }
};

// Not thread-safe.
class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  Connection(Socket socket, size_t most_payload);

  int fd() const { return socket_.fd(); }
  Clock::time_point last_heard() const { return last_heard_; }
  Clock::time_point opened() const { return opened_; }
  void SetMostPayload(size_t bytes) { reader_.SetMostPayload(bytes); }

  // Frames that have arrived. Errors: kUnavailable, the peer has closed or the network fails;
  // kCorrupt, no frames; frames of the same call are lost then.
  Result<std::vector<Frame>> Read();

  // Queues a frame, and sends what the peer takes. Flush sends more. If the peer is gone, the next
  // Read says so, after it has given what the peer sent before.
  // Errors: kExhausted, the peer has not read `most_waiting` bytes.
  Status Send(FrameType type, std::string_view payload, size_t most_waiting);
  Status SendBytes(std::string_view frame, size_t most_waiting);
  void Flush();
  bool has_output() const { return !out_.empty(); }

  // Ends this side's stream; the peer reads its end after everything that was sent.
  void EndSending();
  // Discards what arrives until the peer ends its stream too, or until `end`. A socket that closes
  // before, with bytes of the peer unread, takes from the peer what it has not read yet.
  void AwaitEnd(Clock::time_point end);

 private:
  Socket socket_;
  FrameReader reader_;
  std::string out_;
  Clock::time_point opened_;
  Clock::time_point last_heard_;
};

}  // namespace latte
