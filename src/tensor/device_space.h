// The memory of a device, and the error if it is too small.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/tensor/device.h"

namespace latte {

struct DeviceSpace {
  std::string name;         // "cuda:0 'NVIDIA H200'"
  int64_t free_bytes = 0;   // now; other programs take some too
  int64_t total_bytes = 0;  // of the device
};

// None for the host, and for a device that does not say. Throws DeviceError.
std::optional<DeviceSpace> SpaceOf(const Device& device);

// That a device, which is not the host, has no `bytes` for `what` ("the cache"): kExhausted.
// `remedy`: what a user may do about it ("use a shorter --context"). Throws as SpaceOf.
Error TooLittleMemory(const Device& device, int64_t bytes, std::string_view what,
                      std::string_view remedy);
// The same thrown as a DeviceError. For the host OutOfMemory.
[[noreturn]] void ThrowTooLittleMemory(const Device& device, int64_t bytes, std::string_view what,
                                       std::string_view remedy);

}  // namespace latte
