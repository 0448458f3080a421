// mla_decode of few heads on quantised rows: rounded to bf16, multiplied in f32 or in pairs of bf16
// that are added in f32, whichever is faster where the target runs (V::kFastPairs).
//
// Rounding  queries to bf16, once; cached rows to bf16, once per block; in pairs probabilities too,
//           for the product with values. Sums are f32, that of probabilities and with it lse too.
// Work      tasks as in mla_decode_f32-inl.h. With a head or two every key is used once or twice, so
//           what is done per key is the time: rows of 64 keys are rounded into scratch that stays
//           near (73 KiB at C+R = 576) and read from there twice, for scores and for values.
//           In f32, a vector of 32 bf16 becomes two, its even columns by a shift and its odd ones
//           by a mask; in pairs, values of two keys are brought side by side. Queries and outputs
//           are kept in the order that this leaves.
// Roofline  656 bytes of an fp8 row against 576 numbers to round and 2·(2C+R) FLOP per head.
// Figures   docs/kernels/mla_decode.md.
// Order     keys in index order, blocks of 64 anchored at position 0. In f32 even and odd columns
//           of a score are added up apart; in pairs an odd last key is paired with zero. Neither
//           grouping of rows nor page size, batch or threads change a byte.
// Limits    C+R ≤ 1152; scratch 750 KiB.
#pragma once

#include <cstdint>
#include <type_traits>

#include "src/kernels/cpu/common/bf16_pair-inl.h"
#include "src/kernels/cpu/common/merge_splits-inl.h"
#include "src/kernels/cpu/common/online_softmax-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/mla_decode/prefetch_pages-inl.h"
#include "src/kernels/cpu/mla_decode/rounded_row-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kFewBlock = 64;   // keys whose rows stay near
constexpr int64_t kFewAhead = 256;  // keys that are asked for together
constexpr int64_t kFewRows = 3;     // rows of a tile
constexpr int64_t kChunk = 32;      // columns that are widened at once

using FewRows = AttentionRows<kFewBlock, kMaxDecodeRows>;

// In f32: products of one number and sums of even and odd columns.
template <class V>
struct FewFloats {
  using Q = float;
  static constexpr int64_t kTogether = 1;  // keys
  using Vec = typename V::Vec;

  // Of kChunk columns.
  struct Sum {
    Vec even = V::Zero(), odd = V::Zero();

    Vec All() const { return V::Add(even, odd); }
  };
  static void TakeQuery(const BF16* rounded, int64_t width, Q* to) {
    for (int64_t at = 0; at < width; at += kChunk) {
      const typename V::Pairs pairs = V::LoadPairs(rounded + at);
      V::Store(to + at, V::EvenOfPairs(pairs));
      V::Store(to + at + V::kLanes, V::OddOfPairs(pairs));
    }
  }
  struct Key {
    Vec even, odd;
  };
  static Key LoadKey(const BF16* key) {
    const typename V::Pairs pairs = V::LoadPairs(key);
    return {V::EvenOfPairs(pairs), V::OddOfPairs(pairs)};
  }
  static void AddDot(const Q* q, const Key& key, Sum& sum) {
    sum.even = V::Fma(V::Load(q), key.even, sum.even);
    sum.odd = V::Fma(V::Load(q + V::kLanes), key.odd, sum.odd);
  }
  static void TakeProbabilities(const float* p, float* to) {
    for (int64_t i = 0; i < kFewBlock; i += V::kLanes) V::Store(to + i, V::Load(p + i));
  }
  // Values of kTogether keys, or of the first of them.
  static Key LoadValues(const BF16* v, int64_t, bool) { return LoadKey(v); }
  static Vec SetProbabilities(const Q* p) { return V::Set1(*p); }
  static void AddValues(Vec p, const Key& v, Vec& first, Vec& second) {
    first = V::Fma(p, v.even, first);
    second = V::Fma(p, v.odd, second);
  }
  static Vec FirstColumns(Vec first, Vec second) { return V::ZipFloatsLow(first, second); }
  static Vec LastColumns(Vec first, Vec second) { return V::ZipFloatsHigh(first, second); }
};

// In pairs of columns, and of keys.
template <class V>
struct FewPairs {
  using Q = BF16;
  static constexpr int64_t kTogether = 2;
  using Vec = typename V::Vec;
  using Pairs = typename V::Pairs;

  struct Sum {
    Vec sum = V::Zero();

