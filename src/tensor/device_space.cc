#include "src/tensor/device_space.h"

#include <fmt/format.h>

#include "src/base/limits/device_error.h"
#include "src/base/limits/out_of_memory.h"
#include "src/tensor/cuda/cuda_device.h"

namespace latte {

std::optional<DeviceSpace> SpaceOf(const Device& device) {
  const auto* const gpu = dynamic_cast<const cuda::CudaDevice*>(&device);
  if (gpu == nullptr) return std::nullopt;
  return DeviceSpace{gpu->Label(), gpu->FreeBytes(), gpu->info().memory_bytes};
}

Error TooLittleMemory(const Device& device, int64_t bytes, std::string_view what,
                      std::string_view remedy) {
  const std::optional<DeviceSpace> space = SpaceOf(device);
  const std::string found =
      space ? fmt::format("{} free of {} on {}", space->free_bytes, space->total_bytes, space->name)
            : "a device with less";
  return {Code::kExhausted,
          fmt::format("GPU memory: expected {} bytes in one piece for {}, found {}; {}, or end "
                      "other programs that use the GPU",
                      bytes, what, found, remedy)};
}

void ThrowTooLittleMemory(const Device& device, int64_t bytes, std::string_view what,
                          std::string_view remedy) {
  if (device.is_host()) throw OutOfMemory(bytes, what);
  const Error error = TooLittleMemory(device, bytes, what, remedy);
  throw DeviceError(error.message, error.code);
}

}  // namespace latte
