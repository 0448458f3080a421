// mla_decode on tiles: absorbed attention whose two products multiply bf16 on AMX.
//
// Rounding  as in mla_decode_bf16-inl.h: queries, probabilities and quantised cache rows to bf16,
//           nothing else; the tile instructions take subnormals as zero and round to nearest even.
// Work      a task is up to kMaxTileRows rows in groups of 16, so that a key that is read, or
//           zipped, serves 128 heads. Blocks of 256 keys:
//
//             scores  Sᵀ[16 keys × 16 rows] += K[16 keys × 32] · Qᵀ        keys in place, as they
//                                              (pairs, packed once)        lie in their page, or
//                                                                          rounded, if quantised
//             weights lanes are rows: maximum and sum over keys are vertical; Sᵀ is transposed
//                     16 × 16 pairs at a time on its way to bf16
//             values  O[16 rows × 16 columns] += P[16 rows × 32 keys] · V  V zipped in pairs of
//                                                                          keys, 32 columns at once
//
//           Sums of both products are blocks of 2 × 2 tiles. O stays in f32 memory and is rescaled
//           only where a row's maximum has changed.
// Order     keys in index order, blocks of 256, steps of 32 and pairs anchored where the task
//           begins; what a row does not see is neither read into its sums nor multiplied. A row's
//           bytes depend on nothing else.
// Limits    C+R ≤ 1152, pages of a multiple of 16 tokens; scratch 1.6 MiB, of which C+R, the rows
// and
//           the kind of cache decide what is touched.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/amx_tile-inl.h"
#include "src/kernels/cpu/common/bf16_pair-inl.h"
#include "src/kernels/cpu/common/cached_row-inl.h"
#include "src/kernels/cpu/common/merge_splits-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/mla_decode/mla_decode_f32-inl.h"
#include "src/kernels/cpu/mla_decode/prefetch_pages-inl.h"
#include "src/kernels/cpu/mla_decode/rounded_row-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kGroups = kMaxTileRows / kTileSide;
constexpr int64_t kTileBlock = 256;  // keys per block
constexpr int64_t kMaxSteps = kMaxDecodeWidth / kStep;
constexpr int64_t kBlockSteps = kTileBlock / kStep;
constexpr int64_t kBlockTiles = kTileBlock / kTileSide;

// Sixteen rows of attention.
struct RowGroup {
  alignas(64) float max[kTileSide];
  alignas(64) float sum[kTileSide];
  alignas(64) float factor[kTileSide];     // of the current block
  alignas(64) int32_t visible[kTileSide];  // keys of the current block that the row sees
  int64_t least, most;                     // of visible
  uint32_t rescaled;                       // rows whose factor is not 1
};

struct TileDecode {
  RowGroup groups[kGroups];
  alignas(64) BF16 q[kGroups * kMaxSteps * kTilePairs];      // [group][step][pair][row]
  alignas(64) float o[kGroups * kMaxSteps * 2 * kTileSums];  // [group][32 columns][low, high]
  alignas(64) float scores[2 * kTileBlock * kTileSide];      // [group][key][row]
  alignas(64) BF16 p[kGroups * kBlockSteps * kTilePairs];    // [group][step][row][key]
  alignas(64) BF16 zipped[kBlockSteps * 2 * kTilePairs];     // [step][low, high][pair][column]
  alignas(
      64) BF16 hidden[2 * kTilePairs];  // a step of `zipped` without the keys a row does not see
  alignas(64) BF16 tail[kTileBlock * kStep];  // last columns of keys, if less than a step
  alignas(64) BF16 rounded[kTileBlock * kMaxDecodeWidth + kStep];  // rows of a quantised cache
  const BF16* keys[kBlockTiles];                                   // every 16th row of the block
  NextBlock ahead;
  int64_t width, row_bytes;    // C+R
  int64_t steps;               // whole steps of it
  int64_t columns, spans;      // C, and 32 of it at a time
  int64_t group_count, count;  // keys of the block
  float scale;

