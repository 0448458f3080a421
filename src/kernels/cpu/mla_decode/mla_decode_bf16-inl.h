// mla_decode on bf16: absorbed attention whose two products multiply bf16 and add in f32.
//
// Rounding  queries to bf16, once; probabilities to bf16, for the product with values; quantised
//           cache rows to bf16, once per block. The sum of probabilities, and with it lse, is f32.
// Work      tasks as in mla_decode_f32-inl.h. Rows of queries are packed once per task, four to a
//           register, so that a key's eight columns multiply all four and a sum is spread over four
//           lanes only; up to 16 rows are a group, whose scores lie key after key: maxima and sums
//           of all its rows are taken at once. bf16 caches are used straight from the pages.
//
//             register j of a group, step of 8 columns        score tile
//             │ row 4j    │ row 4j+1  │ 4j+2 │ 4j+3 │               q0  q1  q2  q3
//             │ c0 … c7   │ c0 … c7   │  …   │  …   │         key 0 │ Σ   Σ   Σ   Σ │ each of 4
//             rows, │ key: the same 8 columns four times  │             … │               │ 4 lanes
//             a row
//
//           Values of 128 keys are zipped in pairs once for all rows of the task, since a dot
//           product over keys needs two keys' numbers of a column side by side.
//
//             zip, one panel per vector of 16 columns            output tile
//             key   0,1 │ c0c0 c1c1 … c15c15 │               4 panels ─────────▶
//             key   2,3 │ c0c0 c1c1 … c15c15 │    kTileRows │ f32 × 64 columns
//               …       │        …           │        heads ▼ += p(0,1)·panel row, p(2,3)·…
//             key 126,7 │ c0c0 c1c1 … c15c15 │
//
// Figures   docs/kernels/mla_decode.md.
// Order     a score has four sums, of every fourth pair, added as SumFours does. Keys in index
//           order, blocks of 128 and pairs anchored at position 0, an odd last key paired with
//           zero. Neither grouping of heads nor page size, batch or threads change a byte.
// Limits    C+R ≤ 1152; scratch 760 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/bf16_pair-inl.h"
#include "src/kernels/cpu/common/cached_row-inl.h"
#include "src/kernels/cpu/common/merge_splits-inl.h"
#include "src/kernels/cpu/common/online_softmax-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/mla_decode/prefetch_pages-inl.h"
#include "src/kernels/cpu/mla_decode/rounded_row-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Keys per block: twice as many as for f32, so that outputs are loaded and stored half as often.
constexpr int64_t kPairBlock = 128;
constexpr int64_t kKeyPairs = kPairBlock / 2;
// Elements of a row of a panel, and of a panel with one cache line between it and the next, so that
// equal rows of panels spread over the sets of the L1.
constexpr int64_t kPanelRow = 32;
constexpr int64_t kPanel = (kKeyPairs + 1) * kPanelRow;

constexpr int64_t kPairGroup = 16;      // rows whose scores lie side by side
constexpr int64_t kQuarterColumns = 8;  // columns of a row in a register
constexpr int64_t kQuarterRows = 4;     // rows in a register
// Columns of a score tile after which some lines are asked for. What many rows need is asked for
// seldom, which takes less of the tile (Zen 5, 128 heads: 0.99 of the time); few rows have to keep
// up with memory (16 heads: 0.97).
constexpr int64_t kManyRows = 64;
constexpr int64_t AskColumns(int64_t rows) { return rows >= kManyRows ? 192 : 64; }

// Rows of queries and what is known of them; those of the last group behind the last row see
// nothing.
struct PairRows {
  int64_t rows, v_width;
  float* o;  // [rows, v_width]; not normalised
  int64_t o_stride;
  float scale;
  alignas(64) int32_t visible[kMaxDecodeRows];  // keys of the current block that the row sees
  alignas(64) float max[kMaxDecodeRows];
  alignas(64) float sum[kMaxDecodeRows];
  alignas(64) float factor[kMaxDecodeRows];  // of the current block
};

