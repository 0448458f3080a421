// Merges the attention results of consecutive splits of keys, from left to right. With
// m' = max(m_a, m_b):
//
//   o = e^{m_a−m'}·o_a + e^{m_b−m'}·o_b      sum = e^{m_a−m'}·sum_a + e^{m_b−m'}·sum_b
//
// Order      Splits lie at fixed positions, each starts from zero, and they are merged in key
//            order, so the result does not depend on the thread that computed a split.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/online_softmax-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// One split of a task: keys [begin, end), computed from zero.
struct DecodeSplit {
  int64_t begin, end;
  SplitResult out;
};

// The i-th split. Requires: all splits before it are written.
inline DecodeSplit BeginSplit(const DecodeTask& t, int64_t i) {
  const int64_t begin = t.key_begin + i * t.split_keys;
  const int64_t end = Max(begin, Min(begin + t.split_keys, t.key_end));
  return {begin, end, t.outputs.next(t.outputs.self)};
}

// Writes max and sum of the rows; the kernel has written their o already.
template <class Rows>
void StoreMaxAndSum(const Rows& a, const SplitResult& out) {
  for (int64_t i = 0; i < a.rows; ++i) {
    out.max[i] = a.max[i];
    out.sum[i] = a.sum[i];
  }
}

// Factors of one row: before the result of split i is added, the sum so far is multiplied by
// earlier[i] and the result by later[i].
struct MergeFactors {
  static constexpr int64_t kMaxSplits = 64;
  // Zeros behind `count`: e^x is computed in whole vectors.
  alignas(64) float earlier[kMaxSplits] = {};
  alignas(64) float later[kMaxSplits] = {};
  const float* o[kMaxSplits];
  int64_t count = 0;
};

// Computes the factors of row `row` of `count` results. `from` is the first result, and each next
// one lies `stride` floats further. Updates max and sum.
template <class V>
void FactorsOf(const SplitResult& from, int64_t stride, int64_t count, int64_t row, int64_t c,
               float& max, float& sum, MergeFactors& m) {
  m.count = 0;
  float sums[MergeFactors::kMaxSplits];
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = i * stride + row;
    // A row that saw no key is skipped, so that it cannot change the sign of a zero. The test uses
    // sum, not max: if a score is NaN, max may be −inf.
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

// Adds all results to kVectors vectors of o, and prefetches the same columns of the next row.
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

// Adds `count` results, in order, to `to`. Each lies `stride` floats behind the one before it.
template <class V>
void MergeSplits(const SplitResult& to, const SplitResult& from, int64_t stride, int64_t count,
                 int64_t rows, int64_t c) {
  constexpr int64_t kVectors = 8;
  MergeFactors m;
  for (int64_t first = 0; first < count; first += MergeFactors::kMaxSplits) {
    const int64_t now = Min(count - first, MergeFactors::kMaxSplits);
    const SplitResult begin = {from.o + first * stride, from.max + first * stride,
                               from.sum + first * stride};
    for (int64_t row = 0; row < rows; ++row) {
      FactorsOf<V>(begin, stride, now, row, c, to.max[row], to.sum[row], m);
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
void NormalizeSplit(const SplitResult& p, int64_t rows, int64_t c, float* lse) {
  for (int64_t i = 0; i < rows; ++i) {
    if (p.sum[i] != 0.0f) ScaleRow<V>(p.o + i * c, c, 1.0f / p.sum[i]);
    if (lse != nullptr) lse[i] = LseOf(p.max[i], p.sum[i]);
  }
}

}  // namespace
}  // namespace latte::cpu
