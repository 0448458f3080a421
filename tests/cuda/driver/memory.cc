#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>

#include "tests/cuda/driver/state.h"

namespace latte::emulator {
namespace {

constexpr size_t kAddresses = size_t{1} << 40;
constexpr size_t kPage = 4096;
constexpr size_t kUsualLimit = size_t{8} << 30;

size_t WithGuard(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage + kPage; }

size_t LimitOf(const char* megabytes) {
  return megabytes == nullptr ? kUsualLimit : std::strtoull(megabytes, nullptr, 10) << 20;
}

}  // namespace

DeviceMap::DeviceMap() : limit_(LimitOf(std::getenv("LATTE_EMULATOR_MEMORY_MB"))) {
  void* const at =
      mmap(nullptr, kAddresses, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) std::abort();
  base_ = static_cast<std::byte*>(at);
}

void DeviceMap::Protect(bool open) const {
  if (used_ > 0) mprotect(base_, used_, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

abi::Ptr DeviceMap::Take(size_t bytes) {
  const size_t size = WithGuard(bytes);
  if (in_use_ + bytes > limit_ || used_ + size > kAddresses) return 0;
  const auto at = reinterpret_cast<abi::Ptr>(base_ + used_);
  used_ += size;
  in_use_ += bytes;
  live_[at] = bytes;
  const Open open(*this);
  std::memset(reinterpret_cast<void*>(at), 0xff, bytes);
  view_.Add(reinterpret_cast<void*>(at), static_cast<int64_t>(bytes), Content::kPoisoned);
  return at;
}

bool DeviceMap::Give(abi::Ptr at) {
  const auto found = live_.find(at);
  if (found == live_.end()) return false;
  view_.Remove(reinterpret_cast<void*>(at));
  madvise(reinterpret_cast<void*>(at), WithGuard(found->second) - kPage, MADV_DONTNEED);
  in_use_ -= found->second;
  live_.erase(found);
  return true;
}

bool DeviceMap::Holds(abi::Ptr at, size_t bytes) const {
  auto next = live_.upper_bound(at);
  if (next == live_.begin()) return false;
  const auto& [begin, size] = *std::prev(next);
  return at >= begin && at + bytes <= begin + size;
}

}  // namespace latte::emulator