    Vec All() const { return sum; }
  };
  static void TakeQuery(const BF16* rounded, int64_t width, Q* to) {
    for (int64_t at = 0; at < width; at += kChunk)
      V::StorePairs(to + at, V::LoadPairs(rounded + at));
  }
  static Pairs LoadKey(const BF16* key) { return V::LoadPairs(key); }
  static void AddDot(const Q* q, Pairs key, Sum& sum) {
    sum.sum = V::DotPairs(sum.sum, V::LoadPairs(q), key);
  }
  static void TakeProbabilities(const float* p, Q* to) { RoundRow<V>(p, kFewBlock, to); }
  struct Values {
    Pairs low, high;
  };
  static Values LoadValues(const BF16* v, int64_t stride, bool all) {
    const Pairs x = V::LoadPairs(v);
    const Pairs y = all ? V::LoadPairs(v + stride) : V::LoadPairsPartial(v, 0);
    return {V::UnpackLow(x, y), V::UnpackHigh(x, y)};
  }
  static Pairs SetProbabilities(const Q* p) { return V::SetPair(p); }
  static void AddValues(Pairs p, const Values& v, Vec& first, Vec& second) {
    first = V::DotPairs(first, p, v.low);
    second = V::DotPairs(second, p, v.high);
  }
  static Vec FirstColumns(Vec first, Vec second) { return V::PackFirst(first, second); }
  static Vec LastColumns(Vec first, Vec second) { return V::PackSecond(first, second); }
};

template <class V>
using FewMath = std::conditional_t<V::kFastPairs, FewPairs<V>, FewFloats<V>>;

template <class Math>
struct FewScratch {
  alignas(64) typename Math::Q q[kMaxDecodeRows * kMaxDecodeWidth];
  alignas(64) typename Math::Q p[kMaxDecodeRows * kFewBlock];
  alignas(64) float o[kMaxDecodeRows * kMaxDecodeWidth];
  alignas(64) BF16 keys[kFewBlock * (kMaxDecodeWidth + kChunk)];
  NextBlock ahead;
  int64_t width;   // C+R as a multiple of 32
  int64_t stride;  // of keys: an odd number of lines
  int64_t count;   // keys of the block
};

// Rounds the queries.
template <class V, class Math>
void TakeFewQueries(const DecodeTask& t, FewScratch<Math>& s) {
  alignas(64) float q[kMaxDecodeWidth];
  alignas(64) BF16 rounded[kMaxDecodeWidth];
  for (int64_t i = 0; i < t.rows; ++i) {
    WidenRow<V>(t.q[i].q_latent, t.c, q);
    WidenRow<V>(t.q[i].q_rope, t.r, q + t.c);
    RoundRow<V>(q, t.c + t.r, rounded);
    Math::TakeQuery(rounded, s.width, s.q + i * s.width);
  }
}

// Scores of kM rows from `row` with four keys.
template <class V, int64_t kM, class Math>
inline void FewDotTile(const FewScratch<Math>& s, int64_t row, int64_t key, float* scores) {
  const typename Math::Q* const q = s.q + row * s.width;
  const BF16* keys[4];
  for (int64_t j = 0; j < 4; ++j)  // a tile over the edge repeats the last key
    keys[j] = s.keys + Min(key + j, s.count - 1) * s.stride;
  typename Math::Sum sums[kM][4];
  for (int64_t at = 0; at < s.width; at += kChunk)
    for (int64_t j = 0; j < 4; ++j) {
      const auto k = Math::LoadKey(keys[j] + at);
      for (int64_t i = 0; i < kM; ++i) Math::AddDot(q + i * s.width + at, k, sums[i][j]);
    }
  for (int64_t i = 0; i < kM; ++i)
    V::StoreSum4(scores + (row + i) * kFewBlock + key, sums[i][0].All(), sums[i][1].All(),
                 sums[i][2].All(), sums[i][3].All());
}

// Rounds the keys of the block at `begin`, four at a time, and takes scores with them.
template <class V, class Math>
void FewScores(const DecodeTask& t, int64_t begin, FewScratch<Math>& s, FewRows& a) {
  ForEachRun<kFewRows>(a.rows, [&](int64_t row, auto rows) {
    for (int64_t key = 0; key < s.count; key += 4) {
      if (row == 0) {
        s.ahead.template Ask<V>();
        RoundCachedRows<V>(t.cache, CachedRowOf(t, begin + key), Min(4, s.count - key),
                           s.keys + key * s.stride, s.stride);
      }
      FewDotTile<V, decltype(rows)::value>(s, row, key, a.p);
    }
  });
}

