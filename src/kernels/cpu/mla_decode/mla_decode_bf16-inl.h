// clang-format off
// mla_decode, bf16 × bf16 → f32: score tile 16 rows × 6 keys, value tile 6 rows × 64 columns,
// vdpbf16ps; up to 64 (token, head) rows per task; AVX512_BF16.
//
// Rounding   Queries, probabilities and quantised cached rows to bf16; bf16 caches are read in
//            place.
// Packing    Queries, once per task: 4 rows per register, one 128-bit lane of 8 columns each.
//            Values, once per block: two keys interleaved, one panel per vector of 16 columns.
//
//              query register j, step of 8 columns              value panel of 16 columns
//              │ row 4j  │ row 4j+1 │ row 4j+2 │ row 4j+3 │     keys 0, 1 │ c0c0 c1c1 … c15c15 │
//              │ c0 … c7 │ c0 … c7  │ c0 … c7  │ c0 … c7  │     keys 2, 3 │ c0c0 c1c1 … c15c15 │
//              key: the same 8 columns in all four lanes          …         │        …           │
//
// Blocking   Blocks of 128 keys. Scores: a key's 8 columns multiply 4 registers of queries (16
//            rows); the reduction at the end is over 4 lanes only. Values: one broadcast pair of
//            probabilities per row times 4 panels, two keys per step.
// Order      A score has four partial sums, one per pair of a lane, added as SumInQuarters does.
//            Keys in index order, blocks and pairs anchored at position 0; an odd last key is
//            paired with zero. Grouping of rows, page size, batch and threads change no byte.
// Limits     C+R ≤ 1152; not for plain f32 and f16 caches; scratch 760 KiB.
// clang-format on
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/bf16_pair-inl.h"
#include "src/kernels/cpu/common/cached_row-inl.h"
#include "src/kernels/cpu/common/merge_splits-inl.h"
#include "src/kernels/cpu/common/online_softmax-inl.h"
#include "src/kernels/cpu/common/prefetch_pages-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/mla_decode/rounded_row-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Keys per block: twice the f32 kernel's, so that outputs are loaded and stored half as often.
constexpr int64_t kBf16Block = 128;
constexpr int64_t kBf16KeyPairs = kBf16Block / 2;
// Elements of a panel step, and of a panel. One extra cache line per panel spreads equal steps of
// neighbouring panels over the sets of the L1.
constexpr int64_t kPanelStep = 32;
constexpr int64_t kPanel = (kBf16KeyPairs + 1) * kPanelStep;

constexpr int64_t kBf16Group = 16;   // rows whose scores share a vector
constexpr int64_t kLaneColumns = 8;  // columns of a query in a 128-bit lane
constexpr int64_t kLaneRows = 4;     // queries in a register
// Columns of a score tile between two calls of PrefetchNext. Large tasks are bound by arithmetic
// and prefetch seldom; small tasks have to keep up with memory.
constexpr int64_t kLargeTaskRows = 64;
constexpr int64_t PrefetchColumns(int64_t rows) { return rows >= kLargeTaskRows ? 192 : 64; }

// State of the rows of a task. Rows that fill up the last group see no key.
struct Bf16Rows {
  int64_t rows, v_width;
  float* o;  // [rows, v_width]; not normalised
  int64_t o_stride;
  float scale;
  alignas(64) int32_t visible[kMaxDecodeRows];  // keys of the current block that the row sees
  alignas(64) float max[kMaxDecodeRows];
  alignas(64) float sum[kMaxDecodeRows];
  alignas(64) float factor[kMaxDecodeRows];  // of the current block
};

struct Bf16Scratch {
  alignas(64) BF16 q[kMaxDecodeRows * kMaxDecodeWidth];  // [group][step][register][32]
  alignas(64) float scores[kBf16Block * kBf16Group];     // of one group
  alignas(64) BF16 p[kBf16Block * kMaxDecodeRows];       // [pair of keys][p_rows][2]
  alignas(64) BF16 interleaved[kMaxDecodeWidth / 16 * kPanel];
  const BF16* keys[kBf16Block];  // rows of the current block
  PagePrefetch prefetch;
  // Rows that are not plain bf16, rounded.
  alignas(64) BF16 rounded[kBf16Block * (kMaxDecodeWidth + kPanelStep)];
  int64_t width, count;
  int64_t steps;   // steps of kLaneColumns columns
  int64_t p_rows;  // rows rounded up to a multiple of kBf16Group
  int64_t prefetch_columns;
};

