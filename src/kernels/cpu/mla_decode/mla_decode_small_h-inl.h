// mla_decode, bf16 × bf16 → f32 for small H (1 to 3 heads) over quantised caches: score tile
// 3 rows × 4 keys, value tile 3 rows × 128 columns, vdpbf16ps; AVX512_BF16.
//
// With one or two heads, converting a cached row costs more than multiplying it, so each block is
// converted once and stays in the L2.
// Rounding   Queries, cached rows and probabilities to bf16; sums are f32.
// Packing    64 cached rows are rounded to bf16 in scratch (73 KiB at C+R = 576) and read twice,
//            for scores and for values. Values of two keys are interleaved in registers; outputs
//            stay in the column order that this leaves until StoreSmallH.
// Order      Keys in index order, blocks of 64 anchored at position 0, pairs of keys within the
//            block, an odd last key paired with zero. Grouping of rows, page size, batch and
//            threads change no byte.
// Limits     C+R ≤ 1152; quantised or bf16 caches; pages of a multiple of 16 tokens; scratch 750
//            KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/bf16_pair-inl.h"
#include "src/kernels/cpu/common/merge_splits-inl.h"
#include "src/kernels/cpu/common/online_softmax-inl.h"
#include "src/kernels/cpu/common/prefetch_pages-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/mla_decode/rounded_row-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kSmallHBlock = 64;      // keys whose rounded rows stay in the cache
constexpr int64_t kSmallHPrefetch = 256;  // keys prefetched together
constexpr int64_t kSmallHTileRows = 3;    // rows of a tile
constexpr int64_t kSmallHColumns = 32;    // columns per register of bf16

using SmallHRows = AttentionRows<kSmallHBlock, kMaxDecodeRows>;

// Products of bf16 pairs: two columns for scores, two keys for values.
template <class V>
struct SmallHBf16 {
  using Q = BF16;
  static constexpr int64_t kKeysPerStep = 2;
  using Vec = typename V::Vec;
  using Pairs = typename V::Pairs;

  struct Sum {
    Vec sum = V::Zero();

    Vec Total() const { return sum; }
  };
  static void PackQuery(const BF16* rounded, int64_t width, Q* to) {
    for (int64_t at = 0; at < width; at += kSmallHColumns)
      V::StorePairs(to + at, V::LoadPairs(rounded + at));
  }
  static Pairs LoadKey(const BF16* key) { return V::LoadPairs(key); }
  static void AddDot(const Q* q, Pairs key, Sum& sum) {
    sum.sum = V::DotPairs(sum.sum, V::LoadPairs(q), key);
  }
  static void PackProbabilities(const float* p, Q* to) { RoundRow<V>(p, kSmallHBlock, to); }
  struct Values {
    Pairs low, high;
  };
  static Values LoadValues(const BF16* v, int64_t stride, bool all) {
    const Pairs x = V::LoadPairs(v);
    const Pairs y = all ? V::LoadPairs(v + stride) : V::LoadPairsPartial(v, 0);
    return {V::UnpackLow(x, y), V::UnpackHigh(x, y)};
  }
  static Pairs SetProbabilities(const Q* p) { return V::SetPair(p); }
  static void AddValues(Pairs p, const Values& v, Vec& first, Vec& second) {
    first = V::DotPairs(first, p, v.low);
    second = V::DotPairs(second, p, v.high);
  }
  static Vec FirstColumns(Vec first, Vec second) { return V::PackFirst(first, second); }
  static Vec LastColumns(Vec first, Vec second) { return V::PackSecond(first, second); }
};

template <class Math>
struct SmallHScratch {
  alignas(64) typename Math::Q q[kMaxDecodeRows * kMaxDecodeWidth];
  alignas(64) typename Math::Q p[kMaxDecodeRows * kSmallHBlock];
  alignas(64) float o[kMaxDecodeRows * kMaxDecodeWidth];
  alignas(64) BF16 keys[kSmallHBlock * (kMaxDecodeWidth + kSmallHColumns)];
  PagePrefetch prefetch;
  int64_t width;   // C+R rounded up to a multiple of 32
  int64_t stride;  // of keys: an odd number of cache lines
  int64_t count;   // keys of the block
};

