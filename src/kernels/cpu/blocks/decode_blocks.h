// Rows of weights in blocks (weight_blocks.h), decoded to f32. Portable code, which compilers turn
// into vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/tensor/dtype.h"

namespace latte::cpu {

// Writes the values of consecutive blocks, with the bits of LoadElement.
using DecodeBlocks = void (*)(const std::byte* row, int64_t blocks, float* values);

// Requires: IsBlocks(dtype).
DecodeBlocks DecoderOf(DType dtype);

}  // namespace latte::cpu
