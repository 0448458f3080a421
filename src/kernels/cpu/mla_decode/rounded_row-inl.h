// Cached rows of every kind, rounded to bf16: what cached_row-inl.h makes of them, in fewer steps
// where numbers are e4m3.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/bf16_pair-inl.h"
#include "src/kernels/cpu/common/cached_row-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Calls f(i) for each 32 of the first chunks of 64 numbers without a NaN; returns how many numbers.
template <class V, class F>
int64_t ForEachChunk(const F8* from, int64_t count, const F& f) {
  constexpr int64_t kNumbers = 64;
  int64_t i = 0;
  for (; i + kNumbers <= count && !V::AnyNaN(from + i); i += kNumbers)
    for (int64_t half = i; half < i + kNumbers; half += V::kPairElements) f(half);
  return i;
}

// The exponent of a power of two that no product with a number of e4m3 over- or underflows by, 128
// of other scales.
inline int32_t ExponentOf(float scale) {
  const auto bits = __builtin_bit_cast(uint32_t, scale);
  const int32_t exponent = static_cast<int32_t>(bits >> 23) - 127;
  return bits % (1u << 23) == 0 && exponent > -100 && exponent < 100 ? exponent : 128;
}

// to[i] = scale·from[i], rounded; zeros up to a multiple of 32 behind them. Scales that are powers
// of two, as those of kF8 rows are, are added to exponents. NaNs, and what follows them, take the
// slower way.
template <class V>
void RoundF8(const F8* from, int64_t count, float scale, BF16* to) {
  int64_t done = 0;
  if (const int32_t exponent = ExponentOf(scale); exponent < 128) {
    const typename V::Widener widener = V::Times(V::WidenerOf(from), exponent);
    done = ForEachChunk<V>(
        from, count, [&](int64_t i) { V::StorePairs(to + i, V::MoveNumbers(from + i, widener)); });
  } else if (scale < 0x1p119f) {  // 2⁸·scale is finite
    const typename V::Vec by = V::Set1(0x1p8f * scale);
    done = ForEachChunk<V>(from, count, [&](int64_t i) {
      const typename V::Vec low = V::Mul(V::LoadSmall(from + i), by);
      V::StorePairs(to + i, V::RoundPairs(low, V::Mul(V::LoadSmall(from + i + V::kLanes), by)));
    });
  }
  if (done == count) return;
  alignas(64) float wide[kMaxDecodeWidth];
  WidenScaled<V, F8>(from + done, count - done, scale, wide);
  RoundRow<V>(wide, count - done, to + done);
}

// to[i] = from[i] times a power of two for a multiple of 64 numbers, if all are normal: of others
// `outliers` says that they are there.
template <class V>
inline void MoveNormals(const F8* from, int64_t count, int32_t exponent,
                        typename V::Outliers& outliers, BF16* to) {
  const typename V::Normals normals = V::NormalsOf(exponent);
  for (int64_t i = 0; i < count; i += 2 * V::kPairElements) {
    outliers = V::AddOutliers(outliers, from + i);
    V::StorePairs(to + i, V::MoveNormals(from + i, normals));
    V::StorePairs(to + i + V::kPairElements, V::MoveNormals(from + i + V::kPairElements, normals));
  }
}

// What nearly all rows of kF8 are: scales are powers of two, no number is NaN, subnormal or zero,
// and widths are what models have. Of other rows it returns false, and `to` is anything. Rows of
// kF8Dense, whose scale does not follow their numbers, have subnormal ones as a rule.
template <class V>
[[gnu::always_inline]] inline bool RoundNormalRow(const CachedRows& f, const char* row, BF16* to) {
  constexpr int64_t kGroup = 128;
  if (f.kind != RowKind::kF8 || f.c % kGroup != 0 || f.r % V::kPairElements != 0) return false;
  const auto* const numbers = reinterpret_cast<const F8*>(row);
  typename V::Outliers outliers = V::NoOutliers();
  for (int64_t at = 0; at < f.c; at += kGroup) {
    const int32_t exponent = ExponentOf(FloatFrom(row + f.scales_at + at / kGroup * 4));
    if (exponent == 128) return false;
    MoveNormals<V>(numbers + at, kGroup, exponent, outliers, to + at);
  }
  const auto* const rope = reinterpret_cast<const BF16*>(row + f.rope_at);
  for (int64_t at = 0; at < f.r; at += V::kPairElements)
    V::StorePairs(to + f.c + at, V::LoadPairs(rope + at));
  return !V::AnyOutlier(outliers);
}

// to [c + r], zeros up to a multiple of 32 behind it
template <class V>
void RoundCachedRow(const CachedRows& f, const char* row, BF16* to) {
  constexpr int64_t kGroup = 128;
  const auto* const numbers = reinterpret_cast<const F8*>(row);
  if (f.kind == RowKind::kF8Dense) return RoundF8<V>(numbers, f.c + f.r, f.descale, to);
  if (f.kind == RowKind::kF8 && f.c % kGroup == 0) {
    for (int64_t at = 0; at < f.c; at += kGroup)
      RoundF8<V>(numbers + at, kGroup, FloatFrom(row + f.scales_at + at / kGroup * 4), to + at);
    const auto* const rope = reinterpret_cast<const BF16*>(row + f.rope_at);
    for (int64_t at = 0; at < f.r; at += V::kPairElements)
      V::StorePairs(to + f.c + at, LoadPairsOf<V>(rope, at, f.r));
    return;
  }
  alignas(64) float wide[kMaxDecodeWidth];
  WidenCachedRow<V>(f, row, wide);
  RoundRow<V>(wide, f.c + f.r, to);
}

// `count` rows that lie side by side, `stride` apart in `to`.
template <class V>
inline void RoundCachedRows(const CachedRows& f, const char* rows, int64_t count, BF16* to,
                            int64_t stride) {
  for (int64_t i = 0; i < count; ++i, rows += f.bytes, to += stride)
    if (!RoundNormalRow<V>(f, rows, to)) RoundCachedRow<V>(f, rows, to);
}

}  // namespace
}  // namespace latte::cpu