// Rounds the queries to bf16.
template <class V, class Math>
void PackSmallHQueries(const DecodeTask& t, SmallHScratch<Math>& s) {
  alignas(64) float q[kMaxDecodeWidth];
  alignas(64) BF16 rounded[kMaxDecodeWidth];
  for (int64_t i = 0; i < t.rows; ++i) {
    WidenRow<V>(t.q[i].q_latent, t.c, q);
    WidenRow<V>(t.q[i].q_rope, t.r, q + t.c);
    RoundRow<V>(q, t.c + t.r, rounded);
    Math::PackQuery(rounded, s.width, s.q + i * s.width);
  }
}

// Scores of kM rows from `row` with four keys.
template <class V, int64_t kM, class Math>
inline void SmallHDotTile(const SmallHScratch<Math>& s, int64_t row, int64_t key, float* scores) {
  const typename Math::Q* const q = s.q + row * s.width;
  const BF16* keys[4];
  for (int64_t j = 0; j < 4; ++j)  // a tile behind the last key repeats that key
    keys[j] = s.keys + Min(key + j, s.count - 1) * s.stride;
  typename Math::Sum sums[kM][4];
  for (int64_t at = 0; at < s.width; at += kSmallHColumns)
    for (int64_t j = 0; j < 4; ++j) {
      const auto k = Math::LoadKey(keys[j] + at);
      for (int64_t i = 0; i < kM; ++i) Math::AddDot(q + i * s.width + at, k, sums[i][j]);
    }
  for (int64_t i = 0; i < kM; ++i)
    V::StoreSum4(scores + (row + i) * kSmallHBlock + key, sums[i][0].Total(), sums[i][1].Total(),
                 sums[i][2].Total(), sums[i][3].Total());
}

// Rounds the keys of the block at `begin`, four at a time, and computes their scores.
template <class V, class Math>
void SmallHScores(const DecodeTask& t, int64_t begin, SmallHScratch<Math>& s, SmallHRows& a) {
  ForEachRun<kSmallHTileRows>(a.rows, [&](int64_t row, auto rows) {
    for (int64_t key = 0; key < s.count; key += 4) {
      if (row == 0) {
        s.prefetch.PrefetchNext();
        RoundCachedRows<V>(t.cache, CachedRowOf(t, begin + key), Min(4, s.count - key),
                           s.keys + key * s.stride, s.stride);
      }
      SmallHDotTile<V, decltype(rows)::value>(s, row, key, a.p);
    }
  });
}

// A range of keys and outputs: adds the values of keys [begin, end) to kM rows from `row` on, in kN
// chunks of columns. begin is a multiple of kKeysPerStep.
struct SmallHRange {
  int64_t row, column, begin, end;
  bool scale;  // multiply the outputs by the rows' factors first
};
template <class V, int64_t kM, int64_t kN, class Math>
inline void SmallHOuterTile(SmallHScratch<Math>& s, const SmallHRows& a, const SmallHRange& r) {
  float* const o = s.o + r.row * s.width + r.column;
  typename V::Vec acc[kM][2 * kN];
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < 2 * kN; ++j) {
      acc[i][j] = V::Load(o + i * s.width + j * V::kLanes);
      if (r.scale) acc[i][j] = V::Mul(acc[i][j], V::Set1(a.factor[r.row + i]));
    }
  const BF16* v = s.keys + r.begin * s.stride + r.column;
  const typename Math::Q* p = s.p + r.row * kSmallHBlock + r.begin;
  const auto add = [&](bool all) __attribute__((always_inline)) {
    for (int64_t j = 0; j < kN; ++j) {
      const auto values = Math::LoadValues(v + j * kSmallHColumns, s.stride, all);
      for (int64_t i = 0; i < kM; ++i)
        Math::AddValues(Math::SetProbabilities(p + i * kSmallHBlock), values, acc[i][2 * j],
                        acc[i][2 * j + 1]);
    }
  };
  int64_t n = r.begin;
  for (; n + Math::kKeysPerStep <= r.end; n += Math::kKeysPerStep) {
    add(true);
    v += Math::kKeysPerStep * s.stride;
    p += Math::kKeysPerStep;
  }
  if (n < r.end) add(false);
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < 2 * kN; ++j) V::Store(o + i * s.width + j * V::kLanes, acc[i][j]);
}

