// mha on bf16: expanded attention whose two products multiply bf16 and add in f32. Work and limits
// as in mha-inl.h; panels hold two terms of a sum side by side.
//
// Rounding  queries, keys, values and probabilities to bf16; nothing else. The sum of
//           probabilities, and with it lse, is of f32.
// Order     pairs of keys start with the block, or with the first key where a run of keys begins
//           inside a block.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/mha-inl.h"
#include "src/kernels/cpu/pairs-inl.h"

namespace latte::cpu {
namespace {

template <class V>
struct PairArithmetic {
  using Vector = V;
  using Element = BF16;
  static constexpr int64_t kTerms = 2;
  static constexpr int64_t kBlock = kMhaBlock;
  static constexpr int64_t kRows = V::kPanelRows;
  static constexpr int64_t kVectors = V::kPanelVectors;
  static constexpr int64_t kRun = kVectors * V::kLanes;

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
    PairTile<V, kM, kN>(
        {p.x, p.x_stride, p.panel, kRun * kTerms, p.terms, p.factor, p.y, p.y_stride});
  }
  static void PackRow(const float* x, int64_t count, BF16* to) { RoundRow<V>(x, count, to); }
  static const BF16* Probabilities(const float* p, int64_t rows, BF16* scratch) {
    RoundRow<V>(p, rows * kBlock, scratch);
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
      V::StorePairs(panel + i * kRun * kTerms, V::AsPairs(block[i]));
  }
  static void PackValues(const float* v, int64_t v_stride, int64_t keys, int64_t columns,
                         BF16* panel, int64_t panel_stride) {
    for (int64_t i = 0; i < columns; i += V::kLanes) {
      const typename V::Vec even = LoadNext<V>(v + i, columns - i);
      const typename V::Vec odd =
          keys == kTerms ? LoadNext<V>(v + v_stride + i, columns - i) : V::Zero();
      V::StorePairs(panel + i / kRun * panel_stride + i % kRun * kTerms,
                    V::Interleave(V::RoundPairs(even, odd)));
    }
  }
};

// Requires: the step's arithmetic is bf16.
template <class V>
void MhaBf16(const MhaTask& t) {
  MhaOf<PairArithmetic<V>>(t);
}

}  // namespace
}  // namespace latte::cpu