struct PairScratch {
  alignas(64) BF16 q[kMaxDecodeRows * kMaxDecodeWidth];  // [group][step][register][32]
  alignas(64) float scores[kPairBlock * kPairGroup];     // of a group
  alignas(64) BF16 p[kPairBlock * kMaxDecodeRows];       // [pair of keys][p_rows][2]
  alignas(64) BF16 zipped[kMaxDecodeWidth / 16 * kPanel];
  const BF16* keys[kPairBlock];  // rows of the current block
  NextBlock ahead;
  alignas(64) BF16 rounded[kPairBlock * (kMaxDecodeWidth + kPanelRow)];  // if they are not bf16
  int64_t width, count;
  int64_t steps;   // of kQuarterColumns columns
  int64_t p_rows;  // a multiple of kPairGroup
  int64_t ask_columns;
};

// Columns of x in their places of the registers of its group, which has kN = `registers`.
inline void PackQuery(const BF16* x, int64_t row, int64_t registers, int64_t steps, BF16* group) {
  BF16* to = group + row / kQuarterRows * kPanelRow + row % kQuarterRows * kQuarterColumns;
  for (int64_t step = 0; step < steps; ++step, x += kQuarterColumns, to += registers * kPanelRow)
    __builtin_memcpy(to, x, kQuarterColumns * sizeof(BF16));
}

template <class V>
void PackQueries(const DecodeTask& t, PairScratch& s) {
  alignas(64) float wide[kMaxDecodeWidth];
  alignas(64) BF16 rounded[kMaxDecodeWidth + kPanelRow];
  for (int64_t group = 0; group < t.rows; group += kPairGroup) {
    const int64_t rows = Min(kPairGroup, t.rows - group);
    const int64_t registers = (rows + kQuarterRows - 1) / kQuarterRows;
    BF16* const to = s.q + group * s.steps * kQuarterColumns;
    for (int64_t i = 0; i < registers * kQuarterRows; ++i) {
      const DecodeRow& q = t.q[group + Min(i, rows - 1)];  // behind the last row that row again
      WidenRow<V>(q.q_latent, t.c, wide);
      WidenRow<V>(q.q_rope, t.r, wide + t.c);
      RoundRow<V>(wide, s.width, rounded);
      PackQuery(rounded, i, registers, s.steps, to);
    }
  }
}

// sums[i][j] += key i · register j, of one step.
template <class V, int64_t kM, int64_t kN>
[[gnu::always_inline]] inline void AddQuarters(const BF16* const (&keys)[kM], int64_t at,
                                               const BF16* q, typename V::Vec (&sums)[kM][kN]) {
  typename V::Pairs qj[kN];
  for (int64_t j = 0; j < kN; ++j) qj[j] = V::LoadPairs(q + j * kPanelRow);
  for (int64_t i = 0; i < kM; ++i) {
    const typename V::Pairs k = V::LoadFourTimes(keys[i] + at);
    for (int64_t j = 0; j < kN; ++j) sums[i][j] = V::DotPairs(sums[i][j], k, qj[j]);
  }
}

template <class V, int64_t kM, int64_t kN>
[[gnu::always_inline]] inline void StoreScores(const typename V::Vec (&sums)[kM][kN], float* to) {
  constexpr auto kAt = [](int64_t j) { return Min(j, kN - 1); };  // what is not there is not used
  for (int64_t i = 0; i < kM; ++i)
    V::Store(to + i * kPairGroup,
             V::SumInQuarters(sums[i][0], sums[i][kAt(1)], sums[i][kAt(2)], sums[i][kAt(3)]));
}

// Scores of kM keys with kN registers of queries.
template <class V, int64_t kM, int64_t kN>
[[gnu::noinline]] void PairScoreTile(PairScratch& s, const BF16* q, int64_t key) {
  const BF16* keys[kM];
  for (int64_t i = 0; i < kM; ++i) keys[i] = s.keys[key + i];
  typename V::Vec sums[kM][kN];
  for (auto& row : sums)
    for (auto& sum : row) sum = V::Zero();
  int64_t at = 0;
  do {  // a loop that might not be entered would begin and end with sums in memory
    s.ahead.template Ask<V>();
    const int64_t end = Min(at + s.ask_columns, s.width);
    do {
      AddQuarters<V, kM, kN>(keys, at, q, sums);
      at += kQuarterColumns;
      q += kN * kPanelRow;
    } while (at < end);
  } while (at < s.width);
  StoreScores<V, kM, kN>(sums, s.scores + key * kPairGroup);
}

