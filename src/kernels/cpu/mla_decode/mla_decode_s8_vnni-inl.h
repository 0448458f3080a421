// clang-format off
// mla_decode, u8 × s8 → s32 over int8 caches: score tile 8 keys × 32 rows (vpdpbusd; rope part s16,
// vpdpwssd), value tile 6 rows × 64 columns; up to 128 (token, head) rows per task; AVX512_VNNI.
//
// Rounding   Queries: latent part to s8, rope part to s16 of as many bits as R products leave room
//            for (13 at R = 64), one scale each. Rope parts of keys lose two of 16 bits.
//            Probabilities times the key's scale: u8 per row and block. Scores, sums and lse are
//            f32.
// Packing    Queries, once per task: one row per lane, groups of 4 dims [dims/4][16 rows][4]; with
//            one group of rows 8 dims per step, over two registers. Values, once per block: 4 keys
//            interleaved, strips of 64 columns. Keys are read in place, 4 or 8 bytes broadcast.
//
//              queries  dims 0–3 │ rows 0 … 15 │ rows 16 … 31 │      scores  key 0 │ rows 0 … 15 │
//                       dims 4–7 │      …      │      …       │              key 1 │      …      │
//
// Blocking   Blocks of 256 keys, segments of 16 keys at a constant stride.
// Epilogue   Cached bytes are unsigned (x + 128), so sums start at −128·Σq. Outputs leave the
//            interleaved column order in StoreS8Outputs.
// Order      Integer sums are exact. Blocks are anchored at position 0; a row adds the keys it sees
//            in index order. Grouping of rows, page size, batch and threads change no byte.
// Limits     C+R ≤ 1152, R ≤ 512 (sums fit s32); scratch 2 MiB, resident as far as used.
// clang-format on
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/cached_row-inl.h"
#include "src/kernels/cpu/common/merge_splits-inl.h"
#include "src/kernels/cpu/common/online_softmax-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/mla_decode/mla_decode_s8_pack-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Finds the cached rows of the block, by segments. Rows behind the last key of a segment are read
// but not used.
inline void LoadS8Block(const DecodeTask& t, int64_t begin, int64_t end, S8Scratch& s) {
  s.count = Min(kS8Block, end - begin);
  for (int64_t segment = 0; segment * kS8Segment < s.count; ++segment) {
    const int64_t first = begin + segment * kS8Segment;
    s.keys[segment] = CachedRowOf(t, first);
    if (t.page_tokens % kS8Segment == 0) continue;
    char* const to = s.copied + segment * kS8Segment * s.row_bytes;
    for (int64_t i = 0; i < Min(kS8Segment, end - first); ++i)
      __builtin_memcpy(to + i * s.row_bytes, CachedRowOf(t, first + i),
                       static_cast<uint64_t>(s.row_bytes));
    s.keys[segment] = to;
  }
}

// Groups of 4 keys of a value tile between two calls of PrefetchNext.
constexpr int64_t kOutputStep = 4;

// Spreads the prefetch of the block at `begin` over the value tiles of this one, because score
// tiles wait for lines of their own. If there is only one tile of rows, memory is the limit and
// score tiles prefetch too.
template <class V>
void StartPrefetch(const DecodeTask& t, int64_t begin, S8Scratch& s) {
  constexpr auto tiles = [](int64_t rows) { return (rows + V::kTileRows - 1) / V::kTileRows; };
  const int64_t all = t.rows / kS8Lanes * tiles(kS8Lanes) + tiles(t.rows % kS8Lanes);
  const int64_t strips = s.columns / kStripColumns;
  s.prefetch_in_scores = all == 1;
  s.prefetch.Start(t, begin, kS8Block, kS8Segment,
                   strips * all * (kS8Block / 4 / kOutputStep) +
                       (s.prefetch_in_scores ? kS8Block / 8 + kS8Segments * strips : 0));
  s.prefetch.to = CacheLevel::kL1;  // the block is used soon
}

