// clang-format off
// Online softmax over blocks of keys, shared by absorbed and expanded attention. For each block:
//
//   m' = max(m, max_j s_j)     p_j = e^{s_j − m'}     f = e^{m − m'}
//   l' = f·l + Σ_j p_j         o' = f·o + Σ_j p_j·v_j
//
// Blocking   A block is kBlock keys (64 unless the kernel sets it), anchored at absolute positions.
//            A row is one (token, head) pair. Up to kRows rows share the keys of a block.
// Order      A row takes blocks in key order and sees a prefix of each block. Every score, sum and
//            output has one accumulator, so the bytes of a row do not depend on other rows.
// Masking    The value of a key that a row does not see is never multiplied, not even by zero:
//            cached memory behind the last token may hold anything, NaN included.
// Source: Milakov, Gimelshein (arXiv 1805.02867); Rabe, Staats (arXiv 2112.05682).
// clang-format on
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kKeyBlock = 64;

// Up to kRows rows, (token, head) pairs, that share their keys, kBlock keys at a time.
template <int64_t kBlock = kKeyBlock, int64_t kRows = kMaxRows>
struct AttentionRows {
  int64_t rows, width, v_width;
  const float* q;  // [rows, width]
  int64_t q_stride;
  float* o;  // [rows, v_width]; not normalised until Finish
  int64_t o_stride;
  float scale;
  int64_t visible[kRows];  // keys of the current block that the row sees
  float max[kRows];
  float sum[kRows];
  float factor[kRows];                  // of the current block
  alignas(64) float p[kRows * kBlock];  // scores, then unnormalised probabilities
};

// The keys of one block, in f32.
struct KeyBlock {
  const float* k;  // [count, width]
  int64_t k_stride;
  const float* v;  // [count, v_width]
  int64_t v_stride;
  int64_t count;
};

template <int64_t kBlock, int64_t kRows>
void Start(AttentionRows<kBlock, kRows>& a) {
  for (int64_t i = 0; i < a.rows; ++i) {
    a.max[i] = -__builtin_inff();
    a.sum[i] = 0.0f;
    for (int64_t j = 0; j < a.v_width; ++j) a.o[i * a.o_stride + j] = 0.0f;
  }
}

// Scores Q·Kᵀ of the block, not scaled. Calls take(j) before keys [j, j + 4) are first read.
template <class V, int64_t kRows, class F>
void Scores(AttentionRows<kKeyBlock, kRows>& a, const KeyBlock& block, const F& take) {
  ForEachRun<V::kTileRows>(a.rows, [&](int64_t row, auto rows) {
    constexpr int64_t kM = decltype(rows)::value;
    for (int64_t j = 0; j < block.count; j += 4) {
      if (row == 0) take(j);
      const float* keys[4];
      for (int64_t i = 0; i < 4; ++i)  // a tile behind the last key repeats that key
        keys[i] = block.k + Min(j + i, block.count - 1) * block.k_stride;
      float sums[kM][4];
      DotTile<V, kM, 4>(a.q + row * a.q_stride, a.q_stride, keys, a.width, sums);
      for (int64_t i = 0; i < kM; ++i)
        __builtin_memcpy(a.p + (row + i) * kKeyBlock + j, sums[i], sizeof(sums[i]));
    }
  });
}

// Scales the scores of a row, masks keys that it does not see with −inf, and returns the new
// maximum.
template <class V, int64_t kBlock, int64_t kRows>
float ScaleAndMax(AttentionRows<kBlock, kRows>& a, int64_t row) {
  if (a.visible[row] <= 0) return a.max[row];
  float* p = a.p + row * kBlock;
  for (int64_t j = a.visible[row]; j < kBlock; ++j) p[j] = -__builtin_inff();
  const typename V::Vec scale = V::Set1(a.scale);
  typename V::Vec top = V::Set1(a.max[row]);
  for (int64_t j = 0; j < kBlock; j += V::kLanes) {
    const typename V::Vec s = V::Mul(V::Load(p + j), scale);
    V::Store(p + j, s);
    top = V::Max(top, s);
  }
  return V::MaxOf(top);
}

