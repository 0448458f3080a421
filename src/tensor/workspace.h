// Scratch memory of one step on a device: tensors are taken in order, returned scope by scope, and the memory
// is reused by the next step.
#pragma once

#include <cstdint>
#include <vector>

#include "src/tensor/tensor.h"

namespace latte {

// A bump allocator. It keeps its blocks; each new block is at least as large as all before it.
// Contents are undefined after Take. Thread-compatible.
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

  // `device` must outlive it.
  explicit Workspace(const Device& device = HostDevice()) : device_(&device) {}

  const Device& device() const { return *device_; }

  // Reserves address space for steps of up to so many bytes; memory is taken as it is touched. Without
  // it, a step that needs a little more than all before it leaves their blocks unused. Does nothing
  // if there are blocks, or if the system refuses.
  void Reserve(int64_t bytes);

  // A contiguous, 64-byte aligned view, valid until the enclosing Scope ends. Throws OutOfMemory
  // (src/base/limits/out_of_memory.h) and then leaves the workspace unchanged.
  TensorView Take(DType dtype, std::initializer_list<int64_t> dims);

  int64_t capacity_bytes() const { return capacity_; }  // of all blocks, touched or not

 private:
  const Device* device_;
  std::vector<DeviceMemory> blocks_;
  size_t block_ = 0;  // block in use
  int64_t used_ = 0;  // bytes used of it
  int64_t capacity_ = 0;
};

}  // namespace latte
