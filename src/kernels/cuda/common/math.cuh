// Exp and Log in f32, in operations that are exact to the bit on every compiler.
#pragma once

#include "src/kernels/cuda/words/device.cuh"

namespace latte::cuda {

// eˣ within 1.02 ulp; results below 2⁻¹²⁶ are 0. Coefficients: Cephes, expf.
LATTE_DEVICE float Exp(float x) {
  if (x != x) return x;
  if (x > 88.72283f) return __builtin_huge_valf();
  if (x < -87.33654f) return 0.0f;
  constexpr float kRound = 0x1.8p23f;
  const float n = Sub(Fma(x, 1.44269504088896341f, kRound), kRound);
  float r = Fma(n, -0.693359375f, x);
  r = Fma(n, 2.12194440e-4f, r);
  float p = 1.9875691500e-4f;
  p = Fma(p, r, 1.3981999507e-3f);
  p = Fma(p, r, 8.3334519073e-3f);
  p = Fma(p, r, 4.1665795894e-2f);
  p = Fma(p, r, 1.6666665459e-1f);
  p = Fma(p, r, 5.0000001201e-1f);
  p = Add(Fma(p, Mul(r, r), r), 1.0f);
  const int32_t exponent = static_cast<int32_t>(n);
  const int32_t half = exponent / 2;  // 2ⁿ may be above the largest float
  return Mul(Mul(p, BitsFloat(static_cast<uint32_t>(half + 127) << 23)),
             BitsFloat(static_cast<uint32_t>(exponent - half + 127) << 23));
}

// ln x of a normal x > 0, within 0.82 ulp. Coefficients: Cephes, logf.
LATTE_DEVICE float Log(float x) {
  uint32_t bits = FloatBits(x);
  int32_t e = static_cast<int32_t>(bits >> 23) - 126;
  float m = BitsFloat((bits & 0x007fffffu) | 0x3f000000u);  // in [½, 1)
  if (m < 0.707106781186547524f) {
    e -= 1;
    m = Sub(Add(m, m), 1.0f);
  } else {
    m = Sub(m, 1.0f);
  }
  const float z = Mul(m, m);
  float p = 7.0376836292e-2f;
  p = Fma(p, m, -1.1514610310e-1f);
  p = Fma(p, m, 1.1676998740e-1f);
  p = Fma(p, m, -1.2420140846e-1f);
  p = Fma(p, m, 1.4249322787e-1f);
  p = Fma(p, m, -1.6668057665e-1f);
  p = Fma(p, m, 2.0000714765e-1f);
  p = Fma(p, m, -2.4999993993e-1f);
  p = Fma(p, m, 3.3333331174e-1f);
  float y = Mul(Mul(p, m), z);
  const float n = static_cast<float>(e);
  y = Fma(n, -2.12194440e-4f, y);
  y = Fma(z, -0.5f, y);
  return Fma(n, 0.693359375f, Add(m, y));
}

}  // namespace latte::cuda
