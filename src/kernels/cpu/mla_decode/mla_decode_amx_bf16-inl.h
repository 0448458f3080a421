// clang-format off
// mla_decode, bf16 × bf16 → f32 on AMX: 2 × 2 tiles of 16 × 16 sums, 32 terms per step, tdpbf16ps;
// up to 128 (token, head) rows per task in groups of 16; AMX_BF16.
//
//   scores  Sᵀ[16 keys × 16 rows]   += K[16 keys × 32] · Qᵀ[32 × 16 rows]  A: keys in place
//   values  O[16 rows × 16 columns] += P[16 rows × 32 keys] · V[32 × 16]   B: 2 keys interleaved
//
// Rounding   Queries, probabilities and quantised cached rows to bf16. The instruction flushes
//            subnormals to zero and rounds to nearest even.
// Packing    Queries, once per task, transposed in bf16 pairs. Quantised rows, once per block.
//            Values, once per block and 32 columns, two keys interleaved. Lanes of scores are rows,
//            so maxima and sums over keys need no reduction; Sᵀ is transposed on its way to bf16.
// Blocking   Blocks of 256 keys. O stays in f32 memory and is rescaled only if a maximum has risen.
// Order      Keys in index order, blocks, steps of 32 and pairs anchored at the start of the task.
//            Keys that a row does not see are never multiplied and cannot change its bytes.
// Limits     C+R ≤ 1152; bf16 or quantised caches; pages of a multiple of 16 tokens; scratch 1.6
//            MiB, resident as far as used.
// clang-format on
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/amx_tile-inl.h"
#include "src/kernels/cpu/common/bf16_pair-inl.h"
#include "src/kernels/cpu/common/cached_row-inl.h"
#include "src/kernels/cpu/common/merge_splits-inl.h"
#include "src/kernels/cpu/common/prefetch_pages-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/mla_decode/mla_decode_f32-inl.h"
#include "src/kernels/cpu/mla_decode/rounded_row-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kGroups = kMaxLargeDecodeRows / kTileSide;
constexpr int64_t kAmxBlock = 256;  // keys per block
constexpr int64_t kMaxSteps = kMaxDecodeWidth / kStep;
constexpr int64_t kBlockSteps = kAmxBlock / kStep;
constexpr int64_t kBlockTiles = kAmxBlock / kTileSide;

// State of a group of 16 rows.
struct RowGroup {
  alignas(64) float max[kTileSide];
  alignas(64) float sum[kTileSide];
  alignas(64) float factor[kTileSide];     // of the current block
  alignas(64) int32_t visible[kTileSide];  // keys of the current block that the row sees
  int64_t least, most;                     // least and largest of visible
  uint32_t rescaled;                       // rows whose factor is not 1
};

struct AmxDecode {
  RowGroup groups[kGroups];
  alignas(64) BF16 q[kGroups * kMaxSteps * kTilePairs];        // [group][step][pair][row]
  alignas(64) float o[kGroups * kMaxSteps * 2 * kTileSums];    // [group][32 columns][low, high]
  alignas(64) float scores[2 * kAmxBlock * kTileSide];         // [group][key][row]
  alignas(64) BF16 p[kGroups * kBlockSteps * kTilePairs];      // [group][step][row][key]
  alignas(64) BF16 interleaved[kBlockSteps * 2 * kTilePairs];  // [step][low, high][pair][column]
  // A step of `interleaved` without the keys that a row does not see.
  alignas(64) BF16 masked[2 * kTilePairs];
  alignas(64) BF16 tail[kAmxBlock * kStep];  // last columns of keys, if fewer than a step
  alignas(64) BF16 rounded[kAmxBlock * kMaxDecodeWidth + kStep];  // rows of a quantised cache
  const BF16* keys[kBlockTiles];                                  // every 16th row of the block
  PagePrefetch prefetch;
  int64_t width, row_bytes;    // C+R
  int64_t steps;               // whole steps of C+R
  int64_t columns, spans;      // C, and the number of spans of 32 columns
  int64_t group_count, count;  // keys of the block
  float scale;

  BF16* Q(int64_t group, int64_t step) { return q + (group * kMaxSteps + step) * kTilePairs; }
  float* O(int64_t group, int64_t span) { return o + (group * kMaxSteps + span) * 2 * kTileSums; }
  BF16* P(int64_t group, int64_t step) { return p + (group * kBlockSteps + step) * kTilePairs; }
};