// sums = dot(sums, k, q) of 8 keys, `stride` apart: 4 bytes per row for two groups of queries, or 8
// bytes for one group, whose row sums lie in two lanes. Always inlined to keep sums in registers;
// explicit addresses, because g++ 12 would keep one pointer per key.
template <class V, int64_t kN, class Dot>
[[gnu::always_inline]] inline void DotColumns(const Dot& dot, const char* key, int64_t stride,
                                              const int8_t* q, int64_t q_group, int64_t columns,
                                              typename V::Ints (&sums)[8][2]) {
  constexpr int64_t kColumns = 8 / kN;
  const int64_t second = kN == 2 ? q_group : kVectorBytes;
  const char* keys[2] = {V::Opaque(key), V::Opaque(key + 4 * stride)};
  const int64_t three = V::Opaque(3 * stride);
  for (int64_t n = columns / kColumns; n > 0; --n, q += kVectorBytes * 2 / kN) {
    const typename V::Ints qn[2] = {V::LoadBytes(q), V::LoadBytes(q + second)};
#pragma GCC unroll 8
    for (int64_t i = 0; i < 8; ++i) {
      const char* const from = keys[i / 4] + (i % 4 == 3 ? three : i % 4 * stride);
      const typename V::Ints k = kN == 2 ? V::SetFour(from) : V::SetEight(from);
#pragma GCC unroll 8
      for (int64_t j = 0; j < 2; ++j) sums[i][j] = dot(sums[i][j], k, qn[j]);
    }
#pragma GCC unroll 8
    for (int64_t i = 0; i < 2; ++i) keys[i] = V::Opaque(keys[i] + kColumns);
  }
}

template <class V>
[[gnu::always_inline]] inline void StartSums(typename V::Ints first, typename V::Ints second,
                                             typename V::Ints (&sums)[8][2]) {
#pragma GCC unroll 8
  for (int64_t i = 0; i < 8; ++i) {
    sums[i][0] = first;
    sums[i][1] = second;
  }
}

// The sum of a key and the group `j` of kN.
template <class V, int64_t kN>
[[gnu::always_inline]] inline typename V::Ints SumOf(const typename V::Ints (&sums)[2], int64_t j) {
  return kN == 2 ? sums[j] : V::AddInts(sums[0], V::SwapLanes(sums[1]));
}

// Reads the scales of keys [begin, begin + 16).
inline void LoadScales(S8Scratch& s, int64_t begin) {
  const char* scales = s.Key(begin) + s.scales_at;
  for (int64_t key = begin; key < begin + kS8Segment; ++key, scales += s.row_bytes) {
    s.latent_scale[key] = FloatFrom(scales);
    s.rope_scale[key] = FloatFrom(scales + 4);
  }
}

// Joins the bytes of the rope parts of keys [begin, begin + 16) to s16, rounded half up to the
// upper 14 bits.
template <class V>
void JoinRopeBytes(S8Scratch& s, int64_t begin) {
  for (int64_t at = 0; at < s.r; at += kVectorBytes) {
    const char* high = s.Key(begin) + s.rope_at + at;
    char* to = s.RopeS16(begin) + 2 * at;
    const auto join = [&](auto load) {
      for (int64_t i = 0; i < kS8Segment; ++i, high += s.row_bytes, to += s.RopeS16Bytes()) {
        typename V::Ints rope_s16[2];
        V::JoinBytes(load(high + s.r), load(high), rope_s16);
        // Both bytes are cached with an offset of 128, 0x8080 together; adding 0x7f80 removes it
        // modulo 2^16.
        for (int64_t j = 0; j < 2; ++j)
          V::StoreBytes(to + j * kVectorBytes,
                        V::template ShiftWordsRight<2>(V::AddWords(rope_s16[j], 0x7f80 + 2)));
      }
    };
    const int64_t bytes = s.r - at;
    if (bytes >= kVectorBytes)
      join([](const char* p) { return V::LoadBytes(p); });
    else
      join([bytes](const char* p) { return V::LoadBytesPartial(p, bytes); });
  }
}

// Scores of 8 keys from `key` × kN groups.
template <class V, int64_t kN>
[[gnu::noinline]] void S8ScoreTile(S8Scratch& s, int64_t group, int64_t key) {
  constexpr int64_t kGroupScores = kS8Block * kS8Lanes;
  const int8_t* const q = s.Q(group);
  const S8Group* const g = s.groups + group;
  float* const to = s.Scores(group) + key * kS8Lanes;
  typename V::Ints sums[8][2];
  StartSums<V>(V::LoadBytes(g[0].latent_compensation),
               kN == 2 ? V::LoadBytes(g[1].latent_compensation) : V::ZeroInts(), sums);
  DotColumns<V, kN>(V::DotBytes, s.Key(key), s.row_bytes, q, s.q_group, s.latent_columns, sums);
#pragma GCC unroll 8
  for (int64_t j = 0; j < kN; ++j)
#pragma GCC unroll 8
    for (int64_t i = 0; i < 8; ++i) {
      const typename V::Vec scale =
          V::Mul(V::Set1(s.latent_scale[key + i]), V::Load(g[j].latent_scale));
      V::Store(to + j * kGroupScores + i * kS8Lanes,
               V::Mul(V::ToFloat(SumOf<V, kN>(sums[i], j)), scale));
    }
  if (s.r == 0) return;
  StartSums<V>(V::ZeroInts(), V::ZeroInts(), sums);
  DotColumns<V, kN>(V::DotWords, s.RopeS16(key), s.RopeS16Bytes(), q + s.latent_columns * kS8Lanes,
                    s.q_group, s.RopeS16Bytes(), sums);
#pragma GCC unroll 8
  for (int64_t j = 0; j < kN; ++j)
#pragma GCC unroll 8
    for (int64_t i = 0; i < 8; ++i) {
      float* const score = to + j * kGroupScores + i * kS8Lanes;
      const typename V::Vec scale =
          V::Mul(V::Set1(s.rope_scale[key + i]), V::Load(g[j].rope_scale));
      V::Store(score, V::Fma(V::ToFloat(SumOf<V, kN>(sums[i], j)), scale, V::Load(score)));
    }
}

