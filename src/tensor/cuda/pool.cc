#include "src/tensor/cuda/pool.h"

#include "src/base/math.h"

namespace latte::cuda {
namespace {

abi::Ptr TakeFromDriver(const Driver& driver, int64_t bytes) {
  abi::Ptr out = 0;
  const abi::Code code = driver.cuMemAlloc_v2(&out, static_cast<size_t>(bytes));
  if (code == abi::kOutOfMemory) return 0;
  driver.Check(code, "memory was taken");
  return out;
}

}  // namespace

Pool::~Pool() {
  for (const abi::Ptr slab : slabs_) driver_.cuMemFree_v2(slab);
}

abi::Ptr Pool::TakeFromSlab(int64_t bytes) {
  if (kSlabBytes - used_ < bytes) {
    const abi::Ptr slab = TakeFromDriver(driver_, kSlabBytes);
    if (slab == 0) return 0;
    slabs_.push_back(slab);
    used_ = 0;
  }
  const abi::Ptr out = slabs_.back() + static_cast<abi::Ptr>(used_);
  used_ += bytes;
  return out;
}

abi::Ptr Pool::Allocate(int64_t bytes) {
  bytes = RoundUp(bytes, kAlignment);
  if (bytes > kLargestPiece) return TakeFromDriver(driver_, bytes);
  std::vector<abi::Ptr>& freed = freed_[bytes];
  if (freed.empty()) return TakeFromSlab(bytes);
  const abi::Ptr out = freed.back();
  freed.pop_back();
  return out;
}

void Pool::Free(abi::Ptr at, int64_t bytes) {
  bytes = RoundUp(bytes, kAlignment);
  if (bytes <= kLargestPiece)
    freed_[bytes].push_back(at);
  else
    driver_.cuMemFree_v2(at);
}

}  // namespace latte::cuda