// Rounds the queries of a group and packs them as B: 32-bit element h of tile row g is pair g of
// row h.
inline void PackQueries(const DecodeTask& t, int64_t group, AmxDecode& s) {
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

// Finds every 16th cached row of the block at `begin`. Rows that are not plain bf16 are rounded,
// once for all queries of the task.
inline void FindKeys(const DecodeTask& t, int64_t begin, int64_t end, AmxDecode& s) {
  s.count = Min(kAmxBlock, end - begin);
  for (int64_t key = 0; key < s.count; key += kTileSide) {
    const char* const rows = CachedRowOf(t, begin + key);
    s.keys[key / kTileSide] = reinterpret_cast<const BF16*>(rows);
    if (t.cache.kind == CacheFormat::kPlain) continue;
    BF16* const to = s.rounded + key * s.width;
    RoundCachedRows<Amx>(t.cache, rows, Min(kTileSide, s.count - key), to, s.width);
    s.keys[key / kTileSide] = to;
  }
}

// Copies the last columns of keys, if fewer than a step, padded with zeros.
inline void CopyTail(AmxDecode& s) {
  const int64_t at = s.steps * kStep;
  if (at == s.width) return;
  for (int64_t key = 0; key < s.count; ++key) {
    const BF16* const row = s.keys[key / kTileSide] + key % kTileSide * s.width;
    Amx::StorePairs(s.tail + key * kStep, Amx::LoadPairsPartial(row + at, s.width - at));
  }
}

// Spreads the prefetch of the block at `begin` over the tile steps of this one.
inline void StartPrefetch(const DecodeTask& t, int64_t begin, AmxDecode& s) {
  const int64_t pairs = (s.group_count + 1) / 2;
  const int64_t score_steps = kAmxBlock / (s.group_count == 1 ? 64 : 32) * pairs * s.steps;
  const int64_t value_steps = s.spans * pairs * kBlockSteps;
  const int64_t interleaves = s.spans * kAmxBlock / 8;
  s.prefetch.Start(t, begin, kAmxBlock, kTileSide, score_steps + value_steps + interleaves);
}

// Scores of kM × 16 keys from tile `tile` on × kN groups. Rows behind the last key hold whatever
// their page holds; Probabilities leaves them out.
template <int64_t kM, int64_t kN>
inline void ScoreBlock(AmxDecode& s, int64_t tile, int64_t group) {
  ZeroSums<kM, kN>();
  const auto q = [&](int64_t step) {
    return [&s, group, step](int64_t j) { return TileAt{s.Q(group + j, step), kTileRowBytes}; };
  };
  for (int64_t step = 0; step < s.steps; ++step) {
    const auto keys = [&](int64_t i) {
      return TileAt{s.keys[tile + i] + step * kStep, s.row_bytes};
    };
    AddStep<kM, kN>(keys, q(step));
    s.prefetch.PrefetchNext();
  }
  if (s.steps * kStep < s.width) {
    const auto tails = [&](int64_t i) {
      return TileAt{s.tail + (tile + i) * kTilePairs, kTileRowBytes};
    };
    AddStep<kM, kN>(tails, q(s.steps));
  }
  StoreSums<kM, kN>([&](int64_t i, int64_t j) {
    return s.scores + (j * kAmxBlock + (tile + i) * kTileSide) * kTileSide;
  });
}

template <int64_t kN>
void Scores(AmxDecode& s, int64_t group) {
  ForEachRun<4 / kN>((s.count + kTileSide - 1) / kTileSide, [&](int64_t tile, auto tiles) {
    ScoreBlock<decltype(tiles)::value, kN>(s, tile, group);
  });
}

// Scales scores [count, 16], masks keys that a row does not see with −inf, and returns the new
// maxima.
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

// Scores to unnormalised probabilities, stored as A operands in s.P(group). Updates max, sum and
// factor.
inline void Probabilities(AmxDecode& s, int64_t group, float* scores) {
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
  const auto probability = [&](int64_t key) {
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
      const Amx::Vec even = probability(key);
      words[i] = Amx::PairWords(even, probability(key + 1));
    }
    Amx::Transpose(words);
    for (int64_t i = 0; i < kTileSide; ++i) Amx::StoreWords(s.P(group, step) + i * kStep, words[i]);
  }
  Amx::Store(g.sum, Amx::Fma(Amx::Load(g.sum), factor, sum));
}

