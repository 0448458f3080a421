// index_topk, f32 over keys of every format: tiles of kPanelRows heads × kPanelVectors vectors of
// keys (AVX-512 6 × 64 keys, AVX2 6 × 16), FMA. One call scores a block of 64 keys for several
// tokens.
//
// Packing    Keys are converted to f32 and transposed once per call, for all tokens and heads: step
//            = dimension, column = key (32 KiB at width 128).
// Blocking   Lanes are keys, so neither the dot products nor the sum over heads need reductions
//            across lanes. Scores of a panel stay in registers over all heads.
// Order      Dot products: one chain of multiply-adds in the order of dimensions. Scores: one chain
//            in the order of heads. Lanes, tiles and tokens are independent, so AVX2 and AVX-512
//            give the same bits.
// Limits     Width ≤ 512; scratch 170 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/cached_row-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

template <class V>
struct IndexScratch {
  static constexpr int64_t kColumns = V::kPanelVectors * V::kLanes;  // keys of a panel
  static constexpr int64_t kStride = ScratchStride(kMaxIndexWidth);
  static_assert(kIndexKeys % kColumns == 0 && kMaxIndexWidth % V::kLanes == 0);
  alignas(64) float panels[kIndexKeys * kMaxIndexWidth];
  alignas(64) float rows[V::kLanes * kStride];  // keys before they are transposed
};

// Packs kLanes keys from `key` of the block on, zeros for keys behind the last, as one vector of
// the steps of a panel.
template <class V>
void PackIndexKeys(const IndexScoreTask& t, int64_t key, int64_t steps, IndexScratch<V>& s) {
  using Scratch = IndexScratch<V>;
  for (int64_t i = 0; i < V::kLanes; ++i) {
    float* const row = s.rows + i * Scratch::kStride;
    const int64_t filled = key + i < t.keys ? t.width : 0;
    if (filled > 0) WidenCachedRow<V>(t.cache, CachedRowOf(t, t.key_begin + key + i), row);
    for (int64_t c = filled; c < steps; ++c) row[c] = 0.0f;
  }
  float* panel =
      s.panels + key / Scratch::kColumns * Scratch::kColumns * steps + key % Scratch::kColumns;
  for (int64_t c = 0; c < steps; c += V::kLanes) {
    typename V::Vec block[V::kLanes];
    for (int64_t i = 0; i < V::kLanes; ++i) block[i] = V::Load(s.rows + i * Scratch::kStride + c);
    V::Transpose(block);
    for (int64_t i = 0; i < V::kLanes; ++i, panel += Scratch::kColumns) V::Store(panel, block[i]);
  }
}

// score += Σ weights[j]·max(q[j,:]·keys, 0) over kM heads, for the keys of a panel.
template <class V, int64_t kM>
inline void AddHeads(const IndexScoreTask& t, const float* q, const float* weights,
                     const float* panel, typename V::Vec (&score)[V::kPanelVectors]) {
  constexpr int64_t kN = V::kPanelVectors;
  typename V::Vec dots[kM][kN];
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) dots[i][j] = V::Zero();
  for (int64_t c = 0; c < t.width; ++c, panel += kN * V::kLanes) {
    typename V::Vec keys[kN];
    for (int64_t j = 0; j < kN; ++j) keys[j] = V::Load(panel + j * V::kLanes);
    for (int64_t i = 0; i < kM; ++i) {
      const typename V::Vec qi = V::Set1(q[i * t.q_head_stride + c]);
      for (int64_t j = 0; j < kN; ++j) dots[i][j] = V::Fma(qi, keys[j], dots[i][j]);
    }
  }
  // Max returns its second argument if the first is NaN.
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j)
      score[j] = V::Fma(V::Set1(weights[i]), V::Max(dots[i][j], V::Zero()), score[j]);
}

template <class V>
[[gnu::noinline]] void IndexScores(const IndexScoreTask& t) {
  auto& s = ScratchAs<IndexScratch<V>>(t.scratch);
  constexpr int64_t kColumns = IndexScratch<V>::kColumns;
  const int64_t steps = RoundUp(t.width, V::kLanes);
  const int64_t packed = RoundUp(t.keys, kColumns);
  for (int64_t key = 0; key < packed; key += V::kLanes) PackIndexKeys<V>(t, key, steps, s);
  for (int64_t row = 0; row < t.rows; ++row)
    for (int64_t key = 0; key < packed; key += kColumns) {
      typename V::Vec score[V::kPanelVectors];
      for (auto& x : score) x = V::Zero();
      ForEachRun<V::kPanelRows>(t.heads, [&](int64_t head, auto heads) {
        AddHeads<V, heads.value>(t, t.q + row * t.q_stride + head * t.q_head_stride,
                                 t.weights + row * t.weights_stride + head, s.panels + key * steps,
                                 score);
      });
      for (int64_t j = 0; j < V::kPanelVectors; ++j)
        V::Store(t.scores + row * kIndexKeys + key + j * V::kLanes, score[j]);
    }
}

}  // namespace
}  // namespace latte::cpu
