#include "src/tensor/cuda/pool.h"

#include <utility>

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

bool Pool::AddSlab(int64_t bytes) {
  const abi::Ptr slab = TakeFromDriver(driver_, bytes);
  if (slab == 0) return false;
  slabs_.push_back(slab);
  next_ = slab;
  left_ = bytes;
  return true;
}

// A GPU that is nearly full may have room for the piece but not for a slab.
abi::Ptr Pool::TakeFromSlab(int64_t bytes) {
  if (left_ < bytes && !AddSlab(kSlabBytes) && !AddSlab(bytes)) return 0;
  left_ -= bytes;
  return std::exchange(next_, next_ + static_cast<abi::Ptr>(bytes));
}

abi::Ptr Pool::AllocateAlone(int64_t bytes) { return TakeFromDriver(driver_, bytes); }

abi::Ptr Pool::Allocate(int64_t bytes) {
  bytes = RoundUp(bytes, kAlignment);
  if (bytes > kLargestPiece) return AllocateAlone(bytes);
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
    FreeAlone(at);
}

}  // namespace latte::cuda
