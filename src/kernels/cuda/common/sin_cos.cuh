// Sine and cosine in f64, in operations that are exact to the bit on every compiler: the angles of
// RoPE.
#pragma once

#include "src/kernels/cuda/words/device.cuh"

namespace latte::cuda {

// Of an angle in radians, |angle| < 2²⁰. Errors are below 2⁻⁵². Method and coefficients: the
// argument less the nearest multiple of π/2, in three parts (Cody and Waite), then the polynomials
// of FreeBSD's msun, k_sin.c and k_cos.c.
LATTE_DEVICE void SinCos(double angle, double* sine, double* cosine) {
  constexpr double kTwoOverPi = 0.63661977236758134308;
  constexpr double kHalfPi[3] = {1.5707963267948966, 6.123233995736766e-17,
                                 -1.4973849048591833e-33};
  constexpr double kRound = 0x1.8p52;  // adding it leaves the nearest integer in the last bits
  const double k = fma(angle, kTwoOverPi, kRound) - kRound;
  double x = fma(-k, kHalfPi[0], angle);
  x = fma(-k, kHalfPi[1], x);
  x = fma(-k, kHalfPi[2], x);
  const double z = x * x;
  double s = 1.58969099521155010221e-10;
  s = fma(s, z, -2.50507602534068634195e-08);
  s = fma(s, z, 2.75573137070700676789e-06);
  s = fma(s, z, -1.98412698298579493134e-04);
  s = fma(s, z, 8.33333333332248946124e-03);
  s = fma(s, z, -1.66666666666666324348e-01);
  s = fma(s * z, x, x);
  double c = -1.13596475577881948265e-11;
  c = fma(c, z, 2.08757232129817482790e-09);
  c = fma(c, z, -2.75573143513906633035e-07);
  c = fma(c, z, 2.48015872894767294178e-05);
  c = fma(c, z, -1.38888888888741095749e-03);
  c = fma(c, z, 4.16666666666666019037e-02);
  c = fma(c * z, z, fma(z, -0.5, 1.0));
  const int quadrant = static_cast<int>(static_cast<int64_t>(k) & 3);
  const double of_sine = quadrant % 2 == 0 ? s : c, of_cosine = quadrant % 2 == 0 ? c : s;
  *sine = quadrant >= 2 ? -of_sine : of_sine;
  *cosine = quadrant == 1 || quadrant == 2 ? -of_cosine : of_cosine;
}

}  // namespace latte::cuda
