// The bytes that the client of one connection has not read yet: counted in the server's total, and
// released while they are sent.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "src/http/counted_bytes.h"

namespace latte {

class UnsentBytes {
 public:
  using Clock = std::chrono::steady_clock;

  // A client that is further behind than `most` bytes must take so many in each timeout.
  UnsentBytes(ByteTotal total, size_t most) : count_(std::move(total)), most_(most) {}

  void Append(std::string_view bytes);
  // The bytes to write next: what was appended since the last write. They stay where they are until
  // Sent. Empty: there are none.
  std::string_view Next();
  // The first `bytes` of Next are sent.
  void Sent(size_t bytes);
  // They will not be sent. They stay where they are: a write may refer to them.
  void Abandon() { count_.Set(0); }

  size_t size() const { return appended_.size() + sending_.size() - sent_; }
  // Since when there have been such bytes all the time.
  Clock::time_point waiting_since() const { return waiting_since_; }
  // Whether the client has taken too little for so long.
  bool IsStalled(Clock::time_point now, Clock::duration timeout) const {
    return size() > 0 && now - last_progress_ > timeout;
  }

 private:
  size_t LeastProgress() const;

  CountedBytes count_;
  const size_t most_;
  std::string appended_;
  std::string sending_;
  size_t sent_ = 0;      // of sending_
  size_t progress_ = 0;  // bytes sent since last_progress_
  Clock::time_point last_progress_;
  Clock::time_point waiting_since_;
};

}  // namespace latte
