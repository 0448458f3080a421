// mla_decode on bf16: absorbed attention whose two products multiply bf16 and add in f32.
//
// Rounding  queries to bf16, once; probabilities to bf16, for the product with values; quantised
//           cache rows to bf16, once per block. The sum of probabilities, and with it lse, is f32.
// Work      tasks as in mla_decode-inl.h. Scores in dot form, kTileRows rows × 4 keys, bf16 caches
//           straight from the pages: both operands are contiguous along C+R, so nothing is widened
//           or transposed. Values of 128 keys are zipped in pairs once for all rows of the task,
//           since a dot product over keys needs two keys' numbers of a column side by side.
//
//             zip, one panel per vector of 16 columns            output tile
//             key   0,1 │ c0c0 c1c1 … c15c15 │               4 panels ─────────▶
//             key   2,3 │ c0c0 c1c1 … c15c15 │    kTileRows │ f32 × 64 columns
//               …       │        …           │        heads ▼ += p(0,1)·panel row, p(2,3)·…
//             key 126,7 │ c0c0 c1c1 … c15c15 │
//
// Figures   docs/kernels/mla_decode.md.
// Order     keys in index order, blocks of 128 and pairs anchored at position 0, an odd last key
//           paired with zero. Neither grouping of heads nor page size, batch or threads change a
//           byte.
// Limits    C+R ≤ 1152; stack 440 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/ahead-inl.h"
#include "src/kernels/cpu/attention-inl.h"
#include "src/kernels/cpu/cached_row-inl.h"
#include "src/kernels/cpu/element-inl.h"
#include "src/kernels/cpu/pairs-inl.h"
#include "src/kernels/cpu/partial-inl.h"
#include "src/kernels/cpu/rounded_row-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/tiles-inl.h"

namespace latte::cpu {
namespace {

// Keys per block: twice as many as for f32, so that outputs are loaded and stored half as often.
constexpr int64_t kPairBlock = 128;
constexpr int64_t kKeyPairs = kPairBlock / 2;
// Elements of a row of a panel, and of a panel with one cache line between it and the next, so that
// equal rows of panels spread over the sets of the L1.
constexpr int64_t kPanelRow = 32;
constexpr int64_t kPanel = (kKeyPairs + 1) * kPanelRow;

using PairRows = AttentionRows<kPairBlock, kMaxDecodeRows>;

struct PairScratch {
  alignas(64) BF16 q[kMaxDecodeRows * (kMaxDecodeWidth + kPanelRow)];
  alignas(64) BF16 zipped[kMaxDecodeWidth / 16 * kPanel];
  alignas(64) BF16 p[kMaxDecodeRows * kPairBlock];
  const BF16* keys[kPairBlock];  // rows of the current block
  NextBlock ahead;
  alignas(64) BF16 rounded[kPairBlock * (kMaxDecodeWidth + kPanelRow)];  // if they are not bf16
  int64_t q_stride, width, count;
};

// Scores of kM heads from `row` with four keys.
template <class V, int64_t kM>
inline void PairDotTile(const PairScratch& s, int64_t row, int64_t key, float* scores) {
  const BF16* const q = s.q + row * s.q_stride;
  const BF16* keys[4];
  for (int64_t j = 0; j < 4; ++j)  // a tile over the edge repeats the last key
    keys[j] = s.keys[Min(key + j, s.count - 1)];
  typename V::Vec acc[kM][4];
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < 4; ++j) acc[i][j] = V::Zero();

