// Objects of the driver that end with their owner. The context of the device must be current where
// they are made.
#pragma once

#include <memory>
#include <utility>

#include "src/tensor/cuda/driver.h"

namespace latte::cuda {

// Pinned memory of the host, which a device reads and writes while copies run.
class PinnedMemory {
 public:
  // Throws OutOfMemory and DeviceError.
  PinnedMemory(const Driver& driver, int64_t bytes);
  ~PinnedMemory() { driver_.cuMemFreeHost(data_); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  int64_t bytes() const { return bytes_; }

 private:
  const Driver& driver_;
  void* data_ = nullptr;
  int64_t bytes_;
};

// A queue of work that never waits for the default stream.
class Stream {
 public:
  explicit Stream(const Driver& driver);
  ~Stream() { driver_.cuStreamDestroy_v2(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  abi::Stream get() const { return stream_; }

 private:
  const Driver& driver_;
  abi::Stream stream_ = nullptr;
};

// A place in a stream that others wait for.
class Event {
 public:
  explicit Event(const Driver& driver, unsigned flags = abi::kEventDisableTiming);
  ~Event() { driver_.cuEventDestroy_v2(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  abi::Event get() const { return event_; }
  void Record(abi::Stream stream) const;
  void Await() const;  // the host waits

 private:
  const Driver& driver_;
  abi::Event event_ = nullptr;
};

}  // namespace latte::cuda
