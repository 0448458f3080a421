// clang-format off
// mha, bf16 × bf16 → f32 on AMX: 2 × 2 tiles of 16 × 16 sums, 32 terms per step, tdpbf16ps; up to
// 512 queries of one head per task, two groups of 16 at a time; AMX_BF16.
//
//   scores         S[16 queries × 16 keys]    += Q[16 × 32] · Kᵀ[32 × 16]  Kᵀ as bf16 pairs
//   probabilities  P[16 queries × 32 keys]    bf16, stored as an A operand
//   values         O[16 queries × 16 columns] += P[16 × 32] · V[32 × 16]   V as bf16 pairs
//
// Rounding   As in mha_bf16-inl.h. The instruction flushes subnormals to zero.
// Packing    Keys and values, once per block of 256 keys, for all queries of the task.
// Overlap    The softmax of a pair of groups runs between the tile products of its neighbours:
//            values of the pair before and scores of the pair after it.
// Epilogue   s·scale is in units of log2. O and sums are rescaled only if a maximum rises by more
//            than kSlack; until then probabilities may reach 2^kSlack.
// Order      Keys in index order, blocks of 256 anchored at position 0, steps of 32 and pairs from
//            the first key of the block. A masked key has probability 0; if its value is not
//            finite, its rows are multiplied one by one without it. Zeros of o are +0.
// Limits     N+R ≤ 512, V ≤ 512; scratch 2.2 MiB, resident as far as used.
// clang-format on
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/amx_tile-inl.h"
#include "src/kernels/cpu/common/bf16_pair-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/mha/mha_amx_softmax-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// row = [first | second], zeros behind it up to a whole step.
inline void JoinSteps(const float* first, int64_t first_width, const float* second,
                      int64_t second_width, float* row) {
  WidenRow<Amx>(first, first_width, row);
  WidenRow<Amx>(second, second_width, row + first_width);
  for (int64_t i = first_width + second_width; i % kStep != 0; ++i) row[i] = 0.0f;
}

inline Amx::Pairs RoundStep(const float* x) {
  return Amx::RoundPairs(Amx::Load(x), Amx::Load(x + Amx::kLanes));
}

inline void PackQueries(const MhaTask& t, AmxMhaScratch& s) {
  for (int64_t i = 0; i < s.pairs * kGroupPairRows; ++i) {
    float* const row = s.joined;
    if (i < t.rows)
      JoinSteps(t.q_nope + i * t.q_nope_stride, t.n, t.q_rope + i * t.q_rope_stride, t.r, row);
    for (int64_t step = 0; step < s.steps; ++step)
      Amx::StorePairs(
          s.Q(i / kTileSide, step) + i % kTileSide * kStep,
          i < t.rows ? RoundStep(row + step * kStep) : Amx::RoundPairs(Amx::Zero(), Amx::Zero()));
  }
}

// Packs 16 rows, `stride` apart, of whole steps: 32 columns of the 16 rows become one tile.
inline void PackKeySteps(const float* rows, int64_t stride, int64_t width, BF16* to) {
  for (int64_t at = 0; at < width; at += kStep, to += kTilePairs) {
    Amx::Words words[kTileSide];
    for (int64_t i = 0; i < kTileSide; ++i)
      words[i] = Amx::WordsOf(RoundStep(rows + i * stride + at));
    Amx::Transpose(words);
    for (int64_t i = 0; i < kTileSide; ++i) Amx::StoreWords(to + i * kStep, words[i]);
  }
}

// Packs the keys of the block; zeros behind the last key.
inline void PackKeys(const MhaTask& t, int64_t begin, AmxMhaScratch& s) {
  const bool whole_steps = t.n % kStep == 0 && t.r % kStep == 0;
  for (int64_t j = 0; j < s.count; j += kTileSide) {
    const float* const nope = t.k_nope + (begin + j) * t.k_nope_stride;
    const float* const rope = t.k_rope + (begin + j) * t.k_rope_stride;
    BF16* const to = s.K(j / kTileSide, 0);
    if (whole_steps && j + kTileSide <= s.count) {
      PackKeySteps(nope, t.k_nope_stride, t.n, to);
      PackKeySteps(rope, t.k_rope_stride, t.r, to + t.n * kTileSide);
      continue;
    }
    const int64_t stride = s.steps * kStep;
    for (int64_t i = 0; i < kTileSide; ++i) {
      float* const row = s.joined + i * stride;
      if (j + i < s.count)
        JoinSteps(nope + i * t.k_nope_stride, t.n, rope + i * t.k_rope_stride, t.r, row);
      else
        for (int64_t c = 0; c < stride; ++c) row[c] = 0.0f;
    }
    PackKeySteps(s.joined, stride, stride, to);
  }
}

