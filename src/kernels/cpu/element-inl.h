// What the vocabularies of all instruction sets share: 16-bit element types and the constants of
// Exp.
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
struct I8 {
  int8_t value;
};

// Calls f with a typed pointer.
template <class F>
void WithType(const void* data, Element type, const F& f) {
  if (type == Element::kBF16) return f(static_cast<const BF16*>(data));
  if (type == Element::kF16) return f(static_cast<const F16*>(data));
  f(static_cast<const float*>(data));
}

constexpr float kLog2E = 0x1.715476p+0f;
// ln 2 = high + low; high has 9 bits, so n·high is exact for every |n| < 2^15.
constexpr float kLn2High = 0x1.63p-1f;
constexpr float kLn2Low = -0x1.bd0106p-13f;
// 1/7!, 1/6!, …, 1/1!, 1/0!
constexpr float kExpTaylor[8] = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24,
                                 1.0f / 6,    0.5f,       1.0f,       1.0f};

}  // namespace
}  // namespace latte::cpu