// Stores the new maxima, max_of(row), and the factors e^{m − m'} of the earlier sums.
template <class V, int64_t kBlock, int64_t kRows, class MaxOf>
void UpdateMaxima(AttentionRows<kBlock, kRows>& a, const MaxOf& max_of) {
  float* const shift = a.factor;  // old maximum − new maximum
  for (int64_t i = 0; i < a.rows; ++i) {
    const float max = max_of(i);
    shift[i] = a.visible[i] > 0 ? a.max[i] - max : 0.0f;
    a.max[i] = max;
  }
  for (int64_t i = 0; i < a.rows; i += V::kLanes)
    StoreNext<V>(a.factor + i, V::Exp(LoadNext<V>(shift + i, a.rows - i)), a.rows - i);
}

// Scores to unnormalised probabilities. Updates max, sum and factor.
template <class V, int64_t kBlock, int64_t kRows>
void Softmax(AttentionRows<kBlock, kRows>& a) {
  UpdateMaxima<V>(a, [&a](int64_t row) { return ScaleAndMax<V>(a, row); });
  for (int64_t i = 0; i < a.rows; ++i) {
    if (a.visible[i] <= 0) continue;
    float* p = a.p + i * kBlock;
    const typename V::Vec max = V::Set1(a.max[i]);
    typename V::Vec sum = V::Zero();
    for (int64_t j = 0; j < kBlock; j += V::kLanes) {
      const typename V::Vec e = V::Exp(V::Sub(V::Load(p + j), max));
      V::Store(p + j, e);
      sum = V::Add(sum, e);
    }
    a.sum[i] = a.sum[i] * a.factor[i] + V::Sum(sum);
  }
}

// o = factor·o + P·V.
template <class V, int64_t kRows>
void AddValues(AttentionRows<kKeyBlock, kRows>& a, const KeyBlock& block) {
  static constexpr float kOne = 1.0f;
  const Outer<float> all{a.p, kKeyBlock, block.v, block.v_stride, 0, a.factor, a.o, a.o_stride};
  ForEachColumnRun<V, 4>(a.v_width, [&](int64_t column, auto vectors, int64_t columns) {
    constexpr int64_t kN = decltype(vectors)::value;
    ForEachRun<V::kTileRows>(a.rows, [&](int64_t row, auto rows) {
      constexpr int64_t kM = decltype(rows)::value;
      int64_t common = block.count;
      for (int64_t i = 0; i < kM; ++i) common = Min(common, Max(a.visible[row + i], 0));
      Outer<float> part = all.At(row, column);
      part.n = common;
      OuterTile<V, kM, kN>(part, columns);
      // Keys that not all rows of the tile see.
      for (int64_t i = 0; i < kM; ++i) {
        if (a.visible[row + i] <= common) continue;
        Outer<float> rest = all.At(row + i, column);
        rest.x += common;
        rest.w += common * rest.w_stride;
        rest.n = a.visible[row + i] - common;
        rest.factor = &kOne;
        OuterTile<V, 1, kN>(rest, columns);
      }
    });
  });
}

template <class V, int64_t kRows, class F>
void Attend(AttentionRows<kKeyBlock, kRows>& a, const KeyBlock& block, const F& take) {
  Scores<V>(a, block, take);
  Softmax<V>(a);
  AddValues<V>(a, block);
}

// lse of a row; −inf if it saw no key.
inline float LseOf(float max, float sum) {
  if (sum == 0.0f) return -__builtin_inff();
  return static_cast<float>(static_cast<double>(max) + __builtin_log(static_cast<double>(sum)));
}

// row *= factor
template <class V>
void ScaleRow(float* row, int64_t count, float factor) {
  const typename V::Vec f = V::Set1(factor);
  for (int64_t j = 0; j < count; j += V::kLanes)
    StoreNext<V>(row + j, V::Mul(LoadNext<V>(row + j, count - j), f), count - j);
}

// Divides o by the sum and returns lse. A row that saw no key stays zero.
template <class V, int64_t kBlock, int64_t kRows>
float Finish(AttentionRows<kBlock, kRows>& a, int64_t row) {
  if (a.sum[row] != 0.0f) ScaleRow<V>(a.o + row * a.o_stride, a.v_width, 1.0f / a.sum[row]);
  return LseOf(a.max[row], a.sum[row]);
}

}  // namespace
}  // namespace latte::cpu
