// The types of the words: plain data with the same layout on the host, in nvcc's reading and in the
// emulator's. Parameters of kernels may hold them.
#pragma once

#include <cstdint>

namespace latte::cuda {

// A byte address in the block's shared memory, as PTX's .shared state space has it.
using SharedAddr = uint32_t;

// 16 bytes, the most that one lane moves at once.
struct alignas(16) Words4 {
  uint32_t w[4];
};

struct alignas(8) Floats2 {
  float x, y;
};

struct alignas(16) Floats4 {
  float x, y, z, w;
};

// A tensor as TMA sees it: CUtensorMap of the driver, 128 bytes that only the driver can read
// (cuTensorMapEncodeTiled). The emulator's driver writes its own content there.
struct alignas(64) TensorMap {
  uint64_t opaque[16];
};

}  // namespace latte::cuda