  BF16* Q(int64_t group, int64_t step) { return q + (group * kMaxSteps + step) * kTilePairs; }
  float* O(int64_t group, int64_t span) { return o + (group * kMaxSteps + span) * 2 * kTileSums; }
  BF16* P(int64_t group, int64_t step) { return p + (group * kBlockSteps + step) * kTilePairs; }
};

// Rounds the queries of a group and packs them as B: word h of line g is pair g of row h.
inline void PackQueries(const DecodeTask& t, int64_t group, TileDecode& s) {
  alignas(64) float q[kMaxDecodeWidth];
  alignas(64) BF16 rows[kTileSide][kMaxDecodeWidth];
  const int64_t padded = (s.width + kStep - 1) / kStep * kStep;
  for (int64_t i = 0; i < kTileSide; ++i) {
    const int64_t row = group * kTileSide + i;
    const int64_t width = row < t.rows ? s.width : 0;
    if (width > 0) {
      WidenRow<Amx>(t.q[row].q_latent, t.c, q);
      WidenRow<Amx>(t.q[row].q_rope, t.r, q + t.c);
    }
    RoundRow<Amx>(q, width, rows[i]);
    for (int64_t j = (width + kStep - 1) / kStep * kStep; j < padded; ++j) rows[i][j].bits = 0;
  }
  for (int64_t at = 0; at < padded; at += kStep) {
    Amx::Words words[kTileSide];
    for (int64_t i = 0; i < kTileSide; ++i) words[i] = Amx::LoadWords(rows[i] + at);
    Amx::Transpose(words);
    BF16* const to = s.Q(group, at / kStep);
    for (int64_t i = 0; i < kTileSide; ++i) Amx::StoreWords(to + i * kStep, words[i]);
  }
}

// Finds every 16th row of the block at `begin`; rows that are not bf16 are rounded to it, once for
// all queries of the task.
inline void TakeKeys(const DecodeTask& t, int64_t begin, int64_t end, TileDecode& s) {
  s.count = Min(kTileBlock, end - begin);
  for (int64_t key = 0; key < s.count; key += kTileSide) {
    const char* const rows = CachedRowOf(t, begin + key);
    s.keys[key / kTileSide] = reinterpret_cast<const BF16*>(rows);
    if (t.cache.kind == RowKind::kPlain) continue;
    BF16* const to = s.rounded + key * s.width;
    RoundCachedRows<Amx>(t.cache, rows, Min(kTileSide, s.count - key), to, s.width);
    s.keys[key / kTileSide] = to;
  }
}

// The last columns of keys, if they are less than a step, with zeros behind them.
inline void CopyTail(TileDecode& s) {
  const int64_t at = s.steps * kStep;
  if (at == s.width) return;
  for (int64_t key = 0; key < s.count; ++key) {
    const BF16* const row = s.keys[key / kTileSide] + key % kTileSide * s.width;
    Amx::StorePairs(s.tail + key * kStep, Amx::LoadPairsPartial(row + at, s.width - at));
  }
}

// Shares the lines of the next block, at `begin`, out among the steps of this one.
inline void StartAhead(const DecodeTask& t, int64_t begin, TileDecode& s) {
  const int64_t pairs = (s.group_count + 1) / 2;
  const int64_t score_steps = kTileBlock / (s.group_count == 1 ? 64 : 32) * pairs * s.steps;
  const int64_t value_steps = s.spans * pairs * kBlockSteps;
  const int64_t zips = s.spans * kTileBlock / 8;
  s.ahead.Start(t, begin, kTileBlock, kTileSide, score_steps + value_steps + zips);
}

