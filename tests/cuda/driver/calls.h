// Helpers of the functions of the emulated driver.
#pragma once

#include <mutex>
#include <utility>

#include "tests/cuda/driver/state.h"

namespace latte::emulator {

DriverState& Driver();
std::mutex& DriverMutex();

// A call of the driver, while it lives.
class Call {
 public:
  Call() : lock_(DriverMutex()) {}

 private:
  std::lock_guard<std::mutex> lock_;
};

// Whether this thread has a current context, without which a real driver does nothing.
bool HasContext();

// Null without a context, for the default stream, which our code must not use, and for what is no
// stream.
StreamState* StreamOf(abi::Stream stream);

inline abi::Code Enqueued(StreamState& stream, Work work) {
  if (Driver().sticky != abi::kSuccess) return Driver().sticky;
  Driver().Enqueue(stream, std::move(work));
  return abi::kSuccess;
}

}  // namespace latte::emulator