// Values of keys [begin, end) added to the outputs of kM rows from `row`, in kN chunks of columns;
// begin is a multiple of Math::kTogether.
struct FewRange {
  int64_t row, column, begin, end;
  bool scale;  // by the rows' factors first
};
template <class V, int64_t kM, int64_t kN, class Math>
inline void FewOuterTile(FewScratch<Math>& s, const FewRows& a, const FewRange& r) {
  float* const o = s.o + r.row * s.width + r.column;
  typename V::Vec acc[kM][2 * kN];
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < 2 * kN; ++j) {
      acc[i][j] = V::Load(o + i * s.width + j * V::kLanes);
      if (r.scale) acc[i][j] = V::Mul(acc[i][j], V::Set1(a.factor[r.row + i]));
    }
  const BF16* v = s.keys + r.begin * s.stride + r.column;
  const typename Math::Q* p = s.p + r.row * kFewBlock + r.begin;
  const auto add = [&](bool all) __attribute__((always_inline)) {
    for (int64_t j = 0; j < kN; ++j) {
      const auto values = Math::LoadValues(v + j * kChunk, s.stride, all);
      for (int64_t i = 0; i < kM; ++i)
        Math::AddValues(Math::SetProbabilities(p + i * kFewBlock), values, acc[i][2 * j],
                        acc[i][2 * j + 1]);
    }
  };
  int64_t n = r.begin;
  for (; n + Math::kTogether <= r.end; n += Math::kTogether) {
    add(true);
    v += Math::kTogether * s.stride;
    p += Math::kTogether;
  }
  if (n < r.end) add(false);
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < 2 * kN; ++j) V::Store(o + i * s.width + j * V::kLanes, acc[i][j]);
}

// o = factor·o + P·V. Keys that all rows of a tile see are added together, others row by row:
// values that a row does not see may be anything.
template <class V, class Math>
void AddFewValues(FewScratch<Math>& s, const FewRows& a) {
  for (int64_t i = 0; i < a.rows; ++i)
    Math::TakeProbabilities(a.p + i * kFewBlock, s.p + i * kFewBlock);
  ForEachRun<4>(a.v_width / kChunk, [&](int64_t chunk, auto chunks) {
    constexpr int64_t kN = decltype(chunks)::value;
    ForEachRun<kFewRows>(a.rows, [&](int64_t row, auto rows) {
      constexpr int64_t kM = decltype(rows)::value;
      int64_t common = s.count;
      for (int64_t i = 0; i < kM; ++i) common = Min(common, Max(a.visible[row + i], 0));
      if (common < s.count) common -= common % Math::kTogether;
      FewOuterTile<V, kM, kN>(s, a, {row, chunk * kChunk, 0, common, true});
      for (int64_t i = row; i < row + kM; ++i)
        if (a.visible[i] > common)
          FewOuterTile<V, 1, kN>(s, a, {i, chunk * kChunk, common, a.visible[i], false});
    });
  });
}

// Brings the columns of the outputs into order.
template <class V, class Math>
void StoreFew(const FewScratch<Math>& s, const FewRows& a, int64_t columns, const Partial& out) {
  for (int64_t i = 0; i < a.rows; ++i) {
    float* const o = out.o + i * columns;
    for (int64_t at = 0; at < columns; at += kChunk) {
      const typename V::Vec first = V::Load(s.o + i * s.width + at);
      const typename V::Vec second = V::Load(s.o + i * s.width + at + V::kLanes);
      StoreNext<V>(o + at, Math::FirstColumns(first, second), columns - at);
      const int64_t rest = columns - at - V::kLanes;
      if (rest > 0) StoreNext<V>(o + at + V::kLanes, Math::LastColumns(first, second), rest);
    }
  }
  StoreMaxAndSum(a, out);
}

// Requires: t.cache is quantised or plain bf16; t.page_tokens is a multiple of 16.
template <class V>
void MlaDecodeFew(const DecodeTask& t) {
  auto& s = InScratch<FewScratch<FewMath<V>>>(t.scratch);
  s.width = RoundUp(t.c + t.r, kChunk);
  s.stride = s.width | kChunk;
  TakeFewQueries<V>(t, s);
  FewRows a;
  a.rows = t.rows;
  a.v_width = RoundUp(t.c, kChunk);  // behind the last column lies what is not stored
  a.o = s.o;
  a.o_stride = s.width;
  a.scale = t.scale;
  for (int64_t part = 0; part < t.splits; ++part) {
    const DecodeSplit split = TakeSplit(t, part);
    Start(a);
    for (int64_t begin = split.begin; begin < split.end; begin += kFewBlock) {
      s.count = Min(kFewBlock, split.end - begin);
      if ((begin - split.begin) % kFewAhead == 0)
        s.ahead.Start(t, begin + kFewAhead, kFewAhead, 16, kFewAhead / 4);
      for (int64_t i = 0; i < t.rows; ++i) a.visible[i] = Min(s.count, t.q[i].visible - begin);
      FewScores<V>(t, begin, s, a);
      Softmax<V>(a);
      AddFewValues<V>(s, a);
    }
    StoreFew<V>(s, a, t.c, split.out);
  }
}

}  // namespace
}  // namespace latte::cpu
