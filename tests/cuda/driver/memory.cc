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

size_t MegabytesOf(const char* variable, size_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10) << 20;
}

}  // namespace

DeviceMap::DeviceMap()
    : limit_(MegabytesOf("LATTE_EMULATOR_MEMORY_MB", kUsualLimit)),
      taken_later_(MegabytesOf("LATTE_EMULATOR_TAKEN_LATER_MB", 0)) {
  void* const at =
      mmap(nullptr, kAddresses, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) std::abort();
  base_ = static_cast<std::byte*>(at);
}

void DeviceMap::SetLimit(size_t bytes, size_t taken_later) {
  limit_ = bytes;
  of_others_ = 0;
  taken_later_ = taken_later;
}

void DeviceMap::LetOthersTake() {
  of_others_ += taken_later_;
  taken_later_ = 0;
}

void DeviceMap::Protect(bool open) const {
  if (used_ > 0) mprotect(base_, used_, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

abi::Ptr DeviceMap::Take(size_t bytes) {
  const size_t size = WithGuard(bytes);
  if (bytes > left() || used_ + size > kAddresses) return 0;
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
