// mla_decode on int8 and on tiles: mla_decode_s8_vnni-inl.h with other products, whose operands lie
// otherwise. Tiles multiply bytes alone: the rope part of a query is rounded to 16 bits and
// multiplied as three products of bytes, lower × lower left out.
//
//   scores   [16 keys × 16 rows] += K[16 keys × 64] · Qᵀ[64 × 16 rows]       K in place, unsigned
//   values   [16 rows × 16 columns] += P[16 rows × 64 keys] · V[64 keys × 16]    V in fours of keys
//
// Work      queries are transposed once per task, four dims of a row in a word; weights once per
//           block. Scores of 2 × 16 keys and 2 groups are taken at once, in three sums: latents,
//           upper × upper bytes of the rope part, and upper × lower ones.
// Figures   docs/kernels/mla_decode.md.
// Limits    C and R are multiples of 64, so that no tile reads behind a row; scratch 2 MiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/amx_int8-inl.h"
#include "src/kernels/cpu/common/amx_tile-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/mla_decode/mla_decode_s8_vnni-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

static_assert(kByteLanes == kTileSide && kByteRun == kTileSide);

constexpr int64_t kScoreRuns = 2;  // runs of keys whose scores are taken at once

// Sums of up to 2 × 2 tiles.
struct ByteTileSums {
  alignas(64) int32_t latent[4][kTileSums];
  alignas(64) int32_t high[4][kTileSums];
  alignas(64) int32_t cross[4][kTileSums];
};

// 64 bytes of 16 rows, `stride` apart, to [4 bytes][row].
inline void TurnFours(const int8_t* rows, int64_t stride, int8_t* to) {
  Amx::Words words[kTileSide];
  for (int64_t i = 0; i < kTileSide; ++i) words[i] = Amx::LoadWords(rows + i * stride);
  Amx::Transpose(words);
  for (int64_t i = 0; i < kTileSide; ++i) Amx::StoreWords(to + i * kByteStep, words[i]);
}

// x as 16-bit integers: upper bytes, rounded to the nearest, and lower ones.
inline float QuantiseRopeBytes(const float* x, int64_t count, int8_t* high, int8_t* low) {
  using V = Avx512Vnni;
  constexpr float kTop = 127.0f * 256 + 127;
  const float top = TopOf<V>(x, count);
  const V::Vec inverse = V::Set1(top > 0x1p-100f ? kTop / top : 0.0f);
  for (int64_t i = 0; i < count; i += V::kLanes) {
    const V::Ints whole = V::ToInts(V::Mul(V::Load(x + i), inverse));
    const V::Ints upper = V::ShiftRight<8>(V::AddInts(whole, V::SetInt(128)));
    V::StoreLowBytes(high + i, upper);
    V::StoreLowBytes(low + i, whole);
  }
  return top / kTop;
}

// Rope parts of sixteen queries as bytes.
struct TileRopes {
  alignas(64) int8_t high[kByteLanes][kMaxByteRope];
  alignas(64) int8_t low[kByteLanes][kMaxByteRope];
};

inline void QuantiseRopes(const DecodeTask& t, int64_t group, ByteDecode& s, TileRopes& q) {
  using V = Avx512Vnni;
  ByteGroup& g = s.groups[group];
  for (int64_t i = 0; i < kByteLanes; ++i) {
    const float* const x = QueryOf(t, group, i).q_rope;
    g.rope_scale[i] = t.scale * 256.0f * QuantiseRopeBytes(x, s.r, q.high[i], q.low[i]);
    g.rope_bias[i] = 257 * BiasOf<V>(q.high[i], s.r) + BiasOf<V>(q.low[i], s.r);
  }
}

inline void PackTileQueries(const DecodeTask& t, int64_t group, ByteDecode& s) {
  alignas(64) int8_t latents[kByteLanes][kMaxPlane];
  TileRopes ropes;
  QuantiseLatents<Avx512Vnni>(t, group, s, latents);
  QuantiseRopes(t, group, s, ropes);
  int8_t* to = s.Q(group);
  for (int64_t at = 0; at < s.c; at += kByteStep, to += kByteTile)
    TurnFours(latents[0] + at, kMaxPlane, to);
  for (int64_t at = 0; at < s.r; at += kByteStep, to += kByteTile)
    TurnFours(ropes.high[0] + at, kMaxByteRope, to);
  for (int64_t at = 0; at < s.r; at += kByteStep, to += kByteTile)
    TurnFours(ropes.low[0] + at, kMaxByteRope, to);
}

