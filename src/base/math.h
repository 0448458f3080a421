// Integer helpers that cannot overflow silently.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace latte {

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }
constexpr bool IsPow2(int64_t a) { return a > 0 && (a & (a - 1)) == 0; }

// a·b of non-negative numbers, or nothing when the result does not fit.
inline std::optional<int64_t> CheckedMul(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}
inline std::optional<int64_t> CheckedProduct(std::span<const int64_t> factors) {
  int64_t out = 1;
  for (int64_t f : factors)
    if (__builtin_mul_overflow(out, f, &out)) return std::nullopt;
  return out;
}

}  // namespace latte
