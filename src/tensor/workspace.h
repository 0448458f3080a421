// Scratch memory of one step on a device: tensors are taken in order, returned scope by scope, and
// the memory is reused by the next step.
#pragma once

#include <cstdint>
#include <vector>

#include "src/tensor/tensor.h"

namespace latte {

// A bump allocator. It keeps its blocks; each new block is at least as large as all before it. On a
// device other than the host, what Reserve took is all that there is. Contents are undefined after
// Take. Thread-compatible.
class Workspace {
 public:
  // Returns everything taken since its construction.
  class Scope {
   public:
    explicit Scope(Workspace& workspace)
        : workspace_(workspace), block_(workspace.block_), used_(workspace.used_) {}
    ~Scope() {
      workspace_.block_ = block_;
      workspace_.used_ = used_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Workspace& workspace_;
    size_t block_;
    int64_t used_;
  };

  // While it lives, Take gives addresses without memory, for steps whose kernels do not run.
  class Measurement {
   public:
    // Requires: nothing is in use.
    explicit Measurement(Workspace& workspace);
    ~Measurement() { workspace_.measures_ = false; }
    Measurement(const Measurement&) = delete;
    Measurement& operator=(const Measurement&) = delete;

    // The most bytes that were in use at once.
    int64_t bytes() const { return workspace_.most_used_; }

   private:
    Workspace& workspace_;
  };

  // `device` must outlive it.
  explicit Workspace(const Device& device = HostDevice()) : device_(&device) {}

  const Device& device() const { return *device_; }

  // Takes room for steps of up to so many bytes. Does nothing if there are blocks. On the host it
  // is address space, whose memory is taken as it is touched; without it, a step that needs a
  // little more than all before it leaves their blocks unused; a refusal of the system changes
  // nothing. On another device, steps cannot have more afterwards; throws ThrowTooLittleMemory's
  // error (device_space.h).
  void Reserve(int64_t bytes);

  // A contiguous, 64-byte aligned view, valid until the enclosing Scope ends. Throws OutOfMemory
  // (src/base/limits/out_of_memory.h), or DeviceError for a step that is larger than what was
  // reserved on a device; then leaves the workspace unchanged.
  TensorView Take(DType dtype, std::initializer_list<int64_t> dims);

  int64_t capacity_bytes() const { return capacity_; }  // of all blocks, touched or not

 private:
  std::byte* Advance(int64_t bytes);
  void AddBlock(int64_t bytes);

  const Device* device_;
  std::vector<DeviceMemory> blocks_;
  size_t block_ = 0;  // block in use
  int64_t used_ = 0;  // bytes used of it
  int64_t capacity_ = 0;
  bool is_fixed_ = false;
  bool measures_ = false;
  int64_t most_used_ = 0;  // while it measures
};

}  // namespace latte