// Scores of kM × 16 keys from the key-th tile on with kN groups. Rows of a tile behind the last key
// are whatever their page holds; Weights leaves them out.
template <int64_t kM, int64_t kN>
inline void ScoreBlock(TileDecode& s, int64_t tile, int64_t group) {
  ZeroSums<kM, kN>();
  const auto q = [&](int64_t step) {
    return [&s, group, step](int64_t j) { return TileAt{s.Q(group + j, step), kTileRowBytes}; };
  };
  for (int64_t step = 0; step < s.steps; ++step) {
    const auto keys = [&](int64_t i) {
      return TileAt{s.keys[tile + i] + step * kStep, s.row_bytes};
    };
    AddStep<kM, kN>(keys, q(step));
    s.ahead.Ask<Amx>();
  }
  if (s.steps * kStep < s.width) {
    const auto tails = [&](int64_t i) {
      return TileAt{s.tail + (tile + i) * kTilePairs, kTileRowBytes};
    };
    AddStep<kM, kN>(tails, q(s.steps));
  }
  StoreSums<kM, kN>([&](int64_t i, int64_t j) {
    return s.scores + (j * kTileBlock + (tile + i) * kTileSide) * kTileSide;
  });
}

template <int64_t kN>
void Scores(TileDecode& s, int64_t group) {
  ForEachRun<4 / kN>((s.count + kTileSide - 1) / kTileSide, [&](int64_t tile, auto tiles) {
    ScoreBlock<decltype(tiles)::value, kN>(s, tile, group);
  });
}

// Scales scores [count, 16], hides what rows do not see and returns the new maxima.
inline Amx::Vec ScaleAndMax(const RowGroup& g, float scale, int64_t count, float* scores) {
  const Amx::Vec by = Amx::Set1(scale);
  const Amx::Vec never = Amx::Set1(-__builtin_inff());
  Amx::Vec top = Amx::Load(g.max);
  for (int64_t key = 0; key < count; ++key) {
    Amx::Vec x = Amx::Mul(Amx::Load(scores + key * kTileSide), by);
    if (key >= g.least) x = Amx::WhereBelow(key, g.visible, x, never);
    Amx::Store(scores + key * kTileSide, x);
    top = Amx::Max(top, x);
  }
  return top;
}

// Scores to unnormalised probabilities, as rows of A in s.P(group); updates max, sum and factor.
inline void Weights(TileDecode& s, int64_t group, float* scores) {
  RowGroup& g = s.groups[group];
  const int64_t count = Min(s.count, g.most);
  const Amx::Vec zero = Amx::Zero();
  const Amx::Vec max = ScaleAndMax(g, s.scale, count, scores);
  const Amx::Vec shift = Amx::WhereBelow(0, g.visible, Amx::Sub(Amx::Load(g.max), max), zero);
  const Amx::Vec factor = Amx::Exp(shift);
  g.rescaled = Amx::NotOne(factor);
  Amx::Store(g.factor, factor);
  Amx::Store(g.max, max);

  Amx::Vec sum = zero;
  const auto weight = [&](int64_t key) {
    if (key >= count) return zero;
    Amx::Vec e = Amx::Exp(Amx::Sub(Amx::Load(scores + key * kTileSide), max));
    if (key >= g.least) e = Amx::WhereBelow(key, g.visible, e, zero);
    sum = Amx::Add(sum, e);
    return e;
  };
  for (int64_t step = 0; step * kStep < count; ++step) {
    Amx::Words words[kTileSide];
    for (int64_t i = 0; i < kTileSide; ++i) {
      const int64_t key = step * kStep + 2 * i;
      const Amx::Vec even = weight(key);
      words[i] = Amx::PairWords(even, weight(key + 1));
    }
    Amx::Transpose(words);
    for (int64_t i = 0; i < kTileSide; ++i) Amx::StoreWords(s.P(group, step) + i * kStep, words[i]);
  }
  Amx::Store(g.sum, Amx::Fma(Amx::Load(g.sum), factor, sum));
}

// Values of keys [begin, begin + 32) in 32 columns, two keys at a time; zeros behind key `end`.
inline void ZipStep(TileDecode& s, int64_t begin, int64_t end, int64_t column, BF16* to) {
  const auto load = [&](int64_t key) {
    if (key >= end) return Amx::LoadPairsPartial(s.tail, 0);
    return LoadPairsOf<Amx>(s.keys[key / kTileSide] + key % kTileSide * s.width, column, s.columns);
  };
  for (int64_t i = 0; i < kTileSide; ++i) {
    if (i % 4 == 0) s.ahead.Ask<Amx>();
    const Amx::Pairs even = load(begin + 2 * i);
    const Amx::Pairs odd = load(begin + 2 * i + 1);
    Amx::StorePairs(to + i * kStep, Amx::ZipLowQuads(even, odd));
    Amx::StorePairs(to + kTilePairs + i * kStep, Amx::ZipHighQuads(even, odd));
  }
}