// Keys of a score tile: 24 sums, or as many as there are addresses for.
constexpr int64_t ScoreTileKeys(int64_t registers) { return registers == 4 ? 6 : 8; }

// Values of keys [begin, end) of the block, two at a time; begin is even.
template <class V>
void ZipValues(PairScratch& s, int64_t columns, int64_t begin, int64_t end) {
  for (int64_t key = begin; key < end; key += 2) {
    const BF16* const even = s.keys[key];
    BF16* const to = s.zipped + key / 2 * kPanelRow;
    for (int64_t at = 0; at < columns; at += V::kPairElements) {
      const typename V::Pairs x = LoadPairsOf<V>(even, at, columns);
      // Nothing is known of what lies behind an odd last key.
      const typename V::Pairs y = key + 1 < end ? LoadPairsOf<V>(s.keys[key + 1], at, columns)
                                                : V::LoadPairsPartial(even, 0);
      V::StorePairs(to + at / 16 * kPanel, V::ZipLow(x, y));
      if (at + 16 < columns) V::StorePairs(to + (at / 16 + 1) * kPanel, V::ZipHigh(x, y));
    }
  }
}

// Scores of the block's keys with a group's rows; with the first group, while keys are in L1, their
// values are zipped.
template <class V>
void PairScores(PairScratch& s, int64_t group, int64_t rows, int64_t columns) {
  const BF16* const q = s.q + group * s.steps * kQuarterColumns;
  int64_t zipped = group == 0 ? 0 : s.count;
  WithConstant<4>((rows + kQuarterRows - 1) / kQuarterRows, [&](auto registers) {
    constexpr int64_t kN = decltype(registers)::value;
    ForEachRun<ScoreTileKeys(kN)>(s.count, [&](int64_t key, auto keys) {
      constexpr int64_t kM = decltype(keys)::value;
      PairScoreTile<V, kM, kN>(s, q, key);
      if (zipped == s.count) return;
      const int64_t end = key + kM == s.count ? s.count : (key + kM) / 2 * 2;
      ZipValues<V>(s, columns, zipped, end);
      zipped = end;
    });
  });
}

// The new maxima of a group whose scores are not scaled. Rows see all keys before `least`.
template <class V>
typename V::Vec MaxOfScores(const PairRows& a, int64_t group, int64_t count, int64_t least,
                            const float* scores) {
  const typename V::Vec scale = V::Set1(a.scale);
  const typename V::Vec never = V::Set1(-__builtin_inff());
  typename V::Vec top = V::Load(a.max + group);
  for (int64_t key = 0; key < count; ++key) {
    typename V::Vec x = V::Mul(V::Load(scores + key * kPairGroup), scale);
    if (key >= least) x = V::WhereBelow(key, a.visible + group, x, never);
    top = V::Max(top, x);
  }
  return top;
}

