// Results of runs of keys, merged from left to right. With m' = max(m_a, m_b):
//
//   o = e^{m_a−m'}·o_a + e^{m_b−m'}·o_b      sum = e^{m_a−m'}·sum_a + e^{m_b−m'}·sum_b
//
// Which thread computed a run does not matter: runs are cut at fixed positions, each starts from
// nothing, and they are merged in one order.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/attention-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/tiles-inl.h"

namespace latte::cpu {
namespace {

// max and sum of the rows; their o is where it belongs.
template <class Rows>
void StoreMaxAndSum(const Rows& a, const Partial& out) {
  for (int64_t i = 0; i < a.rows; ++i) {
    out.max[i] = a.max[i];
    out.sum[i] = a.sum[i];
  }
}

template <class V>
void MergePartial(const Partial& to, const Partial& from, int64_t rows, int64_t c) {
  for (int64_t i = 0; i < rows; ++i) {
    // A row that saw nothing leaves even the sign of a zero as it was, as if it had not been there.
    // Not max: where a score is NaN, max may be −inf.
    if (from.sum[i] == 0.0f) continue;
    const float max = from.max[i] > to.max[i] ? from.max[i] : to.max[i];
    const typename V::Vec f = V::Exp(V::Set1(to.max[i] - max));
    const typename V::Vec g = V::Exp(V::Set1(from.max[i] - max));
    float* const o = to.o + i * c;
    const float* const o_b = from.o + i * c;
    for (int64_t j = 0; j < c; j += V::kLanes) {
      const typename V::Vec earlier = V::Mul(f, LoadNext<V>(o + j, c - j));
      StoreNext<V>(o + j, V::Fma(g, LoadNext<V>(o_b + j, c - j), earlier), c - j);
    }
    to.max[i] = max;
    const typename V::Vec sum = V::Fma(g, V::Set1(from.sum[i]), V::Mul(f, V::Set1(to.sum[i])));
    to.sum[i] = V::MaxOf(sum);  // all lanes are the same
  }
}

template <class V>
void FinishPartial(const Partial& p, int64_t rows, int64_t c, float* lse) {
  for (int64_t i = 0; i < rows; ++i) {
    if (p.sum[i] != 0.0f) ScaleRow<V>(p.o + i * c, c, 1.0f / p.sum[i]);
    if (lse != nullptr) lse[i] = LseOf(p.max[i], p.sum[i]);
  }
}

}  // namespace
}  // namespace latte::cpu
