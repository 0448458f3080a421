// Exact conversions between f32 and shorter floating-point numbers, given as their bits.
#pragma once

#include <bit>
#include <cstdint>

namespace latte {

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

// FP8 E8M0, a power of two: 2^(bits − 127); 0xff is NaN. Source: Open Compute Project microscaling
// formats specification 1.0.
constexpr float F8E8M0ToFloat(uint8_t bits) {
  if (bits == 0xffu) return std::bit_cast<float>(0x7fc00000u);
  return std::bit_cast<float>(bits == 0 ? 0x00400000u : static_cast<uint32_t>(bits) << 23);
}

}  // namespace latte
