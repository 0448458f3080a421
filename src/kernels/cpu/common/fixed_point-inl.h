// Floats as integers below the largest of them.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// What numbers up to `largest` are multiplied by to have `kBits` bits and a sign, and its inverse:
// powers of two. Beside NaN or infinity the latter is NaN.
struct FixedPoint {
  float from_float, to_float;
};
template <int kBits>
FixedPoint FixedPointOf(float largest) {
  constexpr uint32_t kLeast = 30;  // below, what is multiplied by would overflow
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
