#include "tests/device/guarded_device.h"

#include <cstring>

#include <sys/mman.h>

#include "src/base/check.h"
#include "src/base/math.h"

namespace latte::testing_support {
namespace {

constexpr int64_t kBytes = int64_t{1} << 36;  // of address space
constexpr int64_t kPage = 4096;

}  // namespace

GuardedDevice::GuardedDevice() : Device(DeviceKind::kTest, 0) {
  void* const at =
      mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  LATTE_CHECK(at != MAP_FAILED);
  base_ = static_cast<std::byte*>(at);
}

GuardedDevice::~GuardedDevice() { munmap(base_, kBytes); }

GuardedDevice::Access::Access(const GuardedDevice& device, DeviceStream stream) : device_(device) {
  ++device_.accesses_;
  if (stream != device_.expected_) ++device_.strays_;
  if (device_.open_++ == 0) device_.Protect(PROT_READ | PROT_WRITE);
}

GuardedDevice::Access::~Access() {
  if (--device_.open_ == 0) device_.Protect(PROT_NONE);
}

void GuardedDevice::Protect(int protection) const {
  LATTE_CHECK(mprotect(base_, static_cast<size_t>(used_), protection) == 0);
}

std::byte* GuardedDevice::Allocate(int64_t bytes, MemoryUse) const {
  LATTE_CHECK(open_ == 0, "kernels allocate nothing");
  const int64_t size = RoundUp(bytes, kPage);
  if (used_ + size > kBytes) return nullptr;
  std::byte* const at = base_ + used_;
  used_ += size;
  return at;
}

// The addresses are not used again, so that accesses after Free fault too.
void GuardedDevice::Free(std::byte* at, int64_t bytes, MemoryUse) const {
  madvise(at, static_cast<size_t>(RoundUp(bytes, kPage)), MADV_DONTNEED);
}

void GuardedDevice::CopyFromHost(std::byte* to, const void* from, int64_t bytes,
                                 DeviceStream stream) const {
  LATTE_CHECK(bytes == 0 || (Holds(to) && !Holds(from)));
  Note(Direction::kFromHost, bytes);
  const Access access(*this, stream);
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

void GuardedDevice::CopyToHost(void* to, const std::byte* from, int64_t bytes,
                               DeviceStream stream) const {
  LATTE_CHECK(bytes == 0 || (!Holds(to) && Holds(from)));
  Note(Direction::kToHost, bytes);
  const Access access(*this, stream);
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

void GuardedDevice::Copy(std::byte* to, const std::byte* from, int64_t bytes,
                         DeviceStream stream) const {
  LATTE_CHECK(bytes == 0 || (Holds(to) && Holds(from)));
  Note(Direction::kWithin, bytes);
  const Access access(*this, stream);
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

void GuardedDevice::Note(Direction direction, int64_t bytes) const {
  if (copies_ != nullptr) copies_->push_back({direction, bytes, passes_ > 0});
}

bool GuardedDevice::Holds(const void* at) const {
  const auto* const byte = static_cast<const std::byte*>(at);
  return byte >= base_ && byte < base_ + kBytes;
}

const GuardedDevice& TestDevice() {
  static const GuardedDevice device;
  return device;
}

}  // namespace latte::testing_support
