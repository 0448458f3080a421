#include "src/tensor/workspace.h"

#include <algorithm>

#include "src/base/limits/out_of_memory.h"
#include "src/base/math.h"

namespace latte {
namespace {
// Two huge pages.
constexpr int64_t kMinBlockBytes = 4 << 20;
}  // namespace

void Workspace::Reserve(int64_t bytes) {
  if (!blocks_.empty()) return;
  std::optional<DeviceMemory> block =
      DeviceMemory::Allocate(*device_, bytes, MemoryUse::kWorkspace);
  if (!block) return;
  blocks_.push_back(std::move(*block));
  capacity_ = bytes;
}

TensorView Workspace::Take(DType dtype, std::initializer_list<int64_t> dims) {
  TensorView view(nullptr, dtype, dims);
  const int64_t bytes = RoundUp(std::max<int64_t>(view.elements() * SizeOf(dtype), 1), 64);
  while (block_ < blocks_.size() && used_ + bytes > blocks_[block_].bytes()) {
    ++block_;
    used_ = 0;
  }
  if (block_ == blocks_.size()) {
    const int64_t size = std::max({bytes, capacity_, kMinBlockBytes});
    std::optional<DeviceMemory> block =
        DeviceMemory::Allocate(*device_, size, MemoryUse::kWorkspace);
    if (!block) throw OutOfMemory(size, "the scratch memory of a step");
    blocks_.push_back(std::move(*block));
    capacity_ += size;
  }
  view.data = blocks_[block_].data() + used_;
  used_ += bytes;
  return view;
}

}  // namespace latte
