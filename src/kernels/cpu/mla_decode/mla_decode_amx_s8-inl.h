// clang-format off
// mla_decode, u8 × s8 → s32 on AMX over int8 caches: 2 × 2 tiles of 16 × 16 sums, 64 terms per
// step, tdpbusd; up to 128 (token, head) rows per task; AMX_INT8. Softmax as in
// mla_decode_s8_vnni-inl.h.
//
//   scores  Sᵀ[16 keys × 16 rows]   += K[16 keys × 64] · Qᵀ[64 × 16 rows]  A: keys in place (u8)
//   values  O[16 rows × 16 columns] += P[16 rows × 64 keys] · V[64 × 16]   B: 4 keys interleaved
//
// Rounding   Tiles multiply bytes only. The rope part of a query is rounded to 16 bits and
//            multiplied as high × high + high × low + low × high; low × low is left out.
// Packing    Queries, once per task, transposed in groups of 4 dims; probabilities, once per block.
// Blocking   Blocks of 256 keys; scores of 2 × 16 keys × 2 groups of 16 rows at a time, in three
//            sums: latent, rope high × high, rope high × low.
// Order      As in mla_decode_s8_vnni-inl.h.
// Limits     C and R multiples of 64; pages of a multiple of 16 tokens; scratch 2 MiB.
// clang-format on
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/amx_int8-inl.h"
#include "src/kernels/cpu/common/amx_tile-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/mla_decode/mla_decode_s8_vnni-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

static_assert(kS8Lanes == kTileSide && kS8Segment == kTileSide);

constexpr int64_t kScoreSegments = 2;  // segments of keys per score block

// Sums of up to 2 × 2 tiles.
struct S8TileSums {
  alignas(64) int32_t latent[4][kTileSums];
  alignas(64) int32_t high[4][kTileSums];
  alignas(64) int32_t cross[4][kTileSums];
};

// Transposes 64 bytes of 16 rows, `stride` apart, to [16 groups][row][4 bytes].
inline void TransposeTile(const int8_t* rows, int64_t stride, int8_t* to) {
  Amx::Words words[kTileSide];
  for (int64_t i = 0; i < kTileSide; ++i) words[i] = Amx::LoadWords(rows + i * stride);
  Amx::Transpose(words);
  for (int64_t i = 0; i < kTileSide; ++i) Amx::StoreWords(to + i * kByteStep, words[i]);
}

// Quantises x to 16-bit integers: high bytes, rounded to nearest, and low bytes.
inline float QuantiseRopeBytes(const float* x, int64_t count, int8_t* high, int8_t* low) {
  using V = Avx512Vnni;
  constexpr float kTop = 127.0f * 256 + 127;
  const float top = MaxMagnitudeOf<V>(x, count);
  const V::Vec inverse = V::Set1(top > 0x1p-100f ? kTop / top : 0.0f);
  for (int64_t i = 0; i < count; i += V::kLanes) {
    const V::Ints whole = V::ToInts(V::Mul(V::Load(x + i), inverse));
    const V::Ints upper = V::ShiftRight<8>(V::AddInts(whole, V::SetInt(128)));
    V::StoreLowBytes(high + i, upper);
    V::StoreLowBytes(low + i, whole);
  }
  return top / kTop;
}

// The rope parts of 16 queries as bytes.
struct RopeBytes {
  alignas(64) int8_t high[kS8Lanes][kMaxS8Rope];
  alignas(64) int8_t low[kS8Lanes][kMaxS8Rope];
};

inline void QuantiseRopes(const DecodeTask& t, int64_t group, S8Scratch& s, RopeBytes& q) {
  using V = Avx512Vnni;
  S8Group& g = s.groups[group];
  for (int64_t i = 0; i < kS8Lanes; ++i) {
    const float* const x = QueryOf(t, group, i).q_rope;
    g.rope_scale[i] = t.scale * 256.0f * QuantiseRopeBytes(x, s.r, q.high[i], q.low[i]);
    g.rope_compensation[i] =
        257 * CompensationOf<V>(q.high[i], s.r) + CompensationOf<V>(q.low[i], s.r);
  }
}

inline void PackAmxQueries(const DecodeTask& t, int64_t group, S8Scratch& s) {
  alignas(64) int8_t latents[kS8Lanes][kMaxS8Columns];
  RopeBytes ropes;
  QuantiseLatents<Avx512Vnni>(t, group, s, latents);
  QuantiseRopes(t, group, s, ropes);
  int8_t* to = s.Q(group);
  for (int64_t at = 0; at < s.c; at += kByteStep, to += kByteTile)
    TransposeTile(latents[0] + at, kMaxS8Columns, to);
  for (int64_t at = 0; at < s.r; at += kByteStep, to += kByteTile)
    TransposeTile(ropes.high[0] + at, kMaxS8Rope, to);
  for (int64_t at = 0; at < s.r; at += kByteStep, to += kByteTile)
    TransposeTile(ropes.low[0] + at, kMaxS8Rope, to);
}