  int64_t at = 0;
  for (; at + V::kPairElements <= s.width; at += V::kPairElements) {
    typename V::Pairs k[4];
    for (int64_t j = 0; j < 4; ++j) k[j] = V::LoadPairs(keys[j] + at);
    for (int64_t i = 0; i < kM; ++i) {
      const typename V::Pairs qi = V::LoadPairs(q + i * s.q_stride + at);
      for (int64_t j = 0; j < 4; ++j) acc[i][j] = V::DotPairs(acc[i][j], qi, k[j]);
    }
  }
  if (at < s.width) {
    typename V::Pairs k[4];
    for (int64_t j = 0; j < 4; ++j) k[j] = V::LoadPairsPartial(keys[j] + at, s.width - at);
    for (int64_t i = 0; i < kM; ++i) {
      const typename V::Pairs qi = V::LoadPairs(q + i * s.q_stride + at);
      for (int64_t j = 0; j < 4; ++j) acc[i][j] = V::DotPairs(acc[i][j], qi, k[j]);
    }
  }
  for (int64_t i = 0; i < kM; ++i)
    V::StoreSum4(scores + (row + i) * kPairBlock + key, acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
}

template <class V>
void PairScores(PairScratch& s, PairRows& a) {
  ForEachRun<V::kTileRows>(a.rows, [&](int64_t row, auto rows) {
    for (int64_t key = 0; key < s.count; key += 4) {
      s.ahead.template Ask<V>();
      PairDotTile<V, decltype(rows)::value>(s, row, key, a.p);
    }
  });
}

// Values of the block, two keys at a time.
template <class V>
void ZipValues(PairScratch& s, int64_t columns) {
  for (int64_t key = 0; key < s.count; key += 2) {
    const BF16* const even = s.keys[key];
    BF16* const to = s.zipped + key / 2 * kPanelRow;
    for (int64_t at = 0; at < columns; at += V::kPairElements) {
      const typename V::Pairs x = LoadPairsOf<V>(even, at, columns);
      // Nothing is known of what lies behind an odd last key.
      const typename V::Pairs y = key + 1 < s.count ? LoadPairsOf<V>(s.keys[key + 1], at, columns)
                                                    : V::LoadPairsPartial(even, 0);
      V::StorePairs(to + at / 16 * kPanel, V::ZipLow(x, y));
      if (at + 16 < columns) V::StorePairs(to + (at / 16 + 1) * kPanel, V::ZipHigh(x, y));
    }
  }
}

// Pairs of keys [begin, end) added to the outputs of kM rows from `row`, kN vectors of columns from
// `column`; a single vector may be partial.
struct PairRange {
  int64_t row, column, begin, end;
  bool scale;     // by the rows' factors first
  bool half_end;  // the last pair has one key only
};
template <class V, int64_t kM, int64_t kN>
inline void PairOuterTile(const PairScratch& s, const PairRows& a, const PairRange& r) {
  float* const o = a.o + r.row * a.o_stride + r.column;
  const int64_t rest = a.v_width - r.column;
  typename V::Vec acc[kM][kN];
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) {
      const float* at = o + i * a.o_stride + j * V::kLanes;
      acc[i][j] = kN == 1 ? LoadNext<V>(at, rest) : V::Load(at);
      if (r.scale) acc[i][j] = V::Mul(acc[i][j], V::Set1(a.factor[r.row + i]));
    }
  const BF16* w = s.zipped + r.column / V::kLanes * kPanel + r.begin * kPanelRow;
  const BF16* p = s.p + r.row * kPairBlock + 2 * r.begin;
  for (int64_t n = r.begin; n < r.end; ++n, w += kPanelRow, p += 2) {
    typename V::Pairs v[kN];
    for (int64_t j = 0; j < kN; ++j) v[j] = V::LoadPairs(w + j * kPanel);
    for (int64_t i = 0; i < kM; ++i) {
      const typename V::Pairs pi = V::SetPair(p + i * kPairBlock);
      for (int64_t j = 0; j < kN; ++j) acc[i][j] = V::DotPairs(acc[i][j], pi, v[j]);
    }
  }
  if (r.half_end)
    for (int64_t j = 0; j < kN; ++j) {
      const typename V::Pairs v = V::FirstOfPairs(V::LoadPairs(w + j * kPanel));
      for (int64_t i = 0; i < kM; ++i)
        acc[i][j] = V::DotPairs(acc[i][j], V::SetPair(p + i * kPairBlock), v);
    }
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) {
      float* to = o + i * a.o_stride + j * V::kLanes;
      if constexpr (kN == 1)
        StoreNext<V>(to, acc[i][j], rest);
      else
        V::Store(to, acc[i][j]);
    }
}

