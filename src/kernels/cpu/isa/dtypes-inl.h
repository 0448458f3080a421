// Element types, value tables and constants of Exp that the vector classes of all instruction sets
// share.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

struct BF16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

struct F8 {  // e4m3
  uint8_t bits;
};
struct F8Fnuz {  // e4m3fnuz
  uint8_t bits;
};
struct I8 {
  int8_t value;
};
// Two 4-bit values, the lower index in the low bits. Pointer offsets are value indices / 2.
struct U4 {
  uint8_t bits;
};
template <class T>
constexpr bool kIsF8 = false;
template <>
inline constexpr bool kIsF8<F8> = true;
template <>
inline constexpr bool kIsF8<F8Fnuz> = true;
template <class T>
constexpr int64_t kValuesPer = 1;
template <>
inline constexpr int64_t kValuesPer<U4> = 2;

// Calls f with a typed pointer to f32 or 16 bits.
template <class F>
void WithType(const void* data, Element type, const F& f) {
  if (type == Element::kBF16) return f(static_cast<const BF16*>(data));
  if (type == Element::kF16) return f(static_cast<const F16*>(data));
  f(static_cast<const float*>(data));
}
// The same for the types of B that kernels of bf16 products read too.
template <class F>
void WithNarrowType(const void* data, Element type, const F& f) {
  if (type == Element::kF8E4M3) return f(static_cast<const F8*>(data));
  if (type == Element::kF8E4M3Fnuz) return f(static_cast<const F8Fnuz*>(data));
  if (type == Element::kI8) return f(static_cast<const I8*>(data));
  f(static_cast<const U4*>(data));
}
// The same for all types of B. A type that only f32 kernels read gets its line here.
template <class F>
void WithWeightType(const void* data, Element type, const F& f) {
  if (type < Element::kF8E4M3) return WithType(data, type, f);
  WithNarrowType(data, type, f);
}

// −16, −15, …, 15: entries from 16 − zero are the values of a U4 with zero point 0 to 16.
constexpr int64_t kU4Zeros = 16;
struct U4Values {
  float f32[2 * kU4Zeros] = {};
  uint16_t bf16[2 * kU4Zeros] = {};
  constexpr U4Values() {
    for (int i = 0; i < 2 * kU4Zeros; ++i) {
      f32[i] = static_cast<float>(i - kU4Zeros);
      bf16[i] = static_cast<uint16_t>(__builtin_bit_cast(uint32_t, f32[i]) >> 16);
    }
  }
};
constexpr U4Values kU4Values;

// Low and high byte of the exact bf16 value of each e4m3 magnitude for a bias; `nan`: the magnitude
// that is NaN, or −1.
struct F8Bytes {
  alignas(64) uint8_t low[128] = {};
  alignas(64) uint8_t high[128] = {};
  constexpr F8Bytes(int bias, int nan) {
    for (int i = 0; i < 128; ++i) {
      const int exponent = i >> 3;
      const auto mantissa = static_cast<float>(i & 7);
      float value = exponent == 0 ? mantissa / 8 : 1 + mantissa / 8;
      for (int e = exponent == 0 ? 1 : exponent; e < bias; ++e) value /= 2;
      for (int e = bias; e < exponent; ++e) value *= 2;
      uint32_t bits = __builtin_bit_cast(uint32_t, value);
      if (i == nan) bits = 0x7fc00000u;
      low[i] = static_cast<uint8_t>(bits >> 16);
      high[i] = static_cast<uint8_t>(bits >> 24);
    }
  }
};
constexpr F8Bytes kF8Bytes{7, 127};
constexpr F8Bytes kF8FnuzBytes{8, -1};

// Addends that turn magnitude · 16 of an e4m3 into the bits of a bf16; `small` for magnitudes below
// 8, which are subnormal.
struct F8Moves {
  uint16_t normal = 0;
  alignas(16) uint16_t small[8] = {};
  constexpr F8Moves(const F8Bytes& bytes, int bias) {
    normal = static_cast<uint16_t>((127 - bias) << 7);
    for (int i = 0; i < 8; ++i)
      small[i] = static_cast<uint16_t>((bytes.high[i] << 8) + bytes.low[i] - 16 * i);
  }
};
constexpr F8Moves kF8Moves{kF8Bytes, 7};
constexpr F8Moves kF8FnuzMoves{kF8FnuzBytes, 8};

constexpr float kLog2E = 0x1.715476p+0f;
// ln 2 = high + low; high has 9 bits, so n·high is exact for every |n| < 2^15.
constexpr float kLn2High = 0x1.63p-1f;
constexpr float kLn2Low = -0x1.bd0106p-13f;
// 1/7!, 1/6!, …, 1/1!, 1/0!
constexpr float kExpTaylor[8] = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24,
                                 1.0f / 6,    0.5f,       1.0f,       1.0f};
// Coefficients of r^5 … r^0 of 2^r, 0 ≤ r ≤ 1: relative error 8.3e-8, minimal for degree 5 and 1 at
// 0.
constexpr float kExp2MinMax[6] = {0x1.e976p-10f,  0x1.277806p-7f, 0x1.c91cf8p-5f,
                                  0x1.ebdb56p-3f, 0x1.62e4bap-1f, 1.0f};

}  // namespace
}  // namespace latte::cpu