// Scores of a group to unnormalised probabilities, rounded into s.p; updates max, sum and factor.
// e^{scale·x − m} is 2^{(scale·log₂e)·x − m·log₂e}: one multiply-add and a shorter power.
template <class V>
void PairWeights(PairScratch& s, PairRows& a, int64_t group) {
  int64_t least = s.count;
  for (int64_t i = group; i < Min(group + kPairGroup, a.rows); ++i)
    least = Min(least, a.visible[i]);
  const int32_t* const visible = a.visible + group;
  const typename V::Vec zero = V::Zero();
  const typename V::Vec max = MaxOfScores<V>(a, group, s.count, least, s.scores);
  const typename V::Vec factor =
      V::Exp(V::WhereBelow(0, visible, V::Sub(V::Load(a.max + group), max), zero));
  V::Store(a.factor + group, factor);
  V::Store(a.max + group, max);
  const typename V::Vec scale = V::Set1(a.scale * kLog2E);
  const typename V::Vec top = V::Mul(max, V::Set1(kLog2E));
  typename V::Vec sum = zero;
  const auto weight = [&](int64_t key) {
    if (key >= s.count) return zero;
    typename V::Vec e = V::Exp2(V::FmaSub(V::Load(s.scores + key * kPairGroup), scale, top));
    if (key >= least) e = V::WhereBelow(key, visible, e, zero);
    sum = V::Add(sum, e);
    return e;
  };
  for (int64_t key = 0; key < s.count; key += 2) {
    const typename V::Vec even = weight(key);
    const typename V::Pairs both = V::RoundPairs(even, weight(key + 1));
    V::StorePairs(s.p + key * s.p_rows + 2 * group, V::Interleave(both));
  }
  V::Store(a.sum + group, V::Fma(V::Load(a.sum + group), factor, sum));
}

// Pairs of keys added to the outputs of some rows from `row`, columns from `column`; at least one.
struct PairRange {
  int64_t row, column, begin, end;
  const float* factor;  // what outputs are multiplied by first
};