// Interleaves the values of keys [begin, begin + 16), as signed bytes, 4 keys together, while they
// are in the L1. Keys behind the last one of the block have probability zero.
template <class V>
void InterleaveS8Values(S8Scratch& s, int64_t begin) {
  for (int64_t column = 0; column < s.columns; column += kStripColumns) {
    if (s.prefetch_in_scores) s.prefetch.PrefetchNext();
    const int64_t bytes = Min(kStripColumns, s.row_bytes - column);
    int8_t* const to = s.Values(column) + begin * kStripColumns;
    for (int64_t i = 0; i < kS8Segment; i += 4) {
      const char* const row = s.Key(begin + i) + column;
      typename V::Ints m[4];
      for (int64_t j = 0; j < 4; ++j)
        m[j] = V::FlipSigns(bytes == kStripColumns
                                ? V::LoadBytes(row + j * s.row_bytes)
                                : V::LoadBytesPartial(row + j * s.row_bytes, bytes));
      V::InterleaveFourRows(m);
      for (int64_t j = 0; j < 4; ++j)
        V::StoreBytes(to + i * kStripColumns + j * kVectorBytes, m[j]);
    }
  }
}

// Scores of all rows. With the first groups it also reads scales, joins rope parts and interleaves
// values, segment by segment.
template <class V>
void S8Scores(S8Scratch& s) {
  ForEachRun<2>(s.group_count, [&](int64_t group, auto groups) {
    for (int64_t segment = 0; segment < s.count; segment += kS8Segment) {
      if (group == 0) {
        LoadScales(s, segment);
        JoinRopeBytes<V>(s, segment);
      }
      for (int64_t key = segment; key < segment + kS8Segment; key += 8) {
        if (s.prefetch_in_scores) s.prefetch.PrefetchNext();
        S8ScoreTile<V, decltype(groups)::value>(s, group, key);
      }
      if (group == 0) InterleaveS8Values<V>(s, segment);
    }
  });
}

// Masks scores [count, 16] of keys that a row does not see with −inf and returns the new maxima.
template <class V>
typename V::Vec MaskAndMax(const S8Group& g, int64_t count, float* scores) {
  const typename V::Vec never = V::Set1(-__builtin_inff());
  typename V::Vec top[4];  // of every fourth key: four independent chains
  for (typename V::Vec& t : top) t = V::Load(g.max);
  const int64_t seen = Min(g.least, count) / 4 * 4;  // keys that all rows see
  for (int64_t key = 0; key < seen; key += 4)
    for (int64_t i = 0; i < 4; ++i) top[i] = V::Max(top[i], V::Load(scores + (key + i) * kS8Lanes));
  for (int64_t key = seen; key < count; ++key) {
    const typename V::Vec x =
        V::WhereBelow(key, g.visible, V::Load(scores + key * kS8Lanes), never);
    V::Store(scores + key * kS8Lanes, x);
    top[0] = V::Max(top[0], x);
  }
  return V::Max(V::Max(top[0], top[1]), V::Max(top[2], top[3]));
}

