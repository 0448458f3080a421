// The types of numbers, apart from dtype.h: kernels of GPUs include no functions of the host.
#pragma once

#include <cstdint>

namespace latte {

// Prefix files store these numbers: a new type goes to the end.
//
// kU4: two values of 0 to 15 per byte, the one of the lower index in the low four bits. The last
// dimension of such a view, its strides and SizeOf count bytes; ValuesPerElement is 2.
//
// kQ4_0 and those behind it: blocks of GGUF files (weight_blocks.h). The last dimension, its
// strides and SizeOf count blocks; ValuesPerElement is the number of values in a block.
enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kF8E4M3Fnuz,
  kI8,
  kU8,
  kU4,
  kI32,
  kI64,
  kBool,
  kF8E8M0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4
};

}  // namespace latte
