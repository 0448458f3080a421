#include "src/tensor/workspace.h"

#include <algorithm>

#include "src/base/math.h"

namespace latte {
namespace {
// Steps need a few large pieces; a block below this size would only add blocks.
constexpr int64_t kMinBlockBytes = 4 << 20;
}  // namespace

TensorView Workspace::Take(DType dtype, std::initializer_list<int64_t> dims) {
  TensorView view(nullptr, dtype, dims);
  const int64_t bytes = RoundUp(std::max<int64_t>(view.elements() * SizeOf(dtype), 1), 64);
  while (block_ < blocks_.size() && used_ + bytes > blocks_[block_].bytes()) {
    ++block_;
    used_ = 0;
  }
  if (block_ == blocks_.size()) {
    blocks_.emplace_back(DType::kU8,
                         std::initializer_list<int64_t>{std::max(bytes, kMinBlockBytes)});
    capacity_ += blocks_.back().bytes();
  }
  view.data = blocks_[block_].Ptr<std::byte>() + used_;
  used_ += bytes;
  return view;
}

}  // namespace latte
