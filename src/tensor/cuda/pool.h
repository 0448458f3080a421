// Memory of a GPU. The driver's allocation is slow and its release waits for all work, so small
// pieces come from slabs, and freed pieces are reused.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "src/tensor/cuda/driver.h"

namespace latte::cuda {

// Thread-compatible. A piece that is freed may be handed out while work that reads it is queued:
// work of one stream alone uses the pool.
class Pool {
 public:
  static constexpr int64_t kAlignment = 256;

  explicit Pool(const Driver& driver) : driver_(driver) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // 0 if the GPU has too little memory. Requires: bytes > 0. Freed with the same number.
  abi::Ptr Allocate(int64_t bytes);
  void Free(abi::Ptr at, int64_t bytes);

  // The same from the driver itself, for what is large and lives long: arenas, workspace, cache.
  abi::Ptr AllocateAlone(int64_t bytes);
  void FreeAlone(abi::Ptr at) { driver_.cuMemFree_v2(at); }

 private:
  static constexpr int64_t kSlabBytes = 16 << 20;
  static constexpr int64_t kLargestPiece = 1 << 20;

  abi::Ptr TakeFromSlab(int64_t bytes);
  bool AddSlab(int64_t bytes);

  const Driver& driver_;
  std::vector<abi::Ptr> slabs_;
  abi::Ptr next_ = 0;  // what is left of the last slab
  int64_t left_ = 0;
  std::unordered_map<int64_t, std::vector<abi::Ptr>> freed_;  // by size
};

}  // namespace latte::cuda
