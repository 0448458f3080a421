// Copies from memory of the host that may change after the call: through a ring of pinned blocks.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "src/tensor/cuda/handles.h"

namespace latte::cuda {

// Thread-compatible.
class Staging {
 public:
  static constexpr size_t kBlocks = 2;
  static constexpr int64_t kBlockBytes = 8 << 20;

  explicit Staging(const Driver& driver) : driver_(driver) {}

  // Enqueues a copy of any size; `from` may be reused after the call. Waits only if the copies of
  // the whole ring are still under way. Throws OutOfMemory and DeviceError.
  void CopyFromHost(abi::Ptr to, const void* from, int64_t bytes, abi::Stream stream);

 private:
  struct Block {
    explicit Block(const Driver& driver) : memory(driver, kBlockBytes), copied(driver) {}
    PinnedMemory memory;
    Event copied;          // the last copy out of it
    bool is_used = false;  // since it was made
  };

  // The next block, free to be written.
  Block& Next();

  const Driver& driver_;
  std::array<std::unique_ptr<Block>, kBlocks> ring_;
  size_t current_ = kBlocks - 1;
  int64_t used_ = kBlockBytes;  // bytes of the current block
};

}  // namespace latte::cuda
