#include "src/tensor/workspace.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/check.h"
#include "src/base/limits/device_error.h"
#include "src/base/limits/out_of_memory.h"
#include "src/base/math.h"
#include "src/tensor/device_space.h"

namespace latte {
namespace {

// Two huge pages.
constexpr int64_t kMinBlockBytes = 4 << 20;
constexpr int64_t kTakenAlignment = 64;
constexpr std::string_view kWhat = "the scratch memory of a step";

}  // namespace

Workspace::Measurement::Measurement(Workspace& workspace) : workspace_(workspace) {
  LATTE_CHECK(workspace.block_ == 0 && workspace.used_ == 0, "a workspace in use is measured");
  workspace.measures_ = true;
  workspace.most_used_ = 0;
}

void Workspace::Reserve(int64_t bytes) {
  if (!blocks_.empty()) return;
  std::optional<DeviceMemory> block =
      DeviceMemory::Allocate(*device_, bytes, MemoryUse::kWorkspace);
  if (!block) {
    if (device_->is_host()) return;
    ThrowTooLittleMemory(*device_, bytes, kWhat,
                         "use smaller --max-batch-tokens or --prefill-workspace-tokens, a smaller "
                         "cache or a smaller model");
  }
  blocks_.push_back(std::move(*block));
  capacity_ = bytes;
  is_fixed_ = !device_->is_host();
}

void Workspace::AddBlock(int64_t bytes) {
  if (is_fixed_)
    throw DeviceError(fmt::format("{}: expected at most the {} bytes that were reserved, found a "
                                  "step that needs {} more; use smaller --max-batch-tokens",
                                  kWhat, capacity_, bytes),
                      Code::kInternal);
  const int64_t size = std::max({bytes, capacity_, kMinBlockBytes});
  std::optional<DeviceMemory> block = DeviceMemory::Allocate(*device_, size, MemoryUse::kWorkspace);
  if (!block) throw OutOfMemory(size, kWhat);
  blocks_.push_back(std::move(*block));
  capacity_ += size;
}

// The place of the next `bytes`.
std::byte* Workspace::Advance(int64_t bytes) {
  if (measures_) {
    // Not null, which would be no tensor.
    auto* const at = reinterpret_cast<std::byte*>(kTakenAlignment + used_);
    most_used_ = std::max(most_used_, used_ + bytes);
    return at;
  }
  size_t block = block_;
  int64_t used = used_;
  while (block < blocks_.size() && used + bytes > blocks_[block].bytes()) {
    ++block;
    used = 0;
  }
  if (block == blocks_.size()) AddBlock(bytes);
  block_ = block;
  used_ = used;
  return blocks_[block].data() + used;
}

TensorView Workspace::Take(DType dtype, std::initializer_list<int64_t> dims) {
  TensorView view(nullptr, dtype, dims);
  const int64_t bytes =
      RoundUp(std::max<int64_t>(view.elements() * SizeOf(dtype), 1), kTakenAlignment);
  view.data = Advance(bytes);
  used_ += bytes;
  return view;
}

}  // namespace latte
