// Cached rows of every kind, rounded to bf16: what cached_row-inl.h makes of them, in fewer steps
// where numbers are e4m3.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/cached_row-inl.h"
#include "src/kernels/cpu/element-inl.h"
#include "src/kernels/cpu/pairs-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/tiles-inl.h"

namespace latte::cpu {
namespace {

// to[i] = scale·from[i], rounded; zeros up to a multiple of 32 behind them. NaNs, and what follows
// them, take the slower way.
template <class V>
void RoundF8(const F8* from, int64_t count, float scale, BF16* to) {
  constexpr int64_t kChunk = 2 * V::kPairElements;
  int64_t i = 0;
  if (scale < 0x1p119f) {  // 2^8·scale is finite
    const typename V::Vec by = V::Set1(0x1p8f * scale);
    for (; i + kChunk <= count && !V::AnyNaN(from + i); i += kChunk) {
      V::StorePairs(to + i, V::RoundNumbers(from + i, by));
      V::StorePairs(to + i + V::kPairElements, V::RoundNumbers(from + i + V::kPairElements, by));
    }
  }
  alignas(64) float wide[kMaxDecodeWidth];
  if (i == count) return;
  WidenScaled<V, F8>(from + i, count - i, scale, wide);
  RoundRow<V>(wide, count - i, to + i);
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

}  // namespace
}  // namespace latte::cpu
