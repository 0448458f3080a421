// Rows of weights in blocks (weight_blocks.h), unpacked to what kernels of products read: int8 codes, and
// the scale and offset of every group. Portable code, which compilers turn into vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/tensor/dtype.h"

namespace latte::cpu {

struct BlockUnpacker {
  int64_t group;     // values that share a scale and an offset: 16 or 32
  bool has_offsets;  // whether an offset may be other than −0
  // Writes the codes of `blocks` consecutive blocks, and the scale and the offset of each of their groups.
  // Offsets only if the type has them.
  void (*unpack)(const std::byte* row, int64_t blocks, int8_t* codes, float* scales,
                 float* offsets);
  // Writes their values, with the bits of LoadElement.
  void (*decode)(const std::byte* row, int64_t blocks, float* values);
};

// Requires: IsBlocks(dtype).
const BlockUnpacker& UnpackerOf(DType dtype);

}  // namespace latte::cpu