// Writes the query of `row` into the registers of its group. The group has `registers` registers.
inline void PackQuery(const BF16* x, int64_t row, int64_t registers, int64_t steps, BF16* group) {
  BF16* to = group + row / kLaneRows * kPanelStep + row % kLaneRows * kLaneColumns;
  for (int64_t step = 0; step < steps; ++step, x += kLaneColumns, to += registers * kPanelStep)
    __builtin_memcpy(to, x, kLaneColumns * sizeof(BF16));
}

template <class V>
void PackQueries(const DecodeTask& t, Bf16Scratch& s) {
  alignas(64) float wide[kMaxDecodeWidth];
  alignas(64) BF16 rounded[kMaxDecodeWidth + kPanelStep];
  for (int64_t group = 0; group < t.rows; group += kBf16Group) {
    const int64_t rows = Min(kBf16Group, t.rows - group);
    const int64_t registers = (rows + kLaneRows - 1) / kLaneRows;
    BF16* const to = s.q + group * s.steps * kLaneColumns;
    for (int64_t i = 0; i < registers * kLaneRows; ++i) {
      // Rows that fill up the group repeat the last one.
      const DecodeQuery& q = t.q[group + Min(i, rows - 1)];
      WidenRow<V>(q.q_latent, t.c, wide);
      WidenRow<V>(q.q_rope, t.r, wide + t.c);
      RoundRow<V>(wide, s.width, rounded);
      PackQuery(rounded, i, registers, s.steps, to);
    }
  }
}

// sums[i][j] += key i · register j, one step.
template <class V, int64_t kM, int64_t kN>
[[gnu::always_inline]] inline void AddScoreStep(const BF16* const (&keys)[kM], int64_t at,
                                                const BF16* q, typename V::Vec (&sums)[kM][kN]) {
  typename V::Pairs qj[kN];
  for (int64_t j = 0; j < kN; ++j) qj[j] = V::LoadPairs(q + j * kPanelStep);
  for (int64_t i = 0; i < kM; ++i) {
    const typename V::Pairs k = V::LoadFourTimes(keys[i] + at);
    for (int64_t j = 0; j < kN; ++j) sums[i][j] = V::DotPairs(sums[i][j], k, qj[j]);
  }
}

template <class V, int64_t kM, int64_t kN>
[[gnu::always_inline]] inline void StoreScores(const typename V::Vec (&sums)[kM][kN], float* to) {
  constexpr auto kAt = [](int64_t j) { return Min(j, kN - 1); };  // absent sums are not used
  for (int64_t i = 0; i < kM; ++i)
    V::Store(to + i * kBf16Group,
             V::SumInQuarters(sums[i][0], sums[i][kAt(1)], sums[i][kAt(2)], sums[i][kAt(3)]));
}

// Scores of kM keys × kN registers of queries.
template <class V, int64_t kM, int64_t kN>
[[gnu::noinline]] void Bf16ScoreTile(Bf16Scratch& s, const BF16* q, int64_t key) {
  const BF16* keys[kM];
  for (int64_t i = 0; i < kM; ++i) keys[i] = s.keys[key + i];
  typename V::Vec sums[kM][kN];
  for (auto& row : sums)
    for (auto& sum : row) sum = V::Zero();
  int64_t at = 0;
  do {  // a loop that may run zero times would keep sums in memory
    s.prefetch.PrefetchNext();
    const int64_t end = Min(at + s.prefetch_columns, s.width);
    do {
      AddScoreStep<V, kM, kN>(keys, at, q, sums);
      at += kLaneColumns;
      q += kN * kPanelStep;
    } while (at < end);
  } while (at < s.width);
  StoreScores<V, kM, kN>(sums, s.scores + key * kBf16Group);
}

// Keys of a score tile: 24 accumulators, or as many as there are address registers.
constexpr int64_t ScoreTileKeys(int64_t registers) { return registers == 4 ? 6 : 8; }