inline void RescaleSums(const RowGroup& g, float* o) {
  for (uint32_t rows = g.rescaled; rows != 0; rows &= rows - 1) {
    const int64_t i = __builtin_ctz(rows);
    const Amx::Vec factor = Amx::Set1(g.factor[i]);
    for (float* at = o + i * kTileSide; at < o + 2 * kTileSums; at += kTileSums)
      Amx::Store(at, Amx::Mul(Amx::Load(at), factor));
  }
}

// Adds `keys` values of 32 columns to the sums of kM groups. The last step, if not whole, is
// `last`.
template <int64_t kM>
inline void AddValueBlock(TileDecode& s, int64_t group, int64_t span, int64_t keys,
                          const BF16* last) {
  const auto sums = [&](int64_t i, int64_t j) { return s.O(group + i, span) + j * kTileSums; };
  LoadSums<kM, 2>(sums);
  for (int64_t step = 0; step * kStep < keys; ++step) {
    const bool whole = (step + 1) * kStep <= keys;
    s.ahead.Ask<Amx>();
    const BF16* const v = whole ? s.zipped + step * 2 * kTilePairs : last;
    AddStep<kM, 2>(
        [&](int64_t i) {
          return TileAt{s.P(group + i, step), kTileRowBytes};
        },
        [&](int64_t j) {
          return TileAt{v + j * kTilePairs, kTileRowBytes};
        });
  }
  StoreSums<kM, 2>(sums);
}

// The same for a group of which some rows do not see all of the block: all 16 rows once for every
// number of keys that one of them sees, of which the rows that see so many are kept. Elsewhere a
// probability of zero would meet a value that may be anything.
inline void AddHiddenValues(TileDecode& s, int64_t group, int64_t span) {
  RowGroup& g = s.groups[group];
  float* const o = s.O(group, span);
  alignas(64) float before[2 * kTileSums];
  alignas(64) float after[2 * kTileSums];
  __builtin_memcpy(before, o, sizeof(before));
  __builtin_memcpy(after, o, sizeof(after));
  int64_t done = 0;
  while (done < g.most) {
    int64_t keys = g.most;  // the least number of keys above `done`
    for (const int32_t seen : g.visible)
      if (seen > done) keys = Min(keys, seen);
    ZipStep(s, keys / kStep * kStep, keys, span * kStep, s.hidden);
    __builtin_memcpy(o, before, sizeof(before));
    AddValueBlock<1>(s, group, span, keys, s.hidden);
    for (int64_t i = 0; i < 2 * kTileSide; ++i)
      if (g.visible[i % kTileSide] == keys)
        Amx::Store(after + i * kTileSide, Amx::Load(o + i * kTileSide));
    done = keys;
  }
  __builtin_memcpy(o, after, sizeof(after));
}

// o = factor·o + P·V in 32 columns.
inline void AddValues(TileDecode& s, int64_t span) {
  for (int64_t begin = 0; begin < s.count; begin += kStep)
    ZipStep(s, begin, s.count, span * kStep, s.zipped + begin / kStep * 2 * kTilePairs);
  const BF16* const last = s.zipped + s.count / kStep * 2 * kTilePairs;
  for (int64_t group = 0; group < s.group_count; ++group) {
    RescaleSums(s.groups[group], s.O(group, span));
    if (s.groups[group].least < s.count) {
      AddHiddenValues(s, group, span);
    } else if (group + 1 < s.group_count && s.groups[group + 1].least >= s.count) {
      RescaleSums(s.groups[group + 1], s.O(group + 1, span));
      AddValueBlock<2>(s, group, span, s.count, last);
      ++group;
    } else {
      AddValueBlock<1>(s, group, span, s.count, last);
    }
  }
}