// Scores of a tile's sums, as ByteScoreTile makes them.
inline void ScaleByteSums(ByteDecode& s, int64_t run, int64_t group, const ByteTileSums& sums,
                          int64_t tile) {
  using V = Avx512Vnni;
  const ByteGroup& g = s.groups[group];
  float* to = s.Scores(group) + run * kTileSums;
  for (int64_t i = 0; i < kTileSums; i += kTileSide, to += kTileSide) {
    const int64_t key = run * kByteRun + i / kTileSide;
    const V::Ints latent =
        V::AddInts(V::LoadBytes(sums.latent[tile] + i), V::LoadBytes(g.latent_bias));
    const V::Vec scale = V::Mul(V::Set1(s.latent_scale[key]), V::Load(g.latent_scale));
    V::Vec score = V::Mul(V::ToFloat(latent), scale);
    if (s.r > 0) {
      const V::Ints high = V::ShiftLeft<8>(V::LoadBytes(sums.high[tile] + i));
      const V::Ints both = V::AddInts(high, V::LoadBytes(sums.cross[tile] + i));
      const V::Ints rope = V::AddInts(both, V::LoadBytes(g.rope_bias));
      const V::Vec by = V::Mul(V::Set1(s.rope_scale[key]), V::Load(g.rope_scale));
      score = V::Fma(V::ToFloat(rope), by, score);
    }
    V::Store(to, score);
  }
}