// Scores to probabilities times the scales of their keys. Updates max, sum and factor, and returns
// the largest product.
template <class V>
typename V::Vec S8Probabilities(const S8Scratch& s, S8Group& g, int64_t count, float* scores) {
  const typename V::Vec zero = V::Zero();
  const typename V::Vec max = MaskAndMax<V>(g, count, scores);
  const typename V::Vec factor =
      V::Exp(V::WhereBelow(0, g.visible, V::Sub(V::Load(g.max), max), zero));
  V::Store(g.factor, factor);
  V::Store(g.max, max);
  const typename V::Vec to_2 = V::Set1(kLog2E);
  const typename V::Vec max_2 = V::Mul(max, to_2);
  typename V::Vec sum = zero;
  typename V::Vec top = zero;
  for (int64_t key = 0; key < count; ++key) {
    float* const at = scores + key * kS8Lanes;
    const typename V::Vec e = V::Exp2(V::FmaSub(V::Load(at), to_2, max_2));
    typename V::Vec w = V::Mul(e, V::Set1(s.latent_scale[key]));
    if (key >= g.least) {  // masked keys may have any scale, and −∞ may be the maximum
      sum = V::Add(sum, V::WhereBelow(key, g.visible, e, zero));
      w = V::WhereBelow(key, g.visible, w, zero);
    } else {
      sum = V::Add(sum, e);
    }
    top = V::Max(w, top);
    V::Store(at, w);
  }
  V::Store(g.sum, V::Fma(V::Load(g.sum), factor, sum));
  return top;
}

// Quantises the scaled probabilities to u8, the largest of a row to 255, 4 keys per 32 bits.
template <class V>
void QuantiseProbabilities(S8Scratch& s, int64_t group) {
  S8Group& g = s.groups[group];
  const int64_t count = Min(s.count, g.most);
  float* const scores = s.Scores(group);
  const typename V::Vec top = V::Max(S8Probabilities<V>(s, g, count, scores), V::Set1(0x1p-100f));
  const typename V::Vec inverse = V::Div(V::Set1(255.0f), top);
  V::Store(g.p_scale, V::Mul(top, V::Set1(1.0f / 255)));
  uint8_t* const to = s.P(group);
  for (int64_t key = 0; key < count; key += 4) {
    typename V::Ints bytes[4];
    for (int64_t i = 0; i < 4; ++i)
      bytes[i] = key + i < count
                     ? V::ToInts(V::Mul(V::Load(scores + (key + i) * kS8Lanes), inverse))
                     : V::ZeroInts();
    V::StoreBytes(to + key * kS8Lanes, V::PackFour(bytes));
  }
}

// Outputs of kM rows of a group from lane `lane`, 64 columns from `column`.
template <class V, int64_t kM>
[[gnu::noinline]] void S8ValueTile(S8Scratch& s, int64_t group, int64_t lane, int64_t column) {
  const S8Group& g = s.groups[group];
  float* const first = s.o + (group * kS8Lanes + lane) * s.columns + column;
#pragma GCC unroll 8
  for (int64_t i = 0; i < kM; ++i)
#pragma GCC unroll 8
    for (int64_t j = 0; j < 4; ++j) PrefetchL1(first + i * s.columns + j * V::kLanes);
  typename V::Ints acc[kM][4];
#pragma GCC unroll 8
  for (int64_t i = 0; i < kM; ++i)
#pragma GCC unroll 8
    for (int64_t j = 0; j < 4; ++j) acc[i][j] = V::ZeroInts();
  const int8_t* w = s.Values(column);
  const uint8_t* p = s.P(group) + lane * 4;
  for (int64_t groups = (Min(s.count, g.most) + 3) / 4; groups > 0; groups -= kOutputStep) {
    s.prefetch.PrefetchNext();
    for (int64_t n = Min(kOutputStep, groups); n > 0;
         --n, w += 4 * kVectorBytes, p += kVectorBytes) {
      typename V::Ints v[4];
#pragma GCC unroll 8
      for (int64_t j = 0; j < 4; ++j) v[j] = V::LoadBytes(w + j * kVectorBytes);
#pragma GCC unroll 8
      for (int64_t i = 0; i < kM; ++i) {
        const typename V::Ints pi = V::SetFour(p + i * 4);
#pragma GCC unroll 8
        for (int64_t j = 0; j < 4; ++j) acc[i][j] = V::DotBytes(acc[i][j], pi, v[j]);
      }
    }
  }
#pragma GCC unroll 8
  for (int64_t i = 0; i < kM; ++i)
#pragma GCC unroll 8
    for (int64_t j = 0; j < 4; ++j) {
      float* const o = first + i * s.columns + j * V::kLanes;
      const typename V::Vec old =
          s.first ? V::Zero() : V::Mul(V::Load(o), V::Set1(g.factor[lane + i]));
      V::Store(o, V::Fma(V::ToFloat(acc[i][j]), V::Set1(g.p_scale[lane + i]), old));
    }
}

