// The natural logarithm in f64, in operations that are exact to the bit on every compiler:
// temperatures of queries.
#pragma once

#include <bit>

#include "src/kernels/cuda/words/device.cuh"

namespace latte::cuda {

// ln x of a normal x ≥ 1, within 1 ulp. Method and coefficients: FreeBSD's msun, e_log.c. With x =
// 2ᵏ·(1 + f),
// |f| < √2 − 1 and s = f/(2 + f), ln(1 + f) = f − f²/2 + s·(f²/2 + R(s²)), and the polynomial R is
// off by less than 2⁻⁵⁸·⁴⁵.
LATTE_DEVICE double LogOf(double x) {
  constexpr double kLn2High = 6.93147180369123816490e-01;
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  uint64_t bits = std::bit_cast<uint64_t>(x);
  // 0x6a09f… are the bits of √2 after its exponent: above them the mantissa is halved.
  const uint64_t mantissa = bits & 0x000fffffffffffffu;
  const uint64_t halved = mantissa > 0x0006a09e667f3bccu ? 1 : 0;
  const int exponent = static_cast<int>(bits >> 52) - 1023 + static_cast<int>(halved);
  bits = mantissa | (uint64_t{1023} - halved) << 52;
  const double k = exponent;
  const double f = std::bit_cast<double>(bits) - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double w = z * z;
  double even = fma(w, 1.531383769920937332e-01, 2.222219843214978396e-01);
  even = fma(w, even, 3.999999999940941908e-01);
  double odd = fma(w, 1.479819860511658591e-01, 1.818357216161805012e-01);
  odd = fma(w, odd, 2.857142874366239149e-01);
  odd = fma(w, odd, 6.666666666666735130e-01);
  const double r = fma(z, odd, w * even);
  const double half = 0.5 * f;
  const double correction = fma(s, fma(half, f, r), k * kLn2Low);
  return fma(k, kLn2High, f - fma(half, f, -correction));
}

}  // namespace latte::cuda
