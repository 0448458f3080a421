// f32 to fixed point: powers of two that scale values to integers of kBits bits.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// from_float: power of two that scales values up to `largest` to kBits bits and a sign; to_float:
// its inverse, or NaN if `largest` is NaN or infinity.
struct FixedPoint {
  float from_float, to_float;
};
template <int kBits>
FixedPoint FixedPointOf(float largest) {
  constexpr uint32_t kLeast = 30;  // below, from_float would overflow
  constexpr uint32_t kSum = 254, kExponent = 127 + kBits;
  const uint32_t exponent = __builtin_bit_cast(uint32_t, largest) >> 23;
  const uint32_t at_least = exponent < kLeast ? kLeast : exponent;
  const uint32_t to_float =
      exponent == 255 ? 0x7fc00000u : (at_least + kSum - kExponent - 126) << 23;
  return {__builtin_bit_cast(float, (kExponent + 126 - at_least) << 23),
          __builtin_bit_cast(float, to_float)};
}

}  // namespace
}  // namespace latte::cpu