// Sums of a tile to scores, as S8ScoreTile computes them.
inline void ScaleS8Sums(S8Scratch& s, int64_t segment, int64_t group, const S8TileSums& sums,
                        int64_t tile) {
  using V = Avx512Vnni;
  const S8Group& g = s.groups[group];
  float* to = s.Scores(group) + segment * kTileSums;
  for (int64_t i = 0; i < kTileSums; i += kTileSide, to += kTileSide) {
    const int64_t key = segment * kS8Segment + i / kTileSide;
    const V::Ints latent =
        V::AddInts(V::LoadBytes(sums.latent[tile] + i), V::LoadBytes(g.latent_compensation));
    const V::Vec scale = V::Mul(V::Set1(s.latent_scale[key]), V::Load(g.latent_scale));
    V::Vec score = V::Mul(V::ToFloat(latent), scale);
    if (s.r > 0) {
      const V::Ints high = V::ShiftLeft<8>(V::LoadBytes(sums.high[tile] + i));
      const V::Ints both = V::AddInts(high, V::LoadBytes(sums.cross[tile] + i));
      const V::Ints rope = V::AddInts(both, V::LoadBytes(g.rope_compensation));
      const V::Vec by = V::Mul(V::Set1(s.rope_scale[key]), V::Load(g.rope_scale));
      score = V::Fma(V::ToFloat(rope), by, score);
    }
    V::Store(to, score);
  }
}

// Scores of kM segments of keys × kN groups.
template <int64_t kM, int64_t kN>
void S8ScoreBlock(S8Scratch& s, int64_t segment, int64_t group) {
  S8TileSums sums;
  const int64_t c_steps = s.c / kByteStep;
  const int64_t r_steps = s.r / kByteStep;
  // Multiplies bytes of keys from `at` on by steps of queries from `first` on.
  const auto add = [&](int64_t at, int64_t first, int64_t steps) {
    for (int64_t n = 0; n < steps; ++n) {
      s.prefetch.PrefetchNext();
      AddStep<kM, kN, DotUnsignedBytes>(
          [&](int64_t i) {
            return TileAt{s.keys[segment + i] + at + n * kByteStep, s.row_bytes};
          },
          [&](int64_t j) {
            return TileAt{s.Q(group + j) + (first + n) * kByteTile, kTileRowBytes};
          });
    }
  };
  const auto store = [](int32_t(&to)[4][kTileSums]) {
    StoreSums<kM, kN>([&](int64_t i, int64_t j) { return to[i * kN + j]; });
  };
  ZeroSums<kM, kN>();
  add(0, 0, c_steps);
  store(sums.latent);
  if (s.r > 0) {
    ZeroSums<kM, kN>();
    add(s.rope_at, c_steps, r_steps);
    store(sums.high);
    ZeroSums<kM, kN>();
    add(s.rope_at, c_steps + r_steps, r_steps);
    add(s.rope_at + s.r, c_steps, r_steps);
    store(sums.cross);
  }
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) ScaleS8Sums(s, segment + i, group + j, sums, i * kN + j);
}

// Scores of kN groups. With the first group it also interleaves the values of each segment
// beforehand: vector loads can wait for many cache lines at a time, and the tile loads then hit the
// L1.
template <int64_t kN>
void AmxS8Scores(S8Scratch& s, int64_t group) {
  ForEachRun<kScoreSegments>((s.count + kS8Segment - 1) / kS8Segment,
                             [&](int64_t segment, auto segments) {
                               constexpr int64_t kM = decltype(segments)::value;
                               for (int64_t i = segment; i < segment + kM && group == 0; ++i) {
                                 LoadScales(s, i * kS8Segment);
                                 InterleaveS8Values<Avx512Vnni>(s, i * kS8Segment);
                               }
                               S8ScoreBlock<kM, kN>(s, segment, group);
                             });
}

// Probabilities of a group as u8, 64 consecutive keys of a row together, zeros behind the last key.
inline void AmxS8Probabilities(S8Scratch& s, int64_t group) {
  QuantiseProbabilities<Avx512Vnni>(s, group);
  const int64_t count = RoundUp(Min(s.count, s.groups[group].most), 4);
  uint8_t* const p = s.P(group);
  for (int64_t key = 0; key < s.count; key += kByteStep) {
    Amx::Words words[kTileSide];
    for (int64_t i = 0; i < kTileSide; ++i) {
      const bool there = key + 4 * i < count;
      words[i] = there ? Amx::LoadWords(p + (key + 4 * i) * kS8Lanes) : Avx512Vnni::ZeroInts();
    }
    Amx::Transpose(words);
    for (int64_t i = 0; i < kTileSide; ++i)
      Amx::StoreWords(p + key * kS8Lanes + i * kByteStep, words[i]);
  }
}

