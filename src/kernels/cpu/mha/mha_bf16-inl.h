// mha (expanded attention), bf16 × bf16 → f32: tiles of 6 queries × 64 columns, vdpbf16ps; up to
// 512 queries of one head per task; AVX512_BF16. Packing, blocking and limits as in mha_f32-inl.h,
// but a step of a panel holds a pair of keys or columns instead of one.
//
// Rounding   Queries, keys, values and probabilities to bf16; sums and lse are f32.
// Order      Keys are paired from the start of each block; in the first block, from the first key.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/bf16_pair-inl.h"
#include "src/kernels/cpu/mha/mha_f32-inl.h"

namespace latte::cpu {
namespace {

// The new maximum of a row, from scores that are not scaled. Keys that the row does not see are
// masked.
template <class V, int64_t kBlock, int64_t kRows>
float MaskAndMax(AttentionRows<kBlock, kRows>& a, int64_t row) {
  if (a.visible[row] <= 0) return a.max[row];
  float* const p = a.p + row * kBlock;
  for (int64_t j = a.visible[row]; j < kBlock; ++j) p[j] = -__builtin_inff();
  typename V::Vec top = V::Load(p);
  for (int64_t j = V::kLanes; j < kBlock; j += V::kLanes) top = V::Max(top, V::Load(p + j));
  const float max = V::MaxOf(top) * a.scale;
  return max > a.max[row] ? max : a.max[row];
}

// Online softmax from scores that are not scaled to probabilities rounded to bf16:
//
//   e^{c·s − m} = 2^{(c·log₂e)·s − m·log₂e}        c: scale
//
// One multiply-add replaces a pass over the scores, and a power of two is shorter than an
// exponential.
template <class V, int64_t kBlock, int64_t kRows>
void Bf16Softmax(AttentionRows<kBlock, kRows>& a, BF16* probabilities) {
  UpdateMaxima<V>(a, [&a](int64_t row) { return MaskAndMax<V>(a, row); });
  const typename V::Vec scale = V::Set1(a.scale * kLog2E);
  for (int64_t i = 0; i < a.rows; ++i) {
    if (a.visible[i] <= 0) continue;
    const float* const p = a.p + i * kBlock;
    const typename V::Vec max = V::Set1(a.max[i] * kLog2E);
    typename V::Vec sum = V::Zero();
    for (int64_t j = 0; j < kBlock; j += 2 * V::kLanes) {
      const typename V::Vec first = V::Exp2(V::FmaSub(V::Load(p + j), scale, max));
      const typename V::Vec second = V::Exp2(V::FmaSub(V::Load(p + j + V::kLanes), scale, max));
      V::StorePairs(probabilities + i * kBlock + j, V::RoundPairs(first, second));
      sum = V::Add(V::Add(sum, first), second);
    }
    a.sum[i] = a.sum[i] * a.factor[i] + V::Sum(sum);
  }
}

template <class V>
struct Bf16Arithmetic {
  using Vector = V;
  using Element = BF16;
  static constexpr int64_t kTerms = 2;
  static constexpr int64_t kBlock = kMhaBlock;
  static constexpr int64_t kQueries = kMaxBf16Queries;
  static constexpr int64_t kRows = V::kPanelRows;
  static constexpr int64_t kVectors = V::kPanelVectors;
  static constexpr int64_t kPanelColumns = kVectors * V::kLanes;

  struct Product {
    const BF16* x;
    int64_t x_stride;
    const BF16* panel;
    int64_t terms;
    const float* factor;
    float* y;
    int64_t y_stride;
  };
  template <int64_t kM, int64_t kN>
  static void Multiply(const Product& p) {
    Bf16OuterTile<V, kM, kN>(
        {p.x, p.x_stride, p.panel, kPanelColumns * kTerms, p.terms, p.factor, p.y, p.y_stride});
  }
  static void PackRow(const float* x, int64_t count, BF16* to) { RoundRow<V>(x, count, to); }
  template <class Rows>
  static const BF16* Probabilities(Rows& a, BF16* scratch) {
    Bf16Softmax<V>(a, scratch);
    return scratch;
  }
  static constexpr int64_t kTransposed = V::kPairElements;
  static void PackTransposed(const float* rows, int64_t stride, BF16* panel) {
    typename V::Vec block[V::kLanes];
    for (int64_t i = 0; i < V::kLanes; ++i) {
      const float* row = rows + i * stride;
      block[i] = V::AsFloats(V::RoundPairs(V::Load(row), V::Load(row + V::kLanes)));
    }
    V::Transpose(block);
    for (int64_t i = 0; i < V::kLanes; ++i)
      V::StorePairs(panel + i * kPanelColumns * kTerms, V::AsPairs(block[i]));
  }
  static void PackValues(const float* v, int64_t v_stride, int64_t keys, int64_t columns,
                         BF16* panel, int64_t panel_stride) {
    for (int64_t i = 0; i < columns; i += V::kLanes) {
      const typename V::Vec even = LoadNext<V>(v + i, columns - i);
      const typename V::Vec odd =
          keys == kTerms ? LoadNext<V>(v + v_stride + i, columns - i) : V::Zero();
      V::StorePairs(panel + i / kPanelColumns * panel_stride + i % kPanelColumns * kTerms,
                    V::Interleave(V::RoundPairs(even, odd)));
    }
  }
};

// Requires: the step's arithmetic is bf16.
template <class V>
void MhaBf16(const MhaTask& t) {
  MhaWith<Bf16Arithmetic<V>>(t);
}

}  // namespace
}  // namespace latte::cpu
