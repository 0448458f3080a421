// Element types of weights, caches and activations, and their exact conversions.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

#include "latte/status.h"

namespace latte {

// kU4: two values of 0 to 15 per byte, the one of the lower index in the low four bits. The last
// dimension of such a view, its strides and SizeOf count bytes; ValuesPerElement is 2.
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
  kBool
};

// Bytes of one element.
constexpr int64_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kI64:
      return 8;
    case DType::kF8E4M3:
    case DType::kF8E4M3Fnuz:
    case DType::kI8:
    case DType::kU8:
    case DType::kU4:
    case DType::kBool:
      return 1;
  }
  return 0;
}

// Values that one element of the last dimension holds.
constexpr int64_t ValuesPerElement(DType dtype) { return dtype == DType::kU4 ? 2 : 1; }

std::string_view Name(DType dtype);  // "bf16"

// "f32", "bf16" or "f16" from a flag. Errors: kInvalidArgument listing the accepted names.
[[nodiscard]] Result<DType> ParseArithmetic(std::string_view text);

constexpr float BF16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// Round to nearest, ties to even; a NaN stays a (quiet) NaN.
constexpr uint16_t FloatToBF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float RoundToBF16(float value) { return BF16ToFloat(FloatToBF16(value)); }

// IEEE binary16, subnormals, infinities and NaN included.
constexpr float F16ToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

// Round to nearest, ties to even; 65520 and above become infinity; a NaN stays a (quiet) NaN.
constexpr uint16_t FloatToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // below 2^−14: a unit of 0.5f's last place is 2^−24, as here
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

// A float as the 16 bits of `dtype`. Requires: kBF16 or kF16.
constexpr uint16_t FloatTo16(float value, DType dtype) {
  return dtype == DType::kF16 ? FloatToF16(value) : FloatToBF16(value);
}

// Converts `count` floats to 16-bit `dtype`. One loop per dtype, so that each is vectorised.
// Requires: kBF16 or kF16.
inline void RoundTo16(const float* from, int64_t count, DType dtype, uint16_t* to) {
  if (dtype == DType::kF16)
    for (int64_t i = 0; i < count; ++i) to[i] = FloatToF16(from[i]);
  else
    for (int64_t i = 0; i < count; ++i) to[i] = FloatToBF16(from[i]);
}

// FP8 E4M3: 4 exponent bits, 3 mantissa bits, no infinities. The two variants differ in the
// exponent's bias and in which codes are NaN. Source: Open Compute Project 8-bit floating point
// specification 1.0; the fnuz variant as in arXiv 2206.02915.
constexpr float F8E4M3Magnitude(uint8_t bits, int bias) {
  const uint32_t exponent = (bits >> 3) & 15u;
  const uint32_t mantissa = bits & 7u;
  const uint32_t subnormal_scale = static_cast<uint32_t>(127 + 1 - bias - 3) << 23;  // 2^(1−bias−3)
  if (exponent == 0) return static_cast<float>(mantissa) * std::bit_cast<float>(subnormal_scale);
  return std::bit_cast<float>(((exponent + 127u - static_cast<uint32_t>(bias)) << 23) |
                              (mantissa << 20));
}
// Bias 7; 0x7f and 0xff are NaN; largest 448.
constexpr float F8E4M3ToFloat(uint8_t bits) {
  if ((bits & 0x7fu) == 0x7fu) return std::bit_cast<float>(0x7fc00000u);
  const float magnitude = F8E4M3Magnitude(bits, 7);
  return (bits & 0x80u) != 0 ? -magnitude : magnitude;
}
// Bias 8; 0x80 is NaN, there is no negative zero; largest 240.
constexpr float F8E4M3FnuzToFloat(uint8_t bits) {
  if (bits == 0x80u) return std::bit_cast<float>(0x7fc00000u);
  const float magnitude = F8E4M3Magnitude(bits, 8);
  return (bits & 0x80u) != 0 ? -magnitude : magnitude;
}

// Bias 7. Rounds to nearest, ties to even; magnitudes above 448 become 448; a NaN stays a NaN.
constexpr uint8_t FloatToF8E4M3(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 24) & 0x80u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint8_t>(sign | 0x7fu);
  if (magnitude >= 0x43e80000u) return static_cast<uint8_t>(sign | 0x7eu);  // from 464 on
  if (magnitude < 0x3c800000u) {  // below 2^−6: a unit of 2^14's last place is 2^−9, as here
    const float shifted = std::bit_cast<float>(magnitude) + 0x1p14f;
    return static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x46800000u));
  }
  const uint32_t rounded = magnitude - (120u << 23) + 0x7ffffu + ((magnitude >> 20) & 1u);
  return static_cast<uint8_t>(sign | (rounded >> 20));
}

// Whether the type is an 8-bit float, whose values need scales.
constexpr bool IsF8(DType dtype) { return dtype == DType::kF8E4M3 || dtype == DType::kF8E4M3Fnuz; }

}  // namespace latte