// Packs the values of the block, two keys interleaved; zeros behind the last key up to a whole
// step.
inline void PackValues(const MhaTask& t, int64_t begin, AmxMhaScratch& s) {
  for (int64_t step = 0; step * kStep < s.count; ++step) {
    bool finite = true;
    for (int64_t i = 0; i < kTileSide; ++i) {
      const int64_t key = step * kStep + 2 * i;
      const float* const v = t.v + (begin + key) * t.v_stride;
      for (int64_t column = 0; column < t.v_width; column += kTileSide) {
        const int64_t rest = t.v_width - column;
        const Amx::Vec even = key < s.count ? LoadNext<Amx>(v + column, rest) : Amx::Zero();
        const Amx::Vec odd =
            key + 1 < s.count ? LoadNext<Amx>(v + t.v_stride + column, rest) : Amx::Zero();
        const Amx::Pairs pairs = Amx::RoundPairs(even, odd);
        finite = finite && Amx::AllFinite(pairs);
        Amx::StorePairs(s.V(column / kTileSide, step) + i * kStep, Amx::Interleave(pairs));
      }
    }
    s.finite[step] = finite;
  }
}

// Scores of kM groups × the packed keys that some row of the pair sees.
template <int64_t kM, class Overlap>
inline void AddScores(AmxMhaScratch& s, int64_t pair, Overlap& overlap) {
  const int64_t group = 2 * pair;
  float* const scores = s.scores[pair % 2];
  for (int64_t tile = 0; tile < 2 * s.StepsOf(pair); tile += 2) {
    ZeroSums<kM, 2>();
    for (int64_t step = 0; step < s.steps; ++step) {
      AddStep<kM, 2>(
          [&](int64_t i) {
            return TileAt{s.Q(group + i, step), kTileRowBytes};
          },
          [&](int64_t j) {
            return TileAt{s.K(tile + j, step), kTileRowBytes};
          });
      overlap();
      PrefetchNext(s.ahead);
    }
    ForEachIndex<kM * 2>([&](auto index) {
      constexpr int64_t kRow = decltype(index)::value / 2;
      constexpr int64_t kColumn = decltype(index)::value % 2;
      Amx::StoreTile<kRow * 2 + kColumn>(
          scores + kRow * kTileSide * kScoreStride + (tile + kColumn) * kTileSide,
          kScoreStride * static_cast<int64_t>(sizeof(float)));
    });
  }
}

// o += P·V in kN tiles of columns from `column` on. If `last` is not null, it replaces the last
// step of values.
template <int64_t kM, int64_t kN, class Overlap>
inline void AddColumns(AmxMhaScratch& s, int64_t group, int64_t column, int64_t steps,
                       const BF16* last, Overlap& overlap) {
  const auto sums = [&](int64_t i, int64_t j) { return s.O(group + i, column + j); };
  LoadSums<kM, kN>(sums);
  for (int64_t step = 0; step < steps; ++step) {
    const bool other = last != nullptr && step == steps - 1;
    AddStep<kM, kN>(
        [&](int64_t i) {
          return TileAt{s.P(group + i, step), kTileRowBytes};
        },
        [&](int64_t j) {
          return TileAt{other ? last + j * kTilePairs : s.V(column + j, step), kTileRowBytes};
        });
    overlap();
    PrefetchNext(s.ahead);
  }
  StoreSums<kM, kN>(sums);
}

// Whether a probability of 0 is enough to mask keys: false if the value of a masked key is not
// finite.
inline bool MaskedVanish(const AmxMhaScratch& s, int64_t pair) {
  for (int64_t step = s.Visible(pair * kGroupPairRows) / kStep; step < s.StepsOf(pair); ++step)
    if (!s.finite[step] && s.Visible(pair * kGroupPairRows) < Min(s.count, (step + 1) * kStep))
      return false;
  return true;
}

