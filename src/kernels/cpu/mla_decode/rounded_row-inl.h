// Rounds cached rows of every format to bf16: the f32 values of cached_row-inl.h, rounded, with a
// shorter path for e4m3 rows whose scales are powers of two. AVX512_BF16 with VBMI and GFNI.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/bf16_pair-inl.h"
#include "src/kernels/cpu/common/cached_row-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Calls f(i) for every 32 numbers of the leading chunks of 64 that contain no NaN. Returns the
// number of elements in those chunks.
template <class V, class F>
int64_t ForEachChunk(const F8* from, int64_t count, const F& f) {
  constexpr int64_t kNumbers = 64;
  int64_t i = 0;
  for (; i + kNumbers <= count && !V::AnyNaN(from + i); i += kNumbers)
    for (int64_t half = i; half < i + kNumbers; half += V::kPairElements) f(half);
  return i;
}

// The exponent of `scale` if it is a power of two whose product with any e4m3 number neither
// overflows nor underflows, else 128.
inline int32_t ExponentOf(float scale) {
  const auto bits = __builtin_bit_cast(uint32_t, scale);
  const int32_t exponent = static_cast<int32_t>(bits >> 23) - 127;
  return bits % (1u << 23) == 0 && exponent > -100 && exponent < 100 ? exponent : 128;
}

// to[i] = scale·from[i], rounded to bf16; zeros up to a multiple of 32. A scale that is a power of
// two, as in kF8 rows, is added to the exponents. A chunk with a NaN, and all chunks after it, take
// the slower path.
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

// to[i] = from[i]·2^exponent for a multiple of 64 numbers that are all normal; `outliers` records
// whether others occur.
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

// The fast path of kF8 rows, which nearly all rows take: scales are powers of two, no number is
// NaN, subnormal or zero, c is a multiple of 128 and r of 32. Returns false for other rows, with
// `to` undefined. Rows of kF8Dense have one constant scale and usually contain subnormal numbers.
template <class V>
[[gnu::always_inline]] inline bool RoundNormalRow(const CachedRowLayout& f, const char* row,
                                                  BF16* to) {
  constexpr int64_t kGroup = 128;
  if (f.kind != CacheFormat::kF8 || f.c % kGroup != 0 || f.r % V::kPairElements != 0) return false;
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

// A cached row to bf16. to: [c + r], zeros up to a multiple of 32.
template <class V>
void RoundCachedRow(const CachedRowLayout& f, const char* row, BF16* to) {
  constexpr int64_t kGroup = 128;
  const auto* const numbers = reinterpret_cast<const F8*>(row);
  if (f.kind == CacheFormat::kF8Dense) return RoundF8<V>(numbers, f.c + f.r, f.descale, to);
  if (f.kind == CacheFormat::kF8 && f.c % kGroup == 0) {
    for (int64_t at = 0; at < f.c; at += kGroup)
      RoundF8<V>(numbers + at, kGroup, FloatFrom(row + f.scales_at + at / kGroup * 4), to + at);
    const auto* const rope = reinterpret_cast<const BF16*>(row + f.rope_at);
    for (int64_t at = 0; at < f.r; at += V::kPairElements)
      V::StorePairs(to + f.c + at, LoadRowPairs<V>(rope, at, f.r));
    return;
  }
  alignas(64) float wide[kMaxDecodeWidth];
  WidenCachedRow<V>(f, row, wide);
  RoundRow<V>(wide, f.c + f.r, to);
}

// `count` contiguous rows, `stride` elements apart in `to`.
template <class V>
inline void RoundCachedRows(const CachedRowLayout& f, const char* rows, int64_t count, BF16* to,
                            int64_t stride) {
  for (int64_t i = 0; i < count; ++i, rows += f.bytes, to += stride)
    if (!RoundNormalRow<V>(f, rows, to)) RoundCachedRow<V>(f, rows, to);
}

}  // namespace
}  // namespace latte::cpu
