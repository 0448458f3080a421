// The rounding of queries in mla_decode kernels, and bounds on the difference from the reference
// with rounded queries.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/conformance/support/attention_case.h"
#include "tests/conformance/support/run_kernels.h"
#include "tests/conformance/support/tolerance.h"

namespace latte {

using DecodeKernel = Kernel<MlaDecodeOp>;

// scale·Σ|q||k| of one row, for keys between −1 and 1; formats with scales may exceed that by a
// rounding.
inline double ScoreBound(const DecodeCase& c, int64_t t, int64_t h, float scale) {
  double sum = 0;
  for (const TensorView& q : {c.q_latent.view(), c.q_rope.view()})
    for (int64_t i = 0; i < q.shape[2]; ++i)
      sum += std::abs(static_cast<double>(GetValue(q, t, h, i)));
  return 1.01 * sum * static_cast<double>(scale);
}

// The largest integer in the rope part of a key in an int8 cache.
inline constexpr float kMaxTwoBytes = 127 * 256 + 127;

// The rounding of queries in a kernel; the reference gets queries rounded in the same way. Kernels
// with 8-bit products round rope parts to two bytes or to s16.
enum class Rounding { kNone, kBF16, kTwoBytes, kWords };
inline bool IsBytes(Rounding r) { return r == Rounding::kTwoBytes || r == Rounding::kWords; }
inline Rounding RoundingOf(const DecodeKernel& kernel, CacheFormat cache) {
  if (cache == CacheFormat::kI8 && kernel.isa.Includes(x86::kAvx512Vnni))
    return kernel.isa == x86::kAmx ? Rounding::kTwoBytes : Rounding::kWords;
  return kernel.isa.Includes(x86::kAvx512Bf16) ? Rounding::kBF16 : Rounding::kNone;
}

// The largest integers of the latent part and of the rope part of a query in kernels with 8-bit
// products. The s16 limit is chosen so that sums of r products with s16 keys (a quarter of theirs)
// do not overflow.
inline constexpr float kMaxByte = 127;
inline float LargestRope(Rounding rounding, int64_t r) {
  if (rounding != Rounding::kWords) return kMaxTwoBytes;
  const int64_t key = (static_cast<int64_t>(kMaxTwoBytes) + 2) / 4;
  const int64_t products = std::max<int64_t>(r, 1) * key;
  return static_cast<float>(
      std::min<int64_t>(32767, std::numeric_limits<int32_t>::max() / products));
}

inline void RoundQuery(const TensorView& q, int64_t t, int64_t h, Rounding rounding, float largest,
                       float* to) {
  float top = 0;
  for (int64_t i = 0; i < q.shape[2]; ++i) top = std::max(top, std::abs(GetValue(q, t, h, i)));
  for (int64_t i = 0; i < q.shape[2]; ++i) {
    to[i] = GetValue(q, t, h, i);
    if (rounding == Rounding::kBF16) to[i] = RoundToBF16(to[i]);
    if (IsBytes(rounding) && top > 0)
      to[i] = std::nearbyint(to[i] * (largest / top)) * (top / largest);
  }
}

inline Tensor RoundedQueries(const TensorView& q, Rounding rounding, float largest) {
  Tensor out(DType::kF32, {q.shape[0], q.shape[1], q.shape[2]});
  float* to = out.Ptr<float>();
  for (int64_t t = 0; t < q.shape[0]; ++t)
    for (int64_t h = 0; h < q.shape[1]; ++h, to += q.shape[2]) {
      RoundQuery(q, t, h, rounding, largest, to);
    }
  return out;
}

// The products of lower bytes, at most 128 each, of the rope part with keys up to 1.
inline double LowerBytes(const DecodeCase& c, const DecodeShape& s, int64_t t, int64_t h) {
  double top = 0;
  for (int64_t i = 0; i < s.r; ++i)
    top = std::max(top, std::abs(static_cast<double>(GetValue(c.q_rope, t, h, i))));
  const double unit = 128 / static_cast<double>(kMaxTwoBytes);
  return 1.01 * static_cast<double>(s.scale * static_cast<float>(s.r)) * top * unit * unit;
}

// An s16 key, a quarter of its integer, is off by at most half, which is two integers; kMaxTwoBytes
// of them correspond to 1, the largest number of a rope part.
inline double KeyWords(const DecodeCase& c, const DecodeShape& s, int64_t t, int64_t h) {
  double sum = 0;
  for (int64_t i = 0; i < s.r; ++i)
    sum += std::abs(static_cast<double>(GetValue(c.q_rope, t, h, i)));
  return 1.01 * static_cast<double>(s.scale) * sum * 2 / static_cast<double>(kMaxTwoBytes);
}

// The error of scores that does not come from rounding floats.
inline double ScoreOffset(Rounding rounding, const DecodeCase& c, const DecodeShape& s, int64_t t,
                          int64_t h) {
  if (rounding == Rounding::kTwoBytes) return LowerBytes(c, s, t, h);
  return rounding == Rounding::kWords ? KeyWords(c, s, t, h) : 0;
}

// The bound for head h of token t.
inline AttentionBound BoundOf(const DecodeKernel& kernel, const DecodeCase& c, const DecodeShape& s,
                              int64_t t, int64_t h, double lse) {
  const Rounding rounding = RoundingOf(kernel, s.cache.kind);
  const bool bf16 = rounding == Rounding::kBF16;
  const double unit = bf16 ? kBF16Unit : 0;
  const double key_unit = bf16 && s.cache.kind != CacheFormat::kPlain ? kBF16Unit : 0;
  const double scores = ScoreBound(c, t, h, s.scale) * (1 + unit);  // with rounded queries
  for (const SequenceChunk& sequence : c.sequences)
    if (t < sequence.query_start + sequence.count)
      return BoundAttention(s.c + s.r, sequence.total_len(), scores, lse, unit, key_unit,
                            ScoreOffset(rounding, c, s, t, h));
  return {};
}

}  // namespace latte