// Interleaves the values of keys [begin, end) of the block, two keys per step. begin is even.
template <class V>
void InterleaveValues(Bf16Scratch& s, int64_t columns, int64_t begin, int64_t end) {
  for (int64_t key = begin; key < end; key += 2) {
    const BF16* const even = s.keys[key];
    BF16* const to = s.interleaved + key / 2 * kPanelStep;
    for (int64_t at = 0; at < columns; at += V::kPairElements) {
      const typename V::Pairs x = LoadRowPairs<V>(even, at, columns);
      // The memory behind an odd last key may hold anything.
      const typename V::Pairs y = key + 1 < end ? LoadRowPairs<V>(s.keys[key + 1], at, columns)
                                                : V::LoadPairsPartial(even, 0);
      V::StorePairs(to + at / 16 * kPanel, V::InterleaveLow(x, y));
      if (at + 16 < columns) V::StorePairs(to + (at / 16 + 1) * kPanel, V::InterleaveHigh(x, y));
    }
  }
}

// Scores of the block's keys × one group. With the first group it also interleaves the values of
// the keys, while they are in the L1.
template <class V>
void Bf16Scores(Bf16Scratch& s, int64_t group, int64_t rows, int64_t columns) {
  const BF16* const q = s.q + group * s.steps * kLaneColumns;
  int64_t interleaved = group == 0 ? 0 : s.count;
  WithConstant<4>((rows + kLaneRows - 1) / kLaneRows, [&](auto registers) {
    constexpr int64_t kN = decltype(registers)::value;
    ForEachRun<ScoreTileKeys(kN)>(s.count, [&](int64_t key, auto keys) {
      constexpr int64_t kM = decltype(keys)::value;
      Bf16ScoreTile<V, kM, kN>(s, q, key);
      if (interleaved == s.count) return;
      const int64_t end = key + kM == s.count ? s.count : (key + kM) / 2 * 2;
      InterleaveValues<V>(s, columns, interleaved, end);
      interleaved = end;
    });
  });
}

// The new maxima of a group, from scores that are not scaled. All rows see the keys before `least`.
template <class V>
typename V::Vec MaskAndMax(const Bf16Rows& a, int64_t group, int64_t count, int64_t least,
                           const float* scores) {
  const typename V::Vec scale = V::Set1(a.scale);
  const typename V::Vec never = V::Set1(-__builtin_inff());
  typename V::Vec top = V::Load(a.max + group);
  for (int64_t key = 0; key < count; ++key) {
    typename V::Vec x = V::Mul(V::Load(scores + key * kBf16Group), scale);
    if (key >= least) x = V::WhereBelow(key, a.visible + group, x, never);
    top = V::Max(top, x);
  }
  return top;
}

// Scores of a group to unnormalised probabilities in s.p, rounded to bf16. Updates max, sum and
// factor. e^{scale·x − m} is computed as 2^{(scale·log₂e)·x − m·log₂e}: one multiply-add and a
// shorter exponential.
template <class V>
void Bf16Probabilities(Bf16Scratch& s, Bf16Rows& a, int64_t group) {
  int64_t least = s.count;
  for (int64_t i = group; i < Min(group + kBf16Group, a.rows); ++i)
    least = Min(least, a.visible[i]);
  const int32_t* const visible = a.visible + group;
  const typename V::Vec zero = V::Zero();
  const typename V::Vec max = MaskAndMax<V>(a, group, s.count, least, s.scores);
  const typename V::Vec factor =
      V::Exp(V::WhereBelow(0, visible, V::Sub(V::Load(a.max + group), max), zero));
  V::Store(a.factor + group, factor);
  V::Store(a.max + group, max);
  const typename V::Vec scale = V::Set1(a.scale * kLog2E);
  const typename V::Vec top = V::Mul(max, V::Set1(kLog2E));
  typename V::Vec sum = zero;
  const auto probability = [&](int64_t key) {
    if (key >= s.count) return zero;
    typename V::Vec e = V::Exp2(V::FmaSub(V::Load(s.scores + key * kBf16Group), scale, top));
    if (key >= least) e = V::WhereBelow(key, visible, e, zero);
    sum = V::Add(sum, e);
    return e;
  };
  for (int64_t key = 0; key < s.count; key += 2) {
    const typename V::Vec even = probability(key);
    const typename V::Pairs both = V::RoundPairs(even, probability(key + 1));
    V::StorePairs(s.p + key * s.p_rows + 2 * group, V::Interleave(both));
  }
  V::Store(a.sum + group, V::Fma(V::Load(a.sum + group), factor, sum));
}

