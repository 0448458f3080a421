// The memory of tensors, and the copies to and from it. A kernel runs on the device of its
// operands. Any other access to the memory of a device goes through the copies below, so a device
// with memory that the host cannot read needs only kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace latte {

// kTest is a device that only tests have.
enum class DeviceKind { kHost, kCuda, kTest };

// A queue of a device, in whose order kernels and copies run (cudaStream_t); null: the default one.
// The host has no queues.
using DeviceStream = void*;

// What memory is for, which decides how it is taken from the system.
enum class MemoryUse {
  kTensor,     // touched at once
  kWorkspace,  // large, touched again and again
  kCache,      // large, touched little by little
};

// Thread-compatible: one engine at a time.
class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  DeviceKind kind() const { return kind_; }
  int ordinal() const { return ordinal_; }  // among the devices of its kind
  bool is_host() const { return kind_ == DeviceKind::kHost; }

  // Memory that reads as zero, aligned to 64 bytes; null if the device has too little. Requires:
  // bytes > 0. Freed with the same arguments.
  virtual std::byte* Allocate(int64_t bytes, MemoryUse use) const = 0;
  virtual void Free(std::byte* at, int64_t bytes, MemoryUse use) const = 0;

  // Copies in the order of the stream: from the host, which may reuse `from` after the call; to the
  // host, which may read `to` after the call; within the device, between disjoint ranges.
  virtual void CopyFromHost(std::byte* to, const void* from, int64_t bytes, DeviceStream) const = 0;
  virtual void CopyToHost(void* to, const std::byte* from, int64_t bytes, DeviceStream) const = 0;
  virtual void Copy(std::byte* to, const std::byte* from, int64_t bytes, DeviceStream) const = 0;

 protected:
  Device(DeviceKind kind, int ordinal) : kind_(kind), ordinal_(ordinal) {}

 private:
  DeviceKind kind_;
  int ordinal_;
};

const Device& HostDevice();

// Owns memory of a device, which must outlive it. Movable only.
class DeviceMemory {
 public:
  // None if the device has too little memory, or bytes is not positive.
  [[nodiscard]] static std::optional<DeviceMemory> Allocate(const Device& device, int64_t bytes,
                                                            MemoryUse use);

  std::byte* data() const { return at_.get(); }
  int64_t bytes() const { return at_.get_deleter().bytes; }

 private:
  struct Free {
    const Device* device;
    int64_t bytes;
    MemoryUse use;
    void operator()(std::byte* at) const { device->Free(at, bytes, use); }
  };
  DeviceMemory(std::byte* at, const Free& free) : at_(at, free) {}

  std::unique_ptr<std::byte, Free> at_;
};

}  // namespace latte