// Scores of kM runs of keys with kN groups.
template <int64_t kM, int64_t kN>
void ByteScoreBlock(ByteDecode& s, int64_t run, int64_t group) {
  ByteTileSums sums;
  const int64_t c_steps = s.c / kByteStep;
  const int64_t r_steps = s.r / kByteStep;
  // Bytes of keys from `at` on times those of queries from step `first` on.
  const auto add = [&](int64_t at, int64_t first, int64_t steps) {
    for (int64_t n = 0; n < steps; ++n) {
      s.ahead.Ask<Amx>();
      AddStep<kM, kN, DotUnsignedBytes>(
          [&](int64_t i) {
            return TileAt{s.keys[run + i] + at + n * kByteStep, s.row_bytes};
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
    for (int64_t j = 0; j < kN; ++j) ScaleByteSums(s, run + i, group + j, sums, i * kN + j);
}

// Scores of kN groups; before those of the first the values of the block are zipped. Vectors, which
// do so, wait for many lines at a time; then tiles find their keys in the L1.
template <int64_t kN>
void TileByteScores(ByteDecode& s, int64_t group) {
  ForEachRun<kScoreRuns>((s.count + kByteRun - 1) / kByteRun, [&](int64_t run, auto runs) {
    constexpr int64_t kM = decltype(runs)::value;
    for (int64_t i = run; i < run + kM && group == 0; ++i) {
      TakeScales(s, i * kByteRun);
      ZipRun<Avx512Vnni>(s, i * kByteRun);
    }
    ByteScoreBlock<kM, kN>(s, run, group);
  });
}

// Weights of a group as bytes, 64 keys of a row side by side, zeros behind the last.
inline void TileByteWeights(ByteDecode& s, int64_t group) {
  QuantiseWeights<Avx512Vnni>(s, group);
  const int64_t count = RoundUp(Min(s.count, s.groups[group].most), 4);
  uint8_t* const p = s.P(group);
  for (int64_t key = 0; key < s.count; key += kByteStep) {
    Amx::Words words[kTileSide];
    for (int64_t i = 0; i < kTileSide; ++i) {
      const bool there = key + 4 * i < count;
      words[i] = there ? Amx::LoadWords(p + (key + 4 * i) * kByteLanes) : Avx512Vnni::ZeroInts();
    }
    Amx::Transpose(words);
    for (int64_t i = 0; i < kTileSide; ++i)
      Amx::StoreWords(p + key * kByteLanes + i * kByteStep, words[i]);
  }
}

// o = factor·o + sums in 16 columns.
inline void AddByteSums(const ByteDecode& s, int64_t group, const int32_t* sums, float* o) {
  using V = Avx512Vnni;
  const ByteGroup& g = s.groups[group];
  for (int64_t i = 0; i < kTileSide; ++i, sums += kTileSide, o += s.columns) {
    const V::Vec old = s.first ? V::Zero() : V::Mul(V::Load(o), V::Set1(g.factor[i]));
    V::Store(o, V::Fma(V::ToFloat(V::LoadBytes(sums)), V::Set1(g.p_scale[i]), old));
  }
}

// Outputs of kM groups, two vectors of columns from the `vector`-th of a strip on.
template <int64_t kM>
void ByteValueBlock(ByteDecode& s, int64_t group, int64_t column, int64_t vector) {
  constexpr int64_t kFourBytes = 4 * kFours;  // from one four of keys of a strip to the next
  alignas(64) int32_t sums[2 * kM][kTileSums];
  float* const o = s.o + group * kByteLanes * s.columns + column + vector * kTileSide;
  for (int64_t i = 0; i < kM * kByteLanes; ++i) {
    Avx512Vnni::PrefetchNear(o + i * s.columns);
    Avx512Vnni::PrefetchNear(o + i * s.columns + kTileSide);
  }
  ZeroSums<kM, 2>();
  for (int64_t key = 0; key < s.count; key += kByteStep) {
    s.ahead.Ask<Amx>();
    const int8_t* const v = s.Values(column) + key / 4 * kFourBytes + vector * kFours;
    AddStep<kM, 2, DotUnsignedBytes>(
        [&](int64_t i) {
          return TileAt{s.P(group + i) + key * kByteLanes, kTileRowBytes};
        },
        [&](int64_t j) {
          return TileAt{v + j * kFours, kFourBytes};
        });
  }
  StoreSums<kM, 2>([&](int64_t i, int64_t j) { return sums[i * 2 + j]; });
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < 2; ++j)
      AddByteSums(s, group + i, sums[i * 2 + j], o + i * kByteLanes * s.columns + j * kTileSide);
}

// o = factor·o + P·V; a group that sees nothing of the block stays as it is.
inline void AddTileByteValues(ByteDecode& s) {
  const auto takes = [&](int64_t group) { return s.first || s.groups[group].most > 0; };
  for (int64_t column = 0; column < s.columns; column += kStrip)
    for (int64_t group = 0; group < s.group_count; ++group) {
      if (!takes(group)) continue;
      const bool two = group + 1 < s.group_count && takes(group + 1);
      for (int64_t vector = 0; vector < 4; vector += 2)
        if (two)
          ByteValueBlock<2>(s, group, column, vector);
        else
          ByteValueBlock<1>(s, group, column, vector);
      group += two ? 1 : 0;
    }
}

// Shares the lines of the block at `begin` out among the steps of this one.
inline void StartByteTilesAhead(const DecodeTask& t, int64_t begin, ByteDecode& s) {
  const int64_t pairs = (s.group_count + 1) / 2;
  const int64_t score_steps = kByteKeys / (kScoreRuns * kByteRun) * (s.c + 3 * s.r) / kByteStep;
  const int64_t value_steps = s.columns / 32 * (kByteKeys / kByteStep);
  s.ahead.Start(t, begin, kByteKeys, kByteRun, pairs * (score_steps + value_steps));
}

// Requires: t.cache is kI8; C and R are multiples of 64, R ≤ 512; t.page_tokens is one of 16.
inline void MlaDecodeInt8Amx(const DecodeTask& t) {
  auto& s = InScratch<ByteDecode>(t.scratch);
  StartByteRows(t, s);
  s.q_group = (s.c + 2 * s.r) / kByteStep * kByteTile;
  const TileScope scope{TileShapes{}};
  for (int64_t group = 0; group < s.group_count; ++group) PackTileQueries(t, group, s);
  ForEachByteBlock<Avx512Vnni>(t, s, [&](int64_t begin) {
    StartByteTilesAhead(t, begin + kByteKeys, s);
    for (int64_t group = 0; group < s.group_count; group += 2) {
      if (group + 1 == s.group_count)
        TileByteScores<1>(s, group);
      else
        TileByteScores<2>(s, group);
      for (int64_t i = group; i < Min(group + 2, s.group_count); ++i)
        if (s.groups[i].most > 0 || s.first) TileByteWeights(s, i);
    }
    AddTileByteValues(s);
  });
}

}  // namespace
}  // namespace latte::cpu
