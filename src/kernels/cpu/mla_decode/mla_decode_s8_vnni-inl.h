// mla_decode on int8: absorbed attention to an int8 cache, both products of bytes, added exactly.
//
// Rounding  queries to bytes for the latent part and to words for the rope part, with a scale each
//           per row; words of as many bits as sums of R products leave, 13 for R = 64. Rope parts
//           of keys, 16 bits, lose two. Probabilities, times the scale of their key, to unsigned
//           bytes per row and block of 256 keys. Scores and sums of probabilities, and with them
//           lse, are f32.
// Work      tasks as in mla_decode_f32-inl.h, whose rows are taken 16 at a time, a row per lane:
//
//             queries, once per task, of a pair of groups     scores            weights
//             and of a single one                                               4 keys in a word
//             dims 0–3  │ row 0, 1, 2 …  │ row 16, 17 …       key 0 │ row 0 …   keys 0–3 │ row 0 …
//             dims 4–7  │                │                    key 1 │           keys 4–7 │
//
//             dims 0–7  │ row 0 0–3, row 1 4–7, row 2 0–3 … │ row 1 0–3, row 0 4–7, row 3 0–3 …
//             dims 8–15 │                                   │
//
//           Keys are read in place, four or eight bytes for all lanes, and are unsigned as they are
//           cached; sums begin with −128·Σq, which makes up for that. Bytes of their rope parts are
//           joined to signed words once per block, four of which are eight bytes: one product
//           instead of three of bytes. Eight bytes halve the loads where one group has all the
//           tile; its two sums are added once lanes of the second have changed places. A tile is 8
//           keys × two vectors of queries. Maxima and sums over keys are vertical. Values of a
//           block are zipped 64 columns at a time, four keys side by side, and used for all rows
//           while they are in L1; kTileRows rows × 4 vectors are a tile. Zipping leaves fours of
//           columns out of order; outputs are brought into order at the end. Tiles are functions of
//           their own: in line, g++ 12 spills around their loops (1.04 of the time).
// Order     sums of integers are exact; blocks of 256 keys anchored at position 0, of which each
//           row adds what it sees in key order. Neither grouping of rows nor page size, batch or
//           threads change a byte.
// Limits    C+R ≤ 1152, R ≤ 512 so that sums fit; scratch 2 MiB, of which C+R, the rows
//           and the page size decide what is touched.
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

// Finds the block's rows. Behind the last key of a run lie others of its page, of which nothing is
// used.
inline void TakeBytes(const DecodeTask& t, int64_t begin, int64_t end, ByteDecode& s) {
  s.count = Min(kByteKeys, end - begin);
  for (int64_t run = 0; run * kByteRun < s.count; ++run) {
    const int64_t first = begin + run * kByteRun;
    s.keys[run] = CachedRowOf(t, first);
    if (t.page_tokens % kByteRun == 0) continue;
    char* const to = s.copied + run * kByteRun * s.row_bytes;
    for (int64_t i = 0; i < Min(kByteRun, end - first); ++i)
      __builtin_memcpy(to + i * s.row_bytes, CachedRowOf(t, first + i),
                       static_cast<uint64_t>(s.row_bytes));
    s.keys[run] = to;
  }
}

// Fours of keys of an output tile after which a few lines are asked for.
constexpr int64_t kOutputStep = 4;

// The block at `begin` is asked for in even portions while outputs are computed: score tiles wait
// for lines of their own. A single tile of rows, which waits for memory, asks all the time.
template <class V>
void StartAhead(const DecodeTask& t, int64_t begin, ByteDecode& s) {
  constexpr auto tiles = [](int64_t rows) { return (rows + V::kTileRows - 1) / V::kTileRows; };
  const int64_t all = t.rows / kByteLanes * tiles(kByteLanes) + tiles(t.rows % kByteLanes);
  const int64_t strips = s.columns / kStrip;
  s.asks_in_scores = all == 1;
  s.ahead.Start(t, begin, kByteKeys, kByteRun,
                strips * all * (kByteKeys / 4 / kOutputStep) +
                    (s.asks_in_scores ? kByteKeys / 8 + kByteRuns * strips : 0));
  s.ahead.to = Cache::kL1;  // Zen 4: 0.95 to 0.98 of the time that the L2 takes
}