inline void StartGroups(TileDecode& s) {
  for (int64_t group = 0; group < s.group_count; ++group) {
    RowGroup& g = s.groups[group];
    Amx::Store(g.max, Amx::Set1(-__builtin_inff()));
    Amx::Store(g.sum, Amx::Zero());
    float* const o = s.O(group, 0);
    for (int64_t i = 0; i < s.spans * 2 * kTileSums; i += kTileSide) Amx::Store(o + i, Amx::Zero());
  }
}

// Keys of the block at `begin` that each row sees. Rows that fill a group up see what its last one
// does.
inline void FindVisible(const DecodeTask& t, int64_t begin, TileDecode& s) {
  for (int64_t group = 0; group < s.group_count; ++group) {
    RowGroup& g = s.groups[group];
    g.least = s.count;
    g.most = 0;
    for (int64_t i = 0; i < kTileSide; ++i) {
      const int64_t row = Min(group * kTileSide + i, t.rows - 1);
      const int64_t seen = Max(0, Min(s.count, t.q[row].visible - begin));
      g.visible[i] = static_cast<int32_t>(seen);
      g.least = Min(g.least, seen);
      g.most = Max(g.most, seen);
    }
  }
}

// Brings columns into order and stores what became of row i of a group.
inline void StoreRow(TileDecode& s, int64_t group, int64_t i, const Partial& out, int64_t row) {
  out.max[row] = s.groups[group].max[i];
  out.sum[row] = s.groups[group].sum[i];
  float* const o = out.o + row * s.columns;
  for (int64_t span = 0; span < s.spans; ++span) {
    const float* const sums = s.O(group, span) + i * kTileSide;
    const Amx::Vec low = Amx::Load(sums);
    const Amx::Vec high = Amx::Load(sums + kTileSums);
    const int64_t at = span * kStep;
    StoreNext<Amx>(o + at, Amx::JoinQuadsLow(low, high), s.columns - at);
    if (at + kTileSide < s.columns)
      StoreNext<Amx>(o + at + kTileSide, Amx::JoinQuadsHigh(low, high), s.columns - at - kTileSide);
  }
}

// Requires: t.cache is plain bf16 or quantised; t.page_tokens is a multiple of 16.
inline void MlaDecodeAmx(const DecodeTask& t) {
  auto& s = InScratch<TileDecode>(t.scratch);
  s.width = t.c + t.r;
  s.row_bytes = s.width * static_cast<int64_t>(sizeof(BF16));
  s.steps = s.width / kStep;
  s.columns = t.c;
  s.spans = (t.c + kStep - 1) / kStep;
  s.group_count = (t.rows + kTileSide - 1) / kTileSide;
  s.scale = t.scale;
  const TileScope scope{TileShapes{}};
  for (int64_t group = 0; group < s.group_count; ++group) PackQueries(t, group, s);
  for (int64_t part = 0; part < t.splits; ++part) {
    const DecodeSplit split = TakeSplit(t, part);
    StartGroups(s);
    for (int64_t begin = split.begin; begin < split.end; begin += kTileBlock) {
      TakeKeys(t, begin, split.end, s);
      StartAhead(t, begin + kTileBlock, s);
      FindVisible(t, begin, s);
      CopyTail(s);
      for (int64_t group = 0; group < s.group_count; group += 2) {
        if (group + 1 == s.group_count) {
          Scores<1>(s, group);
          Weights(s, group, s.scores);
        } else {
          Scores<2>(s, group);
          Weights(s, group, s.scores);
          Weights(s, group + 1, s.scores + kTileBlock * kTileSide);
        }
      }
      for (int64_t span = 0; span < s.spans; ++span) AddValues(s, span);
    }
    for (int64_t row = 0; row < t.rows; ++row)
      StoreRow(s, row / kTileSide, row % kTileSide, split.out, row);
  }
}

}  // namespace
}  // namespace latte::cpu