// Copies a step of values, in two tiles of columns, without the keys from `count` on.
inline void MaskValues(AmxMhaScratch& s, int64_t column, int64_t step, int64_t count) {
  for (int64_t j = 0; j < 2 && column + j < s.column_tiles; ++j)
    for (int64_t i = 0; i < kTileSide; ++i) {
      const BF16* const from = s.V(column + j, step) + i * kStep;
      Amx::Pairs pairs = Amx::LoadPairsPartial(from, 2 * i < count ? kStep : 0);
      if (2 * i + 1 == count) pairs = Amx::FirstOfPairs(pairs);
      Amx::StorePairs(s.masked + j * kTilePairs + i * kStep, pairs);
    }
}

// Adds values to a group row by row: for each row it computes all 16 rows and keeps that one.
template <int64_t kN>
inline void AddColumnsByRow(AmxMhaScratch& s, int64_t group, int64_t column) {
  alignas(64) float before[kN * kTileSums];
  alignas(64) float after[kN * kTileSums];
  float* const o = s.O(group, column);  // tiles of columns are adjacent
  __builtin_memcpy(before, o, sizeof(before));
  __builtin_memcpy(after, o, sizeof(after));
  NoOverlap no_overlap;
  for (int64_t row = 0; row < kTileSide; ++row) {
    const int64_t visible = s.Visible(group * kTileSide + row);
    if (visible == 0) continue;
    const int64_t steps = (visible + kStep - 1) / kStep;
    MaskValues(s, column, steps - 1, visible - (steps - 1) * kStep);
    __builtin_memcpy(o, before, sizeof(before));
    AddColumns<1, kN>(s, group, column, steps, s.masked, no_overlap);
    for (int64_t j = 0; j < kN; ++j) {
      const int64_t at = j * kTileSums + row * kTileSide;
      Amx::Store(after + at, Amx::Load(o + at));
    }
  }
  __builtin_memcpy(o, after, sizeof(after));
}

template <int64_t kM, class Overlap>
inline void AddPairValues(AmxMhaScratch& s, int64_t pair, Overlap& overlap) {
  const int64_t group = 2 * pair;
  const bool vanish = MaskedVanish(s, pair);
  const auto add = [&](int64_t column, auto tiles) {
    constexpr int64_t kN = decltype(tiles)::value;
    if (vanish) return AddColumns<kM, kN>(s, group, column, s.StepsOf(pair), nullptr, overlap);
    for (int64_t i = 0; i < kM; ++i) AddColumnsByRow<kN>(s, group + i, column);
  };
  int64_t column = 0;
  for (; column + 2 <= s.column_tiles; column += 2) add(column, Int<2>{});
  if (column < s.column_tiles) add(column, Int<1>{});
}

template <class Overlap>
inline void ScorePair(AmxMhaScratch& s, int64_t pair, Overlap& overlap) {
  if (s.GroupsOf(pair) == 2) return AddScores<2>(s, pair, overlap);
  AddScores<1>(s, pair, overlap);
}

template <class Overlap>
inline void AddPair(AmxMhaScratch& s, int64_t pair, Overlap& overlap) {
  if (s.GroupsOf(pair) == 2) return AddPairValues<2>(s, pair, overlap);
  AddPairValues<1>(s, pair, overlap);
}

// The number of tile steps of AddPair and of ScorePair.
inline int64_t ValueSteps(const AmxMhaScratch& s, int64_t pair) {
  return s.StepsOf(pair) * ((s.column_tiles + 1) / 2);
}
inline int64_t ScoreSteps(const AmxMhaScratch& s, int64_t pair) {
  return s.StepsOf(pair) * s.steps;
}