// o = factor·o + sums in 16 columns.
inline void AddS8Sums(const S8Scratch& s, int64_t group, const int32_t* sums, float* o) {
  using V = Avx512Vnni;
  const S8Group& g = s.groups[group];
  for (int64_t i = 0; i < kTileSide; ++i, sums += kTileSide, o += s.columns) {
    const V::Vec old = s.first ? V::Zero() : V::Mul(V::Load(o), V::Set1(g.factor[i]));
    V::Store(o, V::Fma(V::ToFloat(V::LoadBytes(sums)), V::Set1(g.p_scale[i]), old));
  }
}

// Outputs of kM groups, two vectors of columns from vector `vector` of a strip.
template <int64_t kM>
void S8ValueBlock(S8Scratch& s, int64_t group, int64_t column, int64_t vector) {
  constexpr int64_t kGroupStride =
      4 * kVectorBytes;  // from one four of keys of a strip to the next
  alignas(64) int32_t sums[2 * kM][kTileSums];
  float* const o = s.o + group * kS8Lanes * s.columns + column + vector * kTileSide;
  for (int64_t i = 0; i < kM * kS8Lanes; ++i) {
    PrefetchL1(o + i * s.columns);
    PrefetchL1(o + i * s.columns + kTileSide);
  }
  ZeroSums<kM, 2>();
  for (int64_t key = 0; key < s.count; key += kByteStep) {
    s.prefetch.PrefetchNext();
    const int8_t* const v = s.Values(column) + key / 4 * kGroupStride + vector * kVectorBytes;
    AddStep<kM, 2, DotUnsignedBytes>(
        [&](int64_t i) {
          return TileAt{s.P(group + i) + key * kS8Lanes, kTileRowBytes};
        },
        [&](int64_t j) {
          return TileAt{v + j * kVectorBytes, kGroupStride};
        });
  }
  StoreSums<kM, 2>([&](int64_t i, int64_t j) { return sums[i * 2 + j]; });
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < 2; ++j)
      AddS8Sums(s, group + i, sums[i * 2 + j], o + i * kS8Lanes * s.columns + j * kTileSide);
}

// o = factor·o + P·V. A group that sees no key of the block keeps its o.
inline void AddAmxS8Values(S8Scratch& s) {
  const auto takes = [&](int64_t group) { return s.first || s.groups[group].most > 0; };
  for (int64_t column = 0; column < s.columns; column += kStripColumns)
    for (int64_t group = 0; group < s.group_count; ++group) {
      if (!takes(group)) continue;
      const bool two = group + 1 < s.group_count && takes(group + 1);
      for (int64_t vector = 0; vector < 4; vector += 2)
        if (two)
          S8ValueBlock<2>(s, group, column, vector);
        else
          S8ValueBlock<1>(s, group, column, vector);
      group += two ? 1 : 0;
    }
}

// Spreads the prefetch of the block at `begin` over the tile steps of this one.
inline void StartAmxS8Prefetch(const DecodeTask& t, int64_t begin, S8Scratch& s) {
  const int64_t pairs = (s.group_count + 1) / 2;
  const int64_t score_steps =
      kS8Block / (kScoreSegments * kS8Segment) * (s.c + 3 * s.r) / kByteStep;
  const int64_t value_steps = s.columns / 32 * (kS8Block / kByteStep);
  s.prefetch.Start(t, begin, kS8Block, kS8Segment, pairs * (score_steps + value_steps));
}

// Requires: t.cache is kI8; C and R are multiples of 64, R ≤ 512; t.page_tokens is one of 16.
inline void MlaDecodeAmxS8(const DecodeTask& t) {
  auto& s = ScratchAs<S8Scratch>(t.scratch);
  StartS8Rows(t, s);
  s.q_group = (s.c + 2 * s.r) / kByteStep * kByteTile;
  const TileScope scope{TileShapes{}};
  for (int64_t group = 0; group < s.group_count; ++group) PackAmxQueries(t, group, s);
  ForEachS8Block<Avx512Vnni>(t, s, [&](int64_t begin) {
    StartAmxS8Prefetch(t, begin + kS8Block, s);
    for (int64_t group = 0; group < s.group_count; group += 2) {
      if (group + 1 == s.group_count)
        AmxS8Scores<1>(s, group);
      else
        AmxS8Scores<2>(s, group);
      for (int64_t i = group; i < Min(group + 2, s.group_count); ++i)
        if (s.groups[i].most > 0 || s.first) AmxS8Probabilities(s, i);
    }
    AddAmxS8Values(s);
  });
}

}  // namespace
}  // namespace latte::cpu