// o = factor·o + P·V. Keys that all rows of a tile see are added in one tile, the others row by
// row: the value of a key that a row does not see may be anything.
template <class V, class Math>
void AddSmallHValues(SmallHScratch<Math>& s, const SmallHRows& a) {
  for (int64_t i = 0; i < a.rows; ++i)
    Math::PackProbabilities(a.p + i * kSmallHBlock, s.p + i * kSmallHBlock);
  ForEachRun<4>(a.v_width / kSmallHColumns, [&](int64_t chunk, auto chunks) {
    constexpr int64_t kN = decltype(chunks)::value;
    ForEachRun<kSmallHTileRows>(a.rows, [&](int64_t row, auto rows) {
      constexpr int64_t kM = decltype(rows)::value;
      int64_t common = s.count;
      for (int64_t i = 0; i < kM; ++i) common = Min(common, Max(a.visible[row + i], 0));
      if (common < s.count) common -= common % Math::kKeysPerStep;
      SmallHOuterTile<V, kM, kN>(s, a, {row, chunk * kSmallHColumns, 0, common, true});
      for (int64_t i = row; i < row + kM; ++i)
        if (a.visible[i] > common)
          SmallHOuterTile<V, 1, kN>(s, a, {i, chunk * kSmallHColumns, common, a.visible[i], false});
    });
  });
}

// Writes the outputs with their columns in order.
template <class V, class Math>
void StoreSmallH(const SmallHScratch<Math>& s, const SmallHRows& a, int64_t columns,
                 const SplitResult& out) {
  for (int64_t i = 0; i < a.rows; ++i) {
    float* const o = out.o + i * columns;
    for (int64_t at = 0; at < columns; at += kSmallHColumns) {
      const typename V::Vec first = V::Load(s.o + i * s.width + at);
      const typename V::Vec second = V::Load(s.o + i * s.width + at + V::kLanes);
      StoreNext<V>(o + at, Math::FirstColumns(first, second), columns - at);
      const int64_t rest = columns - at - V::kLanes;
      if (rest > 0) StoreNext<V>(o + at + V::kLanes, Math::LastColumns(first, second), rest);
    }
  }
  StoreMaxAndSum(a, out);
}

// Requires: t.cache is quantised or plain bf16; t.page_tokens is a multiple of 16.
template <class V>
void MlaDecodeSmallH(const DecodeTask& t) {
  auto& s = ScratchAs<SmallHScratch<SmallHBf16<V>>>(t.scratch);
  s.width = RoundUp(t.c + t.r, kSmallHColumns);
  s.stride = s.width | kSmallHColumns;
  PackSmallHQueries<V>(t, s);
  SmallHRows a;
  a.rows = t.rows;
  a.v_width = RoundUp(t.c, kSmallHColumns);  // columns behind C are not stored
  a.o = s.o;
  a.o_stride = s.width;
  a.scale = t.scale;
  for (int64_t part = 0; part < t.splits; ++part) {
    const DecodeSplit split = BeginSplit(t, part);
    Start(a);
    for (int64_t begin = split.begin; begin < split.end; begin += kSmallHBlock) {
      s.count = Min(kSmallHBlock, split.end - begin);
      if ((begin - split.begin) % kSmallHPrefetch == 0)
        s.prefetch.Start(t, begin + kSmallHPrefetch, kSmallHPrefetch, 16, kSmallHPrefetch / 4);
      for (int64_t i = 0; i < t.rows; ++i) a.visible[i] = Min(s.count, t.q[i].visible - begin);
      SmallHScores<V>(t, begin, s, a);
      Softmax<V>(a);
      AddSmallHValues<V>(s, a);
    }
    StoreSmallH<V>(s, a, t.c, split.out);
  }
}

}  // namespace
}  // namespace latte::cpu