// sums = dot(sums, k, q) of 8 keys, `stride` apart: of fours of two groups of queries, or of eights
// of one, a row's sum in two lanes. In line, or the sums would live in memory. Addresses are
// spelled out, or g++ 12 keeps one for each key.
template <class V, int64_t kN, class Dot>
[[gnu::always_inline]] inline void DotColumns(const Dot& dot, const char* key, int64_t stride,
                                              const int8_t* q, int64_t q_group, int64_t columns,
                                              typename V::Ints (&sums)[8][2]) {
  constexpr int64_t kColumns = 8 / kN;
  const int64_t second = kN == 2 ? q_group : kFours;
  const char* keys[2] = {V::Opaque(key), V::Opaque(key + 4 * stride)};
  const int64_t three = V::Opaque(3 * stride);
  for (int64_t n = columns / kColumns; n > 0; --n, q += kFours * 2 / kN) {
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

// Of a key and the group `j` of kN.
template <class V, int64_t kN>
[[gnu::always_inline]] inline typename V::Ints SumOf(const typename V::Ints (&sums)[2], int64_t j) {
  return kN == 2 ? sums[j] : V::AddInts(sums[0], V::SwapLanes(sums[1]));
}

// Scales of keys [begin, begin + 16).
inline void TakeScales(ByteDecode& s, int64_t begin) {
  const char* scales = s.Key(begin) + s.scales_at;
  for (int64_t key = begin; key < begin + kByteRun; ++key, scales += s.row_bytes) {
    s.latent_scale[key] = FloatFrom(scales);
    s.rope_scale[key] = FloatFrom(scales + 4);
  }
}

// Rope parts of keys [begin, begin + 16) as signed words, of 16 bits the upper 14, rounded half up.
template <class V>
void JoinRun(ByteDecode& s, int64_t begin) {
  for (int64_t at = 0; at < s.r; at += kFours) {
    const char* high = s.Key(begin) + s.rope_at + at;
    char* to = s.Words(begin) + 2 * at;
    const auto join = [&](auto load) {
      for (int64_t i = 0; i < kByteRun; ++i, high += s.row_bytes, to += s.WordBytes()) {
        typename V::Ints words[2];
        V::JoinBytes(load(high + s.r), load(high), words);
        // They were cached 0x8080 larger; 0x7f80 makes them whole again, modulo 2^16.
        for (int64_t j = 0; j < 2; ++j)
          V::StoreBytes(to + j * kFours,
                        V::template ShiftWordsRight<2>(V::AddWords(words[j], 0x7f80 + 2)));
      }
    };
    const int64_t bytes = s.r - at;
    if (bytes >= kFours)
      join([](const char* p) { return V::LoadBytes(p); });
    else
      join([bytes](const char* p) { return V::LoadBytesPartial(p, bytes); });
  }
}

// Scores of 8 keys from `key` with kN groups.
template <class V, int64_t kN>
[[gnu::noinline]] void ByteScoreTile(ByteDecode& s, int64_t group, int64_t key) {
  constexpr int64_t kGroupScores = kByteKeys * kByteLanes;
  const int8_t* const q = s.Q(group);
  const ByteGroup* const g = s.groups + group;
  float* const to = s.Scores(group) + key * kByteLanes;
  typename V::Ints sums[8][2];
  StartSums<V>(V::LoadBytes(g[0].latent_bias),
               kN == 2 ? V::LoadBytes(g[1].latent_bias) : V::ZeroInts(), sums);
  DotColumns<V, kN>(V::DotBytes, s.Key(key), s.row_bytes, q, s.q_group, s.latent_columns, sums);
#pragma GCC unroll 8
  for (int64_t j = 0; j < kN; ++j)
#pragma GCC unroll 8
    for (int64_t i = 0; i < 8; ++i) {
      const typename V::Vec scale =
          V::Mul(V::Set1(s.latent_scale[key + i]), V::Load(g[j].latent_scale));
      V::Store(to + j * kGroupScores + i * kByteLanes,
               V::Mul(V::ToFloat(SumOf<V, kN>(sums[i], j)), scale));
    }
  if (s.r == 0) return;
  StartSums<V>(V::ZeroInts(), V::ZeroInts(), sums);
  DotColumns<V, kN>(V::DotWords, s.Words(key), s.WordBytes(), q + s.latent_columns * kByteLanes,
                    s.q_group, s.WordBytes(), sums);
#pragma GCC unroll 8
  for (int64_t j = 0; j < kN; ++j)
#pragma GCC unroll 8
    for (int64_t i = 0; i < 8; ++i) {
      float* const score = to + j * kGroupScores + i * kByteLanes;
      const typename V::Vec scale =
          V::Mul(V::Set1(s.rope_scale[key + i]), V::Load(g[j].rope_scale));
      V::Store(score, V::Fma(V::ToFloat(SumOf<V, kN>(sums[i], j)), scale, V::Load(score)));
    }
}

// Values of keys [begin, begin + 16), signed, four keys side by side, while they are in L1. Keys
// behind the last one of the block have weights of zero.
template <class V>
void ZipRun(ByteDecode& s, int64_t begin) {
  for (int64_t column = 0; column < s.columns; column += kStrip) {
    if (s.asks_in_scores) s.ahead.Ask<V>();
    const int64_t bytes = Min(kStrip, s.row_bytes - column);
    int8_t* const to = s.Values(column) + begin * kStrip;
    for (int64_t i = 0; i < kByteRun; i += 4) {
      const char* const row = s.Key(begin + i) + column;
      typename V::Ints m[4];
      for (int64_t j = 0; j < 4; ++j)
        m[j] = V::FlipSigns(bytes == kStrip ? V::LoadBytes(row + j * s.row_bytes)
                                            : V::LoadBytesPartial(row + j * s.row_bytes, bytes));
      V::ZipFours(m);
      for (int64_t j = 0; j < 4; ++j) V::StoreBytes(to + i * kStrip + j * kFours, m[j]);
    }
  }
}

// Scores of all rows, and what else is made of the block's keys on the way.
template <class V>
void ByteScores(ByteDecode& s) {
  ForEachRun<2>(s.group_count, [&](int64_t group, auto groups) {
    for (int64_t run = 0; run < s.count; run += kByteRun) {
      if (group == 0) {
        TakeScales(s, run);
        JoinRun<V>(s, run);
      }
      for (int64_t key = run; key < run + kByteRun; key += 8) {
        if (s.asks_in_scores) s.ahead.Ask<V>();
        ByteScoreTile<V, decltype(groups)::value>(s, group, key);
      }
      if (group == 0) ZipRun<V>(s, run);
    }
  });
}

// Hides scores [count, 16] of keys that rows do not see and returns the new maxima.
template <class V>
typename V::Vec HideAndMax(const ByteGroup& g, int64_t count, float* scores) {
  const typename V::Vec never = V::Set1(-__builtin_inff());
  typename V::Vec top[4];  // of every fourth key: one would wait for itself
  for (typename V::Vec& t : top) t = V::Load(g.max);
  const int64_t seen = Min(g.least, count) / 4 * 4;  // by all
  for (int64_t key = 0; key < seen; key += 4)
    for (int64_t i = 0; i < 4; ++i)
      top[i] = V::Max(top[i], V::Load(scores + (key + i) * kByteLanes));
  for (int64_t key = seen; key < count; ++key) {
    const typename V::Vec x =
        V::WhereBelow(key, g.visible, V::Load(scores + key * kByteLanes), never);
    V::Store(scores + key * kByteLanes, x);
    top[0] = V::Max(top[0], x);
  }
  return V::Max(V::Max(top[0], top[1]), V::Max(top[2], top[3]));
}

// Scores to probabilities times the scales of their keys; updates max, sum and factor and returns
// the largest.
template <class V>
typename V::Vec ByteWeights(const ByteDecode& s, ByteGroup& g, int64_t count, float* scores) {
  const typename V::Vec zero = V::Zero();
  const typename V::Vec max = HideAndMax<V>(g, count, scores);
  const typename V::Vec factor =
      V::Exp(V::WhereBelow(0, g.visible, V::Sub(V::Load(g.max), max), zero));
  V::Store(g.factor, factor);
  V::Store(g.max, max);
  const typename V::Vec to_2 = V::Set1(kLog2E);
  const typename V::Vec max_2 = V::Mul(max, to_2);
  typename V::Vec sum = zero;
  typename V::Vec top = zero;
  for (int64_t key = 0; key < count; ++key) {
    float* const at = scores + key * kByteLanes;
    const typename V::Vec e = V::Exp2(V::FmaSub(V::Load(at), to_2, max_2));
    typename V::Vec w = V::Mul(e, V::Set1(s.latent_scale[key]));
    if (key >= g.least) {  // hidden keys may have any scale, and −∞ may be the maximum
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

// Weights as bytes of which the largest of a row is 255, four keys to a word.
template <class V>
void QuantiseWeights(ByteDecode& s, int64_t group) {
  ByteGroup& g = s.groups[group];
  const int64_t count = Min(s.count, g.most);
  float* const scores = s.Scores(group);
  const typename V::Vec top = V::Max(ByteWeights<V>(s, g, count, scores), V::Set1(0x1p-100f));
  const typename V::Vec inverse = V::Div(V::Set1(255.0f), top);
  V::Store(g.p_scale, V::Mul(top, V::Set1(1.0f / 255)));
  uint8_t* const to = s.P(group);
  for (int64_t key = 0; key < count; key += 4) {
    typename V::Ints bytes[4];
    for (int64_t i = 0; i < 4; ++i)
      bytes[i] = key + i < count
                     ? V::ToInts(V::Mul(V::Load(scores + (key + i) * kByteLanes), inverse))
                     : V::ZeroInts();
    V::StoreBytes(to + key * kByteLanes, V::PackFour(bytes));
  }
}

// Outputs of kM rows of a group from lane `lane`, 64 columns from `column`.
template <class V, int64_t kM>
[[gnu::noinline]] void ByteOuterTile(ByteDecode& s, int64_t group, int64_t lane, int64_t column) {
  const ByteGroup& g = s.groups[group];
  float* const first = s.o + (group * kByteLanes + lane) * s.columns + column;
#pragma GCC unroll 8
  for (int64_t i = 0; i < kM; ++i)
#pragma GCC unroll 8
    for (int64_t j = 0; j < 4; ++j) V::PrefetchNear(first + i * s.columns + j * V::kLanes);
  typename V::Ints acc[kM][4];
#pragma GCC unroll 8
  for (int64_t i = 0; i < kM; ++i)
#pragma GCC unroll 8
    for (int64_t j = 0; j < 4; ++j) acc[i][j] = V::ZeroInts();
  const int8_t* w = s.Values(column);
  const uint8_t* p = s.P(group) + lane * 4;
  for (int64_t fours = (Min(s.count, g.most) + 3) / 4; fours > 0; fours -= kOutputStep) {
    s.ahead.Ask<V>();
    for (int64_t n = Min(kOutputStep, fours); n > 0; --n, w += 4 * kFours, p += kFours) {
      typename V::Ints v[4];
#pragma GCC unroll 8
      for (int64_t j = 0; j < 4; ++j) v[j] = V::LoadBytes(w + j * kFours);
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
void AddByteValues(const DecodeTask& t, ByteDecode& s) {
  for (int64_t column = 0; column < s.columns; column += kStrip) {
    for (int64_t group = 0; group < s.group_count; ++group) {
      if (s.groups[group].most == 0 && !s.first) continue;
      ForEachRun<V::kTileRows>(Min(kByteLanes, t.rows - group * kByteLanes),
                               [&](int64_t lane, auto rows) {
                                 ByteOuterTile<V, decltype(rows)::value>(s, group, lane, column);
                               });
    }
  }
}

// Keys of the block at `begin` that each row sees.
inline void FindVisibleBytes(const DecodeTask& t, int64_t begin, ByteDecode& s) {
  for (int64_t group = 0; group < s.group_count; ++group) {
    ByteGroup& g = s.groups[group];
    g.least = s.count;
    g.most = 0;
    for (int64_t i = 0; i < kByteLanes; ++i) {
      const int64_t row = Min(group * kByteLanes + i, t.rows - 1);
      const int64_t seen = Max(0, Min(s.count, t.q[row].visible - begin));
      g.visible[i] = static_cast<int32_t>(seen);
      g.least = Min(g.least, seen);
      g.most = Max(g.most, seen);
    }
  }
}

// What does not depend on how queries are packed.
inline void StartByteRows(const DecodeTask& t, ByteDecode& s) {
  s.asks_in_scores = false;
  s.row_bytes = t.cache.bytes;
  s.c = t.c;
  s.r = t.r;
  s.rope_at = t.cache.rope_at;
  s.scales_at = t.cache.scales_at;
  s.columns = RoundUp64(t.c);
  s.group_count = (t.rows + kByteLanes - 1) / kByteLanes;
}

template <class V>
void StartBytes(const DecodeTask& t, ByteDecode& s) {
  StartByteRows(t, s);
  s.latent_columns = (t.c + 7) / 8 * 8;
  s.q_group = (s.latent_columns + s.WordBytes()) * kByteLanes;
  for (int64_t group = 0; group < s.group_count; ++group) PackByteQueries<V>(t, group, s);
}

// Brings columns into order and stores what became of the rows.
template <class V>
void StoreBytesOut(ByteDecode& s, int64_t rows, const Partial& out) {
  for (int64_t row = 0; row < rows; ++row) {
    const ByteGroup& g = s.groups[row / kByteLanes];
    out.max[row] = g.max[row % kByteLanes];
    out.sum[row] = g.sum[row % kByteLanes];
    for (int64_t column = 0; column < s.c; column += kStrip) {
      typename V::Vec lanes[4];
      for (int64_t j = 0; j < 4; ++j)
        lanes[j] = V::Load(s.o + row * s.columns + column + j * V::kLanes);
      V::TurnLanes(lanes);
      for (int64_t j = 0; j < 4 && column + j * V::kLanes < s.c; ++j) {
        const int64_t at = column + j * V::kLanes;
        StoreNext<V>(out.o + row * s.c + at, lanes[j], s.c - at);
      }
    }
  }
}

// Calls add(begin) for each block of keys, whose rows are found, and stores each split's results.
template <class V, class F>
void ForEachByteBlock(const DecodeTask& t, ByteDecode& s, const F& add) {
  for (int64_t part = 0; part < t.splits; ++part) {
    const DecodeSplit split = TakeSplit(t, part);
    for (int64_t group = 0; group < s.group_count; ++group) {
      V::Store(s.groups[group].max, V::Set1(-__builtin_inff()));
      V::Store(s.groups[group].sum, V::Zero());
    }
    for (int64_t begin = split.begin; begin < split.end; begin += kByteKeys) {
      TakeBytes(t, begin, split.end, s);
      FindVisibleBytes(t, begin, s);
      s.first = begin == split.begin;
      add(begin);
    }
    StoreBytesOut<V>(s, t.rows, split.out);
  }
}

// Requires: t.cache is kI8; R ≤ 512.
template <class V>
void MlaDecodeInt8(const DecodeTask& t) {
  auto& s = InScratch<ByteDecode>(t.scratch);
  StartBytes<V>(t, s);
  ForEachByteBlock<V>(t, s, [&](int64_t begin) {
    StartAhead<V>(t, begin + kByteKeys, s);
    ByteScores<V>(s);
    for (int64_t group = 0; group < s.group_count; ++group)
      if (s.groups[group].most > 0 || s.first) QuantiseWeights<V>(s, group);
    AddByteValues<V>(t, s);
  });
}

}  // namespace
}  // namespace latte::cpu
