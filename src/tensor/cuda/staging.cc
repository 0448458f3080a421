#include "src/tensor/cuda/staging.h"

#include <algorithm>
#include <cstring>

namespace latte::cuda {
namespace {

constexpr int64_t kAlignment = 64;

}  // namespace

Staging::Block& Staging::Next() {
  current_ = (current_ + 1) % kBlocks;
  used_ = 0;
  std::unique_ptr<Block>& block = ring_[current_];
  if (block == nullptr) block = std::make_unique<Block>(driver_);
  if (block->is_used) block->copied.Await();
  return *block;
}

void Staging::CopyFromHost(abi::Ptr to, const void* from, int64_t bytes, abi::Stream stream) {
  const auto* source = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    Block& block = used_ == kBlockBytes ? Next() : *ring_[current_];
    const int64_t part = std::min(bytes, kBlockBytes - used_);
    std::byte* const staged = block.memory.data() + used_;
    std::memcpy(staged, source, static_cast<size_t>(part));
    driver_.Check(driver_.cuMemcpyHtoDAsync_v2(to, staged, static_cast<size_t>(part), stream),
                  "data was copied to it");
    block.copied.Record(stream);
    block.is_used = true;
    used_ = std::min(kBlockBytes, (used_ + part + kAlignment - 1) / kAlignment * kAlignment);
    source += part;
    to += static_cast<abi::Ptr>(part);
    bytes -= part;
  }
}

}  // namespace latte::cuda
