// bf16 rows, and the register tile that multiplies bf16 pairs (vdpbf16ps). A pair is two
// consecutive terms of a sum: one instruction multiplies both and adds them to one f32.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"

namespace latte::cpu {
namespace {

// Elements [at, at + 32) of a row of `width` elements, zeros behind its end.
template <class V>
typename V::Pairs LoadRowPairs(const BF16* row, int64_t at, int64_t width) {
  return at + V::kPairElements <= width ? V::LoadPairs(row + at)
                                        : V::LoadPairsPartial(row + at, width - at);
}

// to = x rounded to bf16, zeros up to a multiple of 32 elements.
template <class V>
void RoundRow(const float* x, int64_t count, BF16* to) {
  int64_t i = 0;
  for (; i + V::kPairElements <= count; i += V::kPairElements)
    V::StorePairs(to + i, V::RoundPairs(V::Load(x + i), V::Load(x + i + V::kLanes)));
  if (i == count) return;
  const int64_t low = Min(V::kLanes, count - i);
  V::StorePairs(to + i, V::RoundPairs(V::LoadPartial(x + i, low),
                                      V::LoadPartial(x + i + low, count - i - low)));
}

// y[i,:] = factor[i]·y[i,:] + Σ_n x[i,n]·w[n,:] for n < terms, with two terms of w interleaved.
struct Bf16Product {
  const BF16* x;  // [rows, terms]; zero behind an odd last term
  int64_t x_stride;
  const BF16* w;     // [⌈terms/2⌉, columns, 2]; anything after an odd last term
  int64_t w_stride;  // elements from pair to pair
  int64_t terms;
  const float* factor;  // null: y starts from zero and is not read
  float* y;
  int64_t y_stride;
};

// kM rows × kN vectors of y. One instruction per pair of terms, in index order.
template <class V, int64_t kM, int64_t kN>
inline void Bf16OuterTile(const Bf16Product& o) {
  typename V::Vec acc[kM][kN];
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j)
      acc[i][j] = o.factor == nullptr
                      ? V::Zero()
                      : V::Mul(V::Load(o.y + i * o.y_stride + j * V::kLanes), V::Set1(o.factor[i]));

  const BF16* x = o.x;
  const BF16* w = o.w;
  for (int64_t n = 0; n + 2 <= o.terms; n += 2, x += 2, w += o.w_stride) {
    typename V::Pairs wj[kN];
    for (int64_t j = 0; j < kN; ++j) wj[j] = V::LoadPairs(w + j * V::kPairElements);
    for (int64_t i = 0; i < kM; ++i) {
      const typename V::Pairs xi = V::SetPair(x + i * o.x_stride);
      for (int64_t j = 0; j < kN; ++j) acc[i][j] = V::DotPairs(acc[i][j], xi, wj[j]);
    }
  }
  if (o.terms % 2 != 0)
    for (int64_t j = 0; j < kN; ++j) {
      const typename V::Pairs wj = V::FirstOfPairs(V::LoadPairs(w + j * V::kPairElements));
      for (int64_t i = 0; i < kM; ++i)
        acc[i][j] = V::DotPairs(acc[i][j], V::SetPair(x + i * o.x_stride), wj);
    }
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) V::Store(o.y + i * o.y_stride + j * V::kLanes, acc[i][j]);
}

}  // namespace
}  // namespace latte::cpu