// Spreads the prefetch of `count` keys from `begin` over the tile steps of this block.
inline void StartPrefetch(const MhaTask& t, int64_t begin, int64_t count, AmxMhaScratch& s) {
  const auto rows = [&](const float* data, int64_t stride, int64_t width) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(float));
    const char* const first = reinterpret_cast<const char*>(data + begin * stride);
    return BurstPrefetch{first, stride * kSize, width * kSize, count};
  };
  s.ahead[0] = rows(t.k_nope, t.k_nope_stride, t.n);
  s.ahead[1] = rows(t.k_rope, t.k_rope_stride, t.r);
  s.ahead[2] = rows(t.v, t.v_stride, t.v_width);
  int64_t steps = 0;
  for (int64_t pair = 0; pair < s.pairs; ++pair) steps += ValueSteps(s, pair) + ScoreSteps(s, pair);
  Spread(s.ahead, steps);
}

// Attends with all rows to the packed block.
inline void AttendBlock(AmxMhaScratch& s) {
  NoOverlap no_overlap;
  int64_t first = 0;  // later rows see more
  while (s.StepsOf(first) == 0) ++first;
  ScorePair(s, first, no_overlap);
  for (int64_t pair = first; pair < s.pairs; ++pair) {
    const bool before = pair > first;
    const bool behind = pair + 1 < s.pairs;
    OverlappedSoftmax softmax(
        s, pair, (before ? ValueSteps(s, pair - 1) : 0) + (behind ? ScoreSteps(s, pair + 1) : 0));
    if (before) AddPair(s, pair - 1, softmax);
    if (behind) ScorePair(s, pair + 1, softmax);
    softmax.Finish();
  }
  AddPair(s, s.pairs - 1, no_overlap);
}

// Normalises and writes row i of the output.
inline void StoreRow(const MhaTask& t, AmxMhaScratch& s, int64_t i) {
  const float sum = Amx::Sum(Amx::Load(s.sum + i * kTileSide));
  const Amx::Vec by = Amx::Set1(sum == 0.0f ? 0.0f : 1.0f / sum);
  const float* from = s.O(i / kTileSide, 0) + i % kTileSide * kTileSide;
  float* const o = t.o + i * t.o_stride;
  // Adding zero turns −0 into +0.
  for (int64_t column = 0; column < t.v_width; column += kTileSide, from += kTileSums)
    StoreNext<Amx>(o + column, Amx::Fma(Amx::Load(from), by, Amx::Zero()), t.v_width - column);
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  t.lse[i * t.lse_stride] = sum == 0.0f
                                ? -__builtin_inff()
                                : static_cast<float>(static_cast<double>(s.max[i]) * kLn2 +
                                                     __builtin_log(static_cast<double>(sum)));
}

inline void StartTask(const MhaTask& t, AmxMhaScratch& s) {
  s.rows = t.rows;
  s.pairs = (t.rows + kGroupPairRows - 1) / kGroupPairRows;
  s.steps = (t.n + t.r + kStep - 1) / kStep;
  s.column_tiles = (t.v_width + kTileSide - 1) / kTileSide;
  s.scale = t.scale * kLog2E;
  PackQueries(t, s);
  for (int64_t i = 0; i < s.pairs * kGroupPairRows; ++i) {
    s.max[i] = -__builtin_inff();
    Amx::Store(s.sum + i * kTileSide, Amx::Zero());
  }
  for (int64_t i = 0; i < s.pairs * kGroupPairRows * s.column_tiles; ++i)
    Amx::Store(s.o + i * kTileSide, Amx::Zero());
}

// Requires: the step's arithmetic is bf16.
inline void MhaAmxBf16(const MhaTask& t) {
  auto& s = ScratchAs<AmxMhaScratch>(t.scratch);
  const TileScope scope{TileShapes{}};
  StartTask(t, s);
  // Keys that the last row sees; earlier rows see fewer.
  const int64_t end = Min(t.keys, t.q_begin + t.rows - t.key_begin);
  for (int64_t begin = 0; begin < end; begin += s.count) {
    s.count = Min(kMhaKeys - (t.key_begin + begin) % kMhaKeys, end - begin);
    s.seen = t.q_begin + 1 - (t.key_begin + begin);
    PackKeys(t, begin, s);
    PackValues(t, begin, s);
    StartPrefetch(t, begin + s.count, Min(kMhaKeys, end - begin - s.count), s);
    AttendBlock(s);
  }
  for (int64_t i = 0; i < t.rows; ++i) StoreRow(t, s, i);
}

}  // namespace
}  // namespace latte::cpu
