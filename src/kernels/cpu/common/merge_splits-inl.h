// Results of runs of keys, merged from left to right. With m' = max(m_a, m_b):
//
//   o = e^{m_a−m'}·o_a + e^{m_b−m'}·o_b      sum = e^{m_a−m'}·sum_a + e^{m_b−m'}·sum_b
//
// Which thread computed a run does not matter: runs are cut at fixed positions, each starts from
// nothing, and they are merged in one order.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/online_softmax-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Keys [begin, end) of a task, which begin from nothing.
struct DecodeSplit {
  int64_t begin, end;
  Partial out;
};

// The i-th, when all before it are written.
inline DecodeSplit TakeSplit(const DecodeTask& t, int64_t i) {
  const int64_t begin = t.key_begin + i * t.split_keys;
  const int64_t end = Max(begin, Min(begin + t.split_keys, t.key_end));
  return {begin, end, t.outs.next(t.outs.self)};
}

// max and sum of the rows; their o is where it belongs.
template <class Rows>
void StoreMaxAndSum(const Rows& a, const Partial& out) {
  for (int64_t i = 0; i < a.rows; ++i) {
    out.max[i] = a.max[i];
    out.sum[i] = a.sum[i];
  }
}

// What one row's results are multiplied by: before the results of a split are added, and those.
struct MergeFactors {
  static constexpr int64_t kMost = 64;    // splits
  alignas(64) float earlier[kMost] = {};  // whole vectors are taken to their powers
  alignas(64) float later[kMost] = {};
  const float* o[kMost];
  int64_t count = 0;
};

// The row `row` of `count` results, one of which `from` has and the next of which is `stride`
// floats further. Updates max and sum.
template <class V>
void FactorsOf(const Partial& from, int64_t stride, int64_t count, int64_t row, int64_t c,
               float& max, float& sum, MergeFactors& m) {
  m.count = 0;
  float sums[MergeFactors::kMost];
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = i * stride + row;
    // A row that saw nothing leaves even the sign of a zero as it was, as if it had not been there.
    // Not max: where a score is NaN, max may be −inf.
    if (from.sum[at] == 0.0f) continue;
    const float larger = from.max[at] > max ? from.max[at] : max;
    m.earlier[m.count] = max - larger;
    m.later[m.count] = from.max[at] - larger;
    m.o[m.count] = from.o + i * stride + row * c;
    sums[m.count++] = from.sum[at];
    max = larger;
  }
  for (int64_t i = 0; i < m.count; i += V::kLanes) {
    V::Store(m.earlier + i, V::Exp(V::Load(m.earlier + i)));
    V::Store(m.later + i, V::Exp(V::Load(m.later + i)));
  }
  for (int64_t i = 0; i < m.count; ++i)
    sum = __builtin_fmaf(m.later[i], sums[i], m.earlier[i] * sum);
}

// o [kVectors vectors] becomes what it is with all later results, and lines of the next row are
// asked for.
template <class V, int64_t kVectors>
void MergeColumns(const MergeFactors& m, int64_t at, int64_t next, float* o) {
  typename V::Vec sums[kVectors];
#pragma GCC unroll 8
  for (int64_t j = 0; j < kVectors; ++j) sums[j] = V::Load(o + at + j * V::kLanes);
  for (int64_t i = 0; i < m.count; ++i) {
    const float* const from = m.o[i] + at;
    const typename V::Vec f = V::Set1(m.earlier[i]);
    const typename V::Vec g = V::Set1(m.later[i]);
#pragma GCC unroll 8
    for (int64_t j = 0; j < kVectors; ++j) {
      __builtin_prefetch(from + next + j * V::kLanes);
      sums[j] = V::Fma(g, V::Load(from + j * V::kLanes), V::Mul(f, sums[j]));
    }
  }
#pragma GCC unroll 8
  for (int64_t j = 0; j < kVectors; ++j) V::Store(o + at + j * V::kLanes, sums[j]);
}

// Adds `count` results to the earlier ones, each `stride` floats behind the one before it.
template <class V>
void MergePartials(const Partial& to, const Partial& from, int64_t stride, int64_t count,
                   int64_t rows, int64_t c) {
  constexpr int64_t kVectors = 8;
  MergeFactors m;
  for (int64_t first = 0; first < count; first += MergeFactors::kMost) {
    const int64_t some = Min(count - first, MergeFactors::kMost);
    const Partial begin = {from.o + first * stride, from.max + first * stride,
                           from.sum + first * stride};
    for (int64_t row = 0; row < rows; ++row) {
      FactorsOf<V>(begin, stride, some, row, c, to.max[row], to.sum[row], m);
      float* const o = to.o + row * c;
      int64_t at = 0;
      for (; at + kVectors * V::kLanes <= c; at += kVectors * V::kLanes)
        MergeColumns<V, kVectors>(m, at, c, o);
      for (; at < c; at += V::kLanes) {
        typename V::Vec sums = LoadNext<V>(o + at, c - at);
        for (int64_t i = 0; i < m.count; ++i)
          sums = V::Fma(V::Set1(m.later[i]), LoadNext<V>(m.o[i] + at, c - at),
                        V::Mul(V::Set1(m.earlier[i]), sums));
        StoreNext<V>(o + at, sums, c - at);
      }
    }
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