// Interleaves the values of keys [begin, begin + 32) in 32 columns, two keys together; zeros behind
// key `end`.
inline void InterleaveStep(AmxDecode& s, int64_t begin, int64_t end, int64_t column, BF16* to) {
  const auto load = [&](int64_t key) {
    if (key >= end) return Amx::LoadPairsPartial(s.tail, 0);
    return LoadRowPairs<Amx>(s.keys[key / kTileSide] + key % kTileSide * s.width, column,
                             s.columns);
  };
  for (int64_t i = 0; i < kTileSide; ++i) {
    if (i % 4 == 0) s.prefetch.PrefetchNext();
    const Amx::Pairs even = load(begin + 2 * i);
    const Amx::Pairs odd = load(begin + 2 * i + 1);
    Amx::StorePairs(to + i * kStep, Amx::InterleaveLowIn128(even, odd));
    Amx::StorePairs(to + kTilePairs + i * kStep, Amx::InterleaveHighIn128(even, odd));
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

// Adds the values of `keys` keys in 32 columns to the sums of kM groups. `last` replaces the last
// step if it is partial.
template <int64_t kM>
inline void AddValueBlock(AmxDecode& s, int64_t group, int64_t span, int64_t keys,
                          const BF16* last) {
  const auto sums = [&](int64_t i, int64_t j) { return s.O(group + i, span) + j * kTileSums; };
  LoadSums<kM, 2>(sums);
  for (int64_t step = 0; step * kStep < keys; ++step) {
    const bool whole = (step + 1) * kStep <= keys;
    s.prefetch.PrefetchNext();
    const BF16* const v = whole ? s.interleaved + step * 2 * kTilePairs : last;
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

// The same for a group whose rows see different numbers of keys: for every distinct number of
// visible keys it computes all 16 rows and keeps the rows that see exactly so many. Otherwise a
// probability of zero could meet a value that is not finite.
inline void AddMaskedValues(AmxDecode& s, int64_t group, int64_t span) {
  RowGroup& g = s.groups[group];
  float* const o = s.O(group, span);
  alignas(64) float before[2 * kTileSums];
  alignas(64) float after[2 * kTileSums];
  __builtin_memcpy(before, o, sizeof(before));
  __builtin_memcpy(after, o, sizeof(after));
  int64_t done = 0;
  while (done < g.most) {
    int64_t keys = g.most;  // the least number of visible keys above `done`
    for (const int32_t seen : g.visible)
      if (seen > done) keys = Min(keys, seen);
    InterleaveStep(s, keys / kStep * kStep, keys, span * kStep, s.masked);
    __builtin_memcpy(o, before, sizeof(before));
    AddValueBlock<1>(s, group, span, keys, s.masked);
    for (int64_t i = 0; i < 2 * kTileSide; ++i)
      if (g.visible[i % kTileSide] == keys)
        Amx::Store(after + i * kTileSide, Amx::Load(o + i * kTileSide));
    done = keys;
  }
  __builtin_memcpy(o, after, sizeof(after));
}

// o = factor·o + P·V in 32 columns.
inline void AddValues(AmxDecode& s, int64_t span) {
  for (int64_t begin = 0; begin < s.count; begin += kStep)
    InterleaveStep(s, begin, s.count, span * kStep, s.interleaved + begin / kStep * 2 * kTilePairs);
  const BF16* const last = s.interleaved + s.count / kStep * 2 * kTilePairs;
  for (int64_t group = 0; group < s.group_count; ++group) {
    RescaleSums(s.groups[group], s.O(group, span));
    if (s.groups[group].least < s.count) {
      AddMaskedValues(s, group, span);
    } else if (group + 1 < s.group_count && s.groups[group + 1].least >= s.count) {
      RescaleSums(s.groups[group + 1], s.O(group + 1, span));
      AddValueBlock<2>(s, group, span, s.count, last);
      ++group;
    } else {
      AddValueBlock<1>(s, group, span, s.count, last);
    }
  }
}

inline void StartGroups(AmxDecode& s) {
  for (int64_t group = 0; group < s.group_count; ++group) {
    RowGroup& g = s.groups[group];
    Amx::Store(g.max, Amx::Set1(-__builtin_inff()));
    Amx::Store(g.sum, Amx::Zero());
    float* const o = s.O(group, 0);
    for (int64_t i = 0; i < s.spans * 2 * kTileSums; i += kTileSide) Amx::Store(o + i, Amx::Zero());
  }
}

// The number of keys of the block at `begin` that each row sees. Rows that fill up a group see as
// many as the last row.
inline void FindVisible(const DecodeTask& t, int64_t begin, AmxDecode& s) {
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

// Writes row i of a group with its columns in order.
inline void StoreRow(AmxDecode& s, int64_t group, int64_t i, const SplitResult& out, int64_t row) {
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
inline void MlaDecodeAmxBf16(const DecodeTask& t) {
  auto& s = ScratchAs<AmxDecode>(t.scratch);
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
    const DecodeSplit split = BeginSplit(t, part);
    StartGroups(s);
    for (int64_t begin = split.begin; begin < split.end; begin += kAmxBlock) {
      FindKeys(t, begin, split.end, s);
      StartPrefetch(t, begin + kAmxBlock, s);
      FindVisible(t, begin, s);
      CopyTail(s);
      for (int64_t group = 0; group < s.group_count; group += 2) {
        if (group + 1 == s.group_count) {
          Scores<1>(s, group);
          Probabilities(s, group, s.scores);
        } else {
          Scores<2>(s, group);
          Probabilities(s, group, s.scores);
          Probabilities(s, group + 1, s.scores + kAmxBlock * kTileSide);
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