// The same of kM rows and kN vectors of columns; a single vector may be partial.
template <class V, int64_t kM, int64_t kN>
[[gnu::noinline]] void PairOuterTile(const PairScratch& s, const PairRows& a, const PairRange& r) {
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
  const BF16* w = s.zipped + r.column / V::kLanes * kPanel + r.begin * kPanelRow;
  int64_t n = r.end - r.begin;
  do {
    typename V::Pairs v[kN];
    for (int64_t j = 0; j < kN; ++j) v[j] = V::LoadPairs(w + j * kPanel);
    for (int64_t i = 0; i < kM; ++i) {
      const typename V::Pairs pi = V::SetPair(p + 2 * i);
      for (int64_t j = 0; j < kN; ++j) acc[i][j] = V::DotPairs(acc[i][j], pi, v[j]);
    }
    w += kPanelRow;
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

// The same without keys.
template <class V>
void ScaleOutputs(const PairRows& a, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  for (int64_t i = row; i < row + rows; ++i)
    ScaleRow<V>(a.o + i * a.o_stride + column, columns, a.factor[i]);
}

// The first key of pair `pair` added to `vectors` vectors of a row's outputs.
template <class V>
void AddHalfPair(const PairScratch& s, const PairRows& a, int64_t row, int64_t column,
                 int64_t vectors, int64_t pair) {
  const typename V::Pairs p = V::SetPair(s.p + 2 * (pair * s.p_rows + row));
  const BF16* w = s.zipped + column / V::kLanes * kPanel + pair * kPanelRow;
  for (int64_t j = 0; j < vectors; ++j, w += kPanel) {
    const int64_t at = column + j * V::kLanes;
    float* const o = a.o + row * a.o_stride + at;
    const int64_t rest = a.v_width - at;
    const typename V::Pairs v = V::FirstOfPairs(V::LoadPairs(w));
    StoreNext<V>(o, V::DotPairs(LoadNext<V>(o, rest), p, v), rest);
  }
}

// o = factor·o + P·V. Probabilities of keys that a row does not see are zero (PairWeights), but
// their values may be anything: pairs that all rows of a tile see are multiplied together, the rest
// row by row.
template <class V>
void AddZippedValues(PairScratch& s, const PairRows& a) {
  static constexpr float kOne = 1.0f;
  ForEachColumnRun<V, 4>(a.v_width, [&](int64_t column, auto vectors, int64_t columns) {
    constexpr int64_t kN = decltype(vectors)::value;
    ForEachRun<V::kTileRows>(a.rows, [&](int64_t row, auto rows) {
      constexpr int64_t kM = decltype(rows)::value;
      int64_t common = s.count;
      for (int64_t i = 0; i < kM; ++i) common = Min(common, a.visible[row + i]);
      const bool all = common == s.count;  // an odd last key is zipped with zeros
      const int64_t pairs = (common + (all ? 1 : 0)) / 2;
      if (pairs > 0)
        PairOuterTile<V, kM, kN>(s, a, {row, column, 0, pairs, a.factor + row});
      else
        ScaleOutputs<V>(a, row, kM, column, columns);
      for (int64_t i = row; i < row + kM && !all; ++i) {
        const int64_t visible = a.visible[i];
        if (visible <= 2 * pairs) continue;
        if (visible / 2 > pairs)
          PairOuterTile<V, 1, kN>(s, a, {i, column, pairs, visible / 2, &kOne});
        if (visible % 2 != 0) AddHalfPair<V>(s, a, i, column, kN, visible / 2);
      }
    });
  });
}

// Finds the block's rows. Those that are not bf16 are rounded to it, once for all queries of the
// task; those that end inside of a step are copied, with zeros behind them.
template <class V>
void TakeBlock(const DecodeTask& t, int64_t begin, int64_t end, PairScratch& s) {
  s.count = Min(kPairBlock, end - begin);
  const int64_t rest = kQuarterColumns * s.steps - s.width;
  for (int64_t j = 0; j < s.count; ++j) {
    const char* const row = CachedRowOf(t, begin + j);
    s.keys[j] = reinterpret_cast<const BF16*>(row);
    if (t.cache.kind == RowKind::kPlain && rest == 0) continue;
    BF16* const to = s.rounded + j * (kMaxDecodeWidth + kPanelRow);
    if (t.cache.kind == RowKind::kPlain)
      __builtin_memcpy(to, row, static_cast<uint64_t>(s.width) * sizeof(BF16));
    else
      RoundCachedRow<V>(t.cache, row, to);
    __builtin_memset(to + s.width, 0, static_cast<uint64_t>(rest) * sizeof(BF16));
    s.keys[j] = to;
  }
}

// Shares the lines of the next block, at `begin`, out among the score tiles of this one.
template <class V>
void StartAhead(const DecodeTask& t, int64_t begin, PairScratch& s) {
  constexpr int64_t kRun = 16;
  const int64_t tiles = s.p_rows / kPairGroup * (kPairBlock / ScoreTileKeys(1));
  s.ahead.Start(t, begin, kPairBlock, kRun,
                tiles * ((s.width + s.ask_columns - 1) / s.ask_columns));
}

// Requires: t.cache is not plain f32 or f16.
template <class V>
void MlaDecodeBf16(const DecodeTask& t) {
  auto& s = InScratch<PairScratch>(t.scratch);
  s.width = t.c + t.r;
  s.steps = (s.width + kQuarterColumns - 1) / kQuarterColumns;
  s.p_rows = RoundUp(t.rows, kPairGroup);
  s.ask_columns = AskColumns(t.rows);
  PackQueries<V>(t, s);

  PairRows a = {};
  a.rows = t.rows;
  a.v_width = t.c;
  a.o_stride = t.c;
  a.scale = t.scale;
  for (int64_t part = 0; part < t.splits; ++part) {
    const DecodeSplit split = TakeSplit(t, part);
    a.o = split.out.o;
    for (int64_t i = 0; i < s.p_rows; ++i) {
      a.max[i] = -__builtin_inff();
      a.sum[i] = 0.0f;
    }
    __builtin_memset(a.o, 0, static_cast<uint64_t>(t.rows * t.c) * sizeof(float));
    for (int64_t begin = split.begin; begin < split.end; begin += kPairBlock) {
      TakeBlock<V>(t, begin, split.end, s);
      StartAhead<V>(t, begin + kPairBlock, s);
      for (int64_t i = 0; i < t.rows; ++i)
        a.visible[i] = static_cast<int32_t>(Max(Min(s.count, t.q[i].visible - begin), 0));
      for (int64_t group = 0; group < t.rows; group += kPairGroup) {
        PairScores<V>(s, group, Min(kPairGroup, t.rows - group), t.c);
        PairWeights<V>(s, a, group);
      }
      AddZippedValues<V>(s, a);
    }
    StoreMaxAndSum(a, split.out);
  }
}

}  // namespace
}  // namespace latte::cpu
