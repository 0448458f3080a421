#include "src/tensor/device.h"

#include <cstdlib>
#include <cstring>

#include "src/base/limits/memory.h"
#include "src/base/math.h"

namespace latte {
namespace {

// A cache line, and one AVX-512 register.
constexpr int64_t kMemoryAlignment = 64;

class Host final : public Device {
 public:
  Host() : Device(DeviceKind::kHost, 0) {}

  std::byte* Allocate(int64_t bytes, MemoryUse use) const override {
    if (use == MemoryUse::kTensor) return AllocateTensor(RoundUp(bytes, kMemoryAlignment));
    const PageSize pages = use == MemoryUse::kWorkspace ? PageSize::kHuge : PageSize::kUsual;
    std::optional<AnonymousMemory> memory = AnonymousMemory::Reserve(bytes, pages);
    return memory ? memory->Release() : nullptr;
  }
  void Free(std::byte* at, int64_t bytes, MemoryUse use) const override {
    if (use == MemoryUse::kTensor) return std::free(at);
    AnonymousMemory::Free(at, bytes);
  }
  void CopyFromHost(std::byte* to, const void* from, int64_t bytes, DeviceStream) const override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void CopyToHost(void* to, const std::byte* from, int64_t bytes, DeviceStream) const override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void Copy(std::byte* to, const std::byte* from, int64_t bytes, DeviceStream) const override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }

 private:
  static std::byte* AllocateTensor(int64_t bytes) {
    const auto size = static_cast<size_t>(bytes);
    void* const at = std::aligned_alloc(kMemoryAlignment, size);
    if (at != nullptr) std::memset(at, 0, size);
    return static_cast<std::byte*>(at);
  }
};

}  // namespace

const Device& HostDevice() {
  static const Host host;
  return host;
}

std::optional<DeviceMemory> DeviceMemory::Allocate(const Device& device, int64_t bytes,
                                                   MemoryUse use) {
  if (bytes <= 0) return std::nullopt;
  std::byte* const at = device.Allocate(bytes, use);
  if (at == nullptr) return std::nullopt;
  return DeviceMemory(at, {&device, bytes, use});
}

}  // namespace latte
