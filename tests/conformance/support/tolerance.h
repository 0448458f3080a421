// Bounds on the difference between a kernel and the reference, from dtype and length alone.
//
// u = 2^−24 is half the distance from 1 to the next f32. A sum of n products, in any order, with or
// without fused operations, has an error of at most γ_n·Σ|x||w|, γ_n = n·u / (1 − n·u) (Higham,
// Accuracy and Stability of Numerical Algorithms, 2nd ed., §3.1). The reference sums in fp64 and
// rounds once. 16-bit inputs are exact in f32 and add no error.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/base/math.h"

namespace latte {

inline constexpr double kUnit = 0x1p-24;
// As above for bf16, which keeps 8 bits.
inline constexpr double kBF16Unit = 0x1p-8;
// The exp of a kernel has an error of at most 2 ulp = 4u.
inline constexpr double kExpUnits = 4;
// Relative bounds do not apply below this.
inline constexpr double kTiny = 0x1p-126;
// A kernel changes the running maximum at most once per this many keys.
inline constexpr int64_t kLeastKeyBlock = 64;

inline double Gamma(int64_t n) {
  const double nu = static_cast<double>(n) * kUnit;
  return nu / (1 - nu);
}

// |Σ x·w (+ bias) − exact|, given Σ|x||w| (+ |bias|): one more rounding for the bias, one for the
// reference.
inline double DotBound(int64_t terms, double sum_of_abs) {
  return Gamma(terms + 2) * sum_of_abs + static_cast<double>(terms) * kTiny;
}

// A term may be rounded when its activation is scaled, when its scale group is scaled, and in every
// sum of at most K terms and K groups.
inline double QuantBound(int64_t k, double sum_of_abs) { return DotBound(2 * k + 4, sum_of_abs); }

// silu(g)·u relative to |y|: exp, 1+e, quotient and product, in the kernel and in the reference.
inline double SiluBound() { return Gamma(2 * (static_cast<int64_t>(kExpUnits) + 3)); }

// y = silu(g) · u: |y − exact| ≤ |silu| error · |u| + |silu| · error of u. The derivative of silu
// is at most 1.1. gate_sum: a bound on |g|, and so on |silu(g)|; `want`: the reference's y.
inline double GateBound(double gate_error, double up_error, double gate_sum, double up,
                        double want) {
  return 1.1 * gate_error * (std::abs(up) + up_error) + gate_sum * up_error +
         SiluBound() * std::abs(want) + kTiny;
}

// rms_norm relative to |y|: γ_{D+1} for the sum of squares and the mean, halved by the root; eps,
// root, reciprocal, two products, and the reference's rounding.
inline double RmsNormBound(int64_t d) { return Gamma(d + 1) / 2 + Gamma(6); }

struct AttentionBound {
  double o;    // times the largest |v| of the row's keys in a column
  double lse;  // absolute
};

// `scores`: a bound on scale·Σ|q||k|, and so on every |s|. With B blocks of keys:
//   score      dot of `width` terms and the scale                        γ_{width+1}·scores
//   exponent   s − m is rounded, |s − m| ≤ 2·scores; the running         2·u·2·scores
//              maximum rises by at most 2·scores in total
//   weights    one exp per key, one per block and its product            (4·(1+B) + 2B)·u
// A change of every log-weight by at most δ changes a normalised weight by a factor within e^±2δ.
// Numerator and denominator are sums of `keys` terms, then a reciprocal, a product and the
// reference's rounding.
//
// Kernels with bf16 products are compared with the reference on queries rounded to bf16, so this
// rounding adds no error. Products of two bf16 are exact in f32: their dot product has the error of
// any other sum. The probabilities are rounded to bf16 for the product with values but not for
// their sum: |Σ p̂v − Σ pv| ≤ weight_unit·Σ p·|v|. Rows whose numbers need more than bf16 are
// rounded to bf16 too: key_unit, for scores and values. Subnormal probabilities and products become
// zero: at most one kTiny more per key. left_out is the part of every score that a kernel omits by
// design.
inline AttentionBound BoundAttention(int64_t width, int64_t keys, double scores, double lse,
                                     double weight_unit = 0, double key_unit = 0,
                                     double left_out = 0) {
  // Merging a split of 1024 keys adds the error of one more block.
  const int64_t blocks = CeilDiv(keys, kLeastKeyBlock) + CeilDiv(keys, int64_t{1024}) + 1;
  const double delta =
      Gamma(width + 1) * scores + 4 * kUnit * scores + key_unit * scores + left_out +
      (kExpUnits * static_cast<double>(1 + blocks) + 2 * static_cast<double>(blocks)) * kUnit;
  const double sums = Gamma(keys + blocks + 3);
  AttentionBound out;
  out.o =
      std::exp(2 * delta) * (1 + sums) * (1 + sums) * (1 + weight_unit) * (1 + key_unit) * 1.01 -
      1.01 + 2 * static_cast<double>(keys) * kTiny;
  out.lse = delta + sums + 2 * kUnit * std::abs(lse) + kTiny;
  return out;
}

}  // namespace latte