// A range of pairs of keys, at least one, and the outputs they are added to: rows from `row`,
// columns from `column`.
struct ValueRange {
  int64_t row, column, begin, end;
  const float* factor;  // outputs are multiplied by it first
};

// Adds a range to kM rows × kN vectors of outputs. A single vector may be partial.
template <class V, int64_t kM, int64_t kN>
[[gnu::noinline]] void Bf16ValueTile(const Bf16Scratch& s, const Bf16Rows& a, const ValueRange& r) {
  float* const o = a.o + r.row * a.o_stride + r.column;
  const int64_t rest = a.v_width - r.column;
  typename V::Vec acc[kM][kN];
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) {
      const float* const at = o + i * a.o_stride + j * V::kLanes;
      acc[i][j] = V::Mul(kN == 1 ? LoadNext<V>(at, rest) : V::Load(at), V::Set1(r.factor[i]));
    }
  const int64_t p_stride = 2 * s.p_rows;
  const BF16* p = s.p + r.begin * p_stride + 2 * r.row;
  const BF16* w = s.interleaved + r.column / V::kLanes * kPanel + r.begin * kPanelStep;
  int64_t n = r.end - r.begin;
  do {
    typename V::Pairs v[kN];
    for (int64_t j = 0; j < kN; ++j) v[j] = V::LoadPairs(w + j * kPanel);
    for (int64_t i = 0; i < kM; ++i) {
      const typename V::Pairs pi = V::SetPair(p + 2 * i);
      for (int64_t j = 0; j < kN; ++j) acc[i][j] = V::DotPairs(acc[i][j], pi, v[j]);
    }
    w += kPanelStep;
    p += p_stride;
  } while (--n > 0);
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) {
      float* const to = o + i * a.o_stride + j * V::kLanes;
      if constexpr (kN == 1)
        StoreNext<V>(to, acc[i][j], rest);
      else
        V::Store(to, acc[i][j]);
    }
}

// o = factor·o, for rows that see no pair of the range.
template <class V>
void ScaleOutputs(const Bf16Rows& a, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  for (int64_t i = row; i < row + rows; ++i)
    ScaleRow<V>(a.o + i * a.o_stride + column, columns, a.factor[i]);
}

// Adds the first key of pair `pair` to `vectors` vectors of a row's outputs.
template <class V>
void AddOddKey(const Bf16Scratch& s, const Bf16Rows& a, int64_t row, int64_t column,
               int64_t vectors, int64_t pair) {
  const typename V::Pairs p = V::SetPair(s.p + 2 * (pair * s.p_rows + row));
  const BF16* w = s.interleaved + column / V::kLanes * kPanel + pair * kPanelStep;
  for (int64_t j = 0; j < vectors; ++j, w += kPanel) {
    const int64_t at = column + j * V::kLanes;
    float* const o = a.o + row * a.o_stride + at;
    const int64_t rest = a.v_width - at;
    const typename V::Pairs v = V::FirstOfPairs(V::LoadPairs(w));
    StoreNext<V>(o, V::DotPairs(LoadNext<V>(o, rest), p, v), rest);
  }
}

// o = factor·o + P·V. Pairs of keys that all rows of a tile see are added in one tile, the others
// row by row: a key that a row does not see has probability zero, but its value may be anything.
template <class V>
void AddInterleavedValues(Bf16Scratch& s, const Bf16Rows& a) {
  static constexpr float kOne = 1.0f;
  ForEachColumnRun<V, 4>(a.v_width, [&](int64_t column, auto vectors, int64_t columns) {
    constexpr int64_t kN = decltype(vectors)::value;
    ForEachRun<V::kTileRows>(a.rows, [&](int64_t row, auto rows) {
      constexpr int64_t kM = decltype(rows)::value;
      int64_t common = s.count;
      for (int64_t i = 0; i < kM; ++i) common = Min(common, a.visible[row + i]);
      const bool all = common == s.count;  // an odd last key is interleaved with zeros
      const int64_t pairs = (common + (all ? 1 : 0)) / 2;
      if (pairs > 0)
        Bf16ValueTile<V, kM, kN>(s, a, {row, column, 0, pairs, a.factor + row});
      else
        ScaleOutputs<V>(a, row, kM, column, columns);
      for (int64_t i = row; i < row + kM && !all; ++i) {
        const int64_t visible = a.visible[i];
        if (visible <= 2 * pairs) continue;
        if (visible / 2 > pairs)
          Bf16ValueTile<V, 1, kN>(s, a, {i, column, pairs, visible / 2, &kOne});
        if (visible % 2 != 0) AddOddKey<V>(s, a, i, column, kN, visible / 2);
      }
    });
  });
}

