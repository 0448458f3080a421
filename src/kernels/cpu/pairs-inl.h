// Rows of bf16, 32 at a time: what kernels that multiply bf16 share.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/element-inl.h"
#include "src/kernels/cpu/tiles-inl.h"

namespace latte::cpu {
namespace {

// Elements [at, at + 32) of a row of `width`, zeros behind its end.
template <class V>
typename V::Pairs LoadPairsOf(const BF16* row, int64_t at, int64_t width) {
  return at + V::kPairElements <= width ? V::LoadPairs(row + at)
                                        : V::LoadPairsPartial(row + at, width - at);
}

// to = x rounded, zeros up to a multiple of 32 behind it.
template <class V>
void RoundRow(const float* x, int64_t count, BF16* to) {
  for (int64_t i = 0; i < count; i += V::kPairElements) {
    const int64_t low = Min(V::kLanes, count - i);
    const int64_t high = Min(V::kLanes, count - i - low);
    V::StorePairs(to + i,
                  V::RoundPairs(V::LoadPartial(x + i, low), V::LoadPartial(x + i + low, high)));
  }
}

}  // namespace
}  // namespace latte::cpu