// o = factor·o + P·V with P rounded. Probabilities of keys that a row does not see are zero
// (Softmax), but their values may be anything: pairs that all rows of a tile see are multiplied
// together, the rest row by row.
template <class V>
void AddZippedValues(PairScratch& s, const PairRows& a) {
  for (int64_t i = 0; i < a.rows; ++i)
    RoundRow<V>(a.p + i * kPairBlock, kPairBlock, s.p + i * kPairBlock);
  ForEachColumnRun<V, 4>(a.v_width, [&](int64_t column, auto vectors, int64_t) {
    constexpr int64_t kN = decltype(vectors)::value;
    ForEachRun<V::kTileRows>(a.rows, [&](int64_t row, auto rows) {
      constexpr int64_t kM = decltype(rows)::value;
      int64_t common = s.count;
      for (int64_t i = 0; i < kM; ++i) common = Min(common, Max(a.visible[row + i], 0));
      const bool all = common == s.count;  // an odd last key is zipped with zeros
      const int64_t pairs = (common + (all ? 1 : 0)) / 2;
      PairOuterTile<V, kM, kN>(s, a, {row, column, 0, pairs, true, false});
      for (int64_t i = row; i < row + kM && !all; ++i)
        if (a.visible[i] > 2 * pairs)
          PairOuterTile<V, 1, kN>(
              s, a, {i, column, pairs, a.visible[i] / 2, false, a.visible[i] % 2 != 0});
    });
  });
}

// Finds the block's rows. Those that are not bf16 are rounded to it, once for all queries of the
// task.
template <class V>
void TakeBlock(const DecodeTask& t, int64_t begin, PairScratch& s) {
  s.count = Min(kPairBlock, t.key_end - begin);
  for (int64_t j = 0; j < s.count; ++j) {
    const char* const row = CachedRowOf(t, begin + j);
    s.keys[j] = reinterpret_cast<const BF16*>(row);
    if (t.cache.kind == RowKind::kPlain) continue;
    BF16* const to = s.rounded + j * s.q_stride;
    RoundCachedRow<V>(t.cache, row, to);
    s.keys[j] = to;
  }
}

// Shares the lines of the next block, at `begin`, out among the score tiles of this one.
template <class V>
void StartAhead(const DecodeTask& t, int64_t begin, PairScratch& s) {
  constexpr int64_t kRun = 16;
  const int64_t tiles = (t.rows + V::kTileRows - 1) / V::kTileRows;
  s.ahead.Start(t, begin, kPairBlock, kRun, tiles * (kPairBlock / 4));
}

// Requires: t.cache is not plain f32 or f16.
template <class V>
void MlaDecodeBf16(const DecodeTask& t) {
  PairScratch s;
  s.width = t.c + t.r;
  s.q_stride = (s.width + kPanelRow - 1) / kPanelRow * kPanelRow;
  alignas(64) float q[kMaxDecodeWidth];
  for (int64_t i = 0; i < t.rows; ++i) {
    WidenRow<V>(t.q[i].q_latent, t.c, q);
    WidenRow<V>(t.q[i].q_rope, t.r, q + t.c);
    RoundRow<V>(q, s.width, s.q + i * s.q_stride);
  }

  PairRows a;
  a.rows = t.rows;
  a.v_width = t.c;
  a.o = t.out.o;
  a.o_stride = t.c;
  a.scale = t.scale;
  Start(a);
  for (int64_t begin = t.key_begin; begin < t.key_end; begin += kPairBlock) {
    TakeBlock<V>(t, begin, s);
    StartAhead<V>(t, begin + kPairBlock, s);
    for (int64_t i = 0; i < t.rows; ++i) a.visible[i] = Min(s.count, t.q[i].visible - begin);
    PairScores<V>(s, a);
    Softmax<V>(a);
    ZipValues<V>(s, t.c);
    AddZippedValues<V>(s, a);
  }
  StoreMaxAndSum(a, t.out);
}

}  // namespace
}  // namespace latte::cpu