// Finds the cached rows of the block. Rows that are not plain bf16 are rounded, once for all
// queries of the task. Rows that end inside of a step are copied and padded with zeros.
template <class V>
void LoadBlock(const DecodeTask& t, int64_t begin, int64_t end, Bf16Scratch& s) {
  s.count = Min(kBf16Block, end - begin);
  const int64_t rest = kLaneColumns * s.steps - s.width;
  for (int64_t j = 0; j < s.count; ++j) {
    const char* const row = CachedRowOf(t, begin + j);
    s.keys[j] = reinterpret_cast<const BF16*>(row);
    if (t.cache.kind == CacheFormat::kPlain && rest == 0) continue;
    BF16* const to = s.rounded + j * (kMaxDecodeWidth + kPanelStep);
    if (t.cache.kind == CacheFormat::kPlain)
      __builtin_memcpy(to, row, static_cast<uint64_t>(s.width) * sizeof(BF16));
    else
      RoundCachedRow<V>(t.cache, row, to);
    __builtin_memset(to + s.width, 0, static_cast<uint64_t>(rest) * sizeof(BF16));
    s.keys[j] = to;
  }
}

// Spreads the prefetch of the block at `begin` over the score tiles of this one.
template <class V>
void StartPrefetch(const DecodeTask& t, int64_t begin, Bf16Scratch& s) {
  constexpr int64_t kRun = 16;
  const int64_t tiles = s.p_rows / kBf16Group * (kBf16Block / ScoreTileKeys(1));
  s.prefetch.Start(t, begin, kBf16Block, kRun,
                   tiles * ((s.width + s.prefetch_columns - 1) / s.prefetch_columns));
}

// Requires: t.cache is not plain f32 or f16.
template <class V>
void MlaDecodeBf16(const DecodeTask& t) {
  auto& s = ScratchAs<Bf16Scratch>(t.scratch);
  s.width = t.c + t.r;
  s.steps = (s.width + kLaneColumns - 1) / kLaneColumns;
  s.p_rows = RoundUp(t.rows, kBf16Group);
  s.prefetch_columns = PrefetchColumns(t.rows);
  PackQueries<V>(t, s);

  Bf16Rows a = {};
  a.rows = t.rows;
  a.v_width = t.c;
  a.o_stride = t.c;
  a.scale = t.scale;
  for (int64_t part = 0; part < t.splits; ++part) {
    const DecodeSplit split = BeginSplit(t, part);
    a.o = split.out.o;
    for (int64_t i = 0; i < s.p_rows; ++i) {
      a.max[i] = -__builtin_inff();
      a.sum[i] = 0.0f;
    }
    __builtin_memset(a.o, 0, static_cast<uint64_t>(t.rows * t.c) * sizeof(float));
    for (int64_t begin = split.begin; begin < split.end; begin += kBf16Block) {
      LoadBlock<V>(t, begin, split.end, s);
      StartPrefetch<V>(t, begin + kBf16Block, s);
      for (int64_t i = 0; i < t.rows; ++i)
        a.visible[i] = static_cast<int32_t>(Max(Min(s.count, t.q[i].visible - begin), 0));
      for (int64_t group = 0; group < t.rows; group += kBf16Group) {
        Bf16Scores<V>(s, group, Min(kBf16Group, t.rows - group), t.c);
        Bf16Probabilities<V>(s, a, group);
      }
      AddInterleavedValues<V>(s, a);
    }
    StoreMaxAndSum(a, split.out);
  }
}

}  // namespace
}  // namespace latte::cpu