// o = factor·o + P·V
template <class V>
void AddS8Values(const DecodeTask& t, S8Scratch& s) {
  for (int64_t column = 0; column < s.columns; column += kStripColumns) {
    for (int64_t group = 0; group < s.group_count; ++group) {
      if (s.groups[group].most == 0 && !s.first) continue;
      ForEachRun<V::kTileRows>(Min(kS8Lanes, t.rows - group * kS8Lanes),
                               [&](int64_t lane, auto rows) {
                                 S8ValueTile<V, decltype(rows)::value>(s, group, lane, column);
                               });
    }
  }
}

// The number of keys of the block at `begin` that each row sees.
inline void FindVisibleS8(const DecodeTask& t, int64_t begin, S8Scratch& s) {
  for (int64_t group = 0; group < s.group_count; ++group) {
    S8Group& g = s.groups[group];
    g.least = s.count;
    g.most = 0;
    for (int64_t i = 0; i < kS8Lanes; ++i) {
      const int64_t row = Min(group * kS8Lanes + i, t.rows - 1);
      const int64_t seen = Max(0, Min(s.count, t.q[row].visible - begin));
      g.visible[i] = static_cast<int32_t>(seen);
      g.least = Min(g.least, seen);
      g.most = Max(g.most, seen);
    }
  }
}

// The setup that does not depend on how queries are packed.
inline void StartS8Rows(const DecodeTask& t, S8Scratch& s) {
  s.prefetch_in_scores = false;
  s.row_bytes = t.cache.bytes;
  s.c = t.c;
  s.r = t.r;
  s.rope_at = t.cache.rope_at;
  s.scales_at = t.cache.scales_at;
  s.columns = RoundUp64(t.c);
  s.group_count = (t.rows + kS8Lanes - 1) / kS8Lanes;
}

template <class V>
void StartS8(const DecodeTask& t, S8Scratch& s) {
  StartS8Rows(t, s);
  s.latent_columns = (t.c + 7) / 8 * 8;
  s.q_group = (s.latent_columns + s.RopeS16Bytes()) * kS8Lanes;
  for (int64_t group = 0; group < s.group_count; ++group) PackS8Queries<V>(t, group, s);
}

// Writes the outputs of the rows with their columns in order.
template <class V>
void StoreS8Outputs(S8Scratch& s, int64_t rows, const SplitResult& out) {
  for (int64_t row = 0; row < rows; ++row) {
    const S8Group& g = s.groups[row / kS8Lanes];
    out.max[row] = g.max[row % kS8Lanes];
    out.sum[row] = g.sum[row % kS8Lanes];
    for (int64_t column = 0; column < s.c; column += kStripColumns) {
      typename V::Vec lanes[4];
      for (int64_t j = 0; j < 4; ++j)
        lanes[j] = V::Load(s.o + row * s.columns + column + j * V::kLanes);
      V::Transpose128(lanes);
      for (int64_t j = 0; j < 4 && column + j * V::kLanes < s.c; ++j) {
        const int64_t at = column + j * V::kLanes;
        StoreNext<V>(out.o + row * s.c + at, lanes[j], s.c - at);
      }
    }
  }
}

// Calls add(begin) for each block of keys, and writes the result of each split.
template <class V, class F>
void ForEachS8Block(const DecodeTask& t, S8Scratch& s, const F& add) {
  for (int64_t part = 0; part < t.splits; ++part) {
    const DecodeSplit split = BeginSplit(t, part);
    for (int64_t group = 0; group < s.group_count; ++group) {
      V::Store(s.groups[group].max, V::Set1(-__builtin_inff()));
      V::Store(s.groups[group].sum, V::Zero());
    }
    for (int64_t begin = split.begin; begin < split.end; begin += kS8Block) {
      LoadS8Block(t, begin, split.end, s);
      FindVisibleS8(t, begin, s);
      s.first = begin == split.begin;
      add(begin);
    }
    StoreS8Outputs<V>(s, t.rows, split.out);
  }
}

// Requires: t.cache is kI8; R ≤ 512.
template <class V>
void MlaDecodeS8(const DecodeTask& t) {
  auto& s = ScratchAs<S8Scratch>(t.scratch);
  StartS8<V>(t, s);
  ForEachS8Block<V>(t, s, [&](int64_t begin) {
    StartPrefetch<V>(t, begin + kS8Block, s);
    S8Scores<V>(s);
    for (int64_t group = 0; group < s.group_count; ++group)
      if (s.groups[group].most > 0 || s.first) QuantiseProbabilities<V>(s, group);
    AddS8Values<V>(t, s);
  });
}

}  // namespace
}  // namespace latte::cpu
