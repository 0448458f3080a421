// mla_decode of few heads on quantised rows: rounded to bf16, multiplied in f32.
//
// Rounding  queries to bf16, once; cached rows to bf16, once per block. Products, probabilities and
//           sums are f32.
// Work      tasks as in mla_decode-inl.h. With a head or two every key is used once or twice, so
//           what is done per key is the time: rows of 64 keys are rounded into scratch that stays
//           near (73 KiB at C+R = 576) and read from there twice, for scores and for values.
//           A vector of 32 bf16 becomes two of f32, its even columns by a shift and its odd ones by
//           a mask; queries and outputs are kept in that order, 16 even and 16 odd columns of 32.
// Roofline  656 bytes of an fp8 row against 576 numbers to round and 2·(2C+R) FLOP per head.
// Figures   docs/kernels/mla_decode.md.
// Order     keys in index order, blocks of 64 anchored at position 0. Even and odd columns of a
//           score are added up apart. Neither grouping of rows nor page size, batch or threads
//           change a byte.
// Limits    C+R ≤ 1152; stack 700 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/ahead-inl.h"
#include "src/kernels/cpu/attention-inl.h"
#include "src/kernels/cpu/pairs-inl.h"
#include "src/kernels/cpu/partial-inl.h"
#include "src/kernels/cpu/rounded_row-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/tiles-inl.h"

namespace latte::cpu {
namespace {

constexpr int64_t kFewBlock = 64;   // keys whose rows stay near
constexpr int64_t kFewAhead = 256;  // keys that are asked for together
constexpr int64_t kFewRows = 3;     // rows of a tile
constexpr int64_t kChunk = 32;      // columns that are widened at once

using FewRows = AttentionRows<kFewBlock, kMaxDecodeRows>;

struct FewScratch {
  alignas(64) float q[kMaxDecodeRows * kMaxDecodeWidth];
  alignas(64) float o[kMaxDecodeRows * kMaxDecodeWidth];
  alignas(64) BF16 keys[kFewBlock * (kMaxDecodeWidth + kChunk)];
  NextBlock ahead;
  int64_t width;   // C+R as a multiple of 32
  int64_t stride;  // of keys: an odd number of lines
  int64_t count;   // keys of the block
};

// Rounds the queries.
template <class V>
void TakeFewQueries(const DecodeTask& t, FewScratch& s) {
  alignas(64) float q[kMaxDecodeWidth];
  alignas(64) BF16 rounded[kMaxDecodeWidth];
  for (int64_t i = 0; i < t.rows; ++i) {
    WidenRow<V>(t.q[i].q_latent, t.c, q);
    WidenRow<V>(t.q[i].q_rope, t.r, q + t.c);
    RoundRow<V>(q, t.c + t.r, rounded);
    float* const to = s.q + i * s.width;
    for (int64_t at = 0; at < s.width; at += kChunk) {
      const typename V::Pairs pairs = V::LoadPairs(rounded + at);
      V::Store(to + at, V::EvenOfPairs(pairs));
      V::Store(to + at + V::kLanes, V::OddOfPairs(pairs));
    }
  }
}

// Scores of kM rows from `row` with four keys.
template <class V, int64_t kM>
inline void FewDotTile(const FewScratch& s, int64_t row, int64_t key, float* scores) {
  const float* const q = s.q + row * s.width;
  const BF16* keys[4];
  for (int64_t j = 0; j < 4; ++j)  // a tile over the edge repeats the last key
    keys[j] = s.keys + Min(key + j, s.count - 1) * s.stride;
  typename V::Vec even[kM][4];
  typename V::Vec odd[kM][4];
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < 4; ++j) even[i][j] = odd[i][j] = V::Zero();
  for (int64_t at = 0; at < s.width; at += kChunk)
    for (int64_t j = 0; j < 4; ++j) {
      const typename V::Pairs k = V::LoadPairs(keys[j] + at);
      const typename V::Vec k_even = V::EvenOfPairs(k);
      const typename V::Vec k_odd = V::OddOfPairs(k);
      for (int64_t i = 0; i < kM; ++i) {
        const float* const x = q + i * s.width + at;
        even[i][j] = V::Fma(V::Load(x), k_even, even[i][j]);
        odd[i][j] = V::Fma(V::Load(x + V::kLanes), k_odd, odd[i][j]);
      }
    }
  for (int64_t i = 0; i < kM; ++i)
    V::StoreSum4(scores + (row + i) * kFewBlock + key, V::Add(even[i][0], odd[i][0]),
                 V::Add(even[i][1], odd[i][1]), V::Add(even[i][2], odd[i][2]),
                 V::Add(even[i][3], odd[i][3]));
}

// Rounds the keys of the block at `begin`, four at a time, and takes scores with them.
template <class V>
void FewScores(const DecodeTask& t, int64_t begin, FewScratch& s, FewRows& a) {
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

// Values of keys [begin, end) added to the outputs of kM rows from `row`, in kN chunks of columns.
struct FewRange {
  int64_t row, column, begin, end;
  bool scale;  // by the rows' factors first
};
template <class V, int64_t kM, int64_t kN>
inline void FewOuterTile(FewScratch& s, const FewRows& a, const FewRange& r) {
  float* const o = s.o + r.row * s.width + r.column;
  typename V::Vec acc[kM][2 * kN];
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < 2 * kN; ++j) {
      acc[i][j] = V::Load(o + i * s.width + j * V::kLanes);
      if (r.scale) acc[i][j] = V::Mul(acc[i][j], V::Set1(a.factor[r.row + i]));
    }
  const BF16* v = s.keys + r.begin * s.stride + r.column;
  const float* p = a.p + r.row * kFewBlock + r.begin;
  for (int64_t n = r.begin; n < r.end; ++n, v += s.stride, ++p)
    for (int64_t j = 0; j < kN; ++j) {
      const typename V::Pairs pairs = V::LoadPairs(v + j * kChunk);
      const typename V::Vec even = V::EvenOfPairs(pairs);
      const typename V::Vec odd = V::OddOfPairs(pairs);
      for (int64_t i = 0; i < kM; ++i) {
        const typename V::Vec pi = V::Set1(p[i * kFewBlock]);
        acc[i][2 * j] = V::Fma(pi, even, acc[i][2 * j]);
        acc[i][2 * j + 1] = V::Fma(pi, odd, acc[i][2 * j + 1]);
      }
    }
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < 2 * kN; ++j) V::Store(o + i * s.width + j * V::kLanes, acc[i][j]);
}

// o = factor·o + P·V. Keys that all rows of a tile see are added together, others row by row:
// values that a row does not see may be anything.
template <class V>
void AddFewValues(FewScratch& s, const FewRows& a) {
  ForEachRun<4>(a.v_width / kChunk, [&](int64_t chunk, auto chunks) {
    constexpr int64_t kN = decltype(chunks)::value;
    ForEachRun<kFewRows>(a.rows, [&](int64_t row, auto rows) {
      constexpr int64_t kM = decltype(rows)::value;
      int64_t common = s.count;
      for (int64_t i = 0; i < kM; ++i) common = Min(common, Max(a.visible[row + i], 0));
      FewOuterTile<V, kM, kN>(s, a, {row, chunk * kChunk, 0, common, true});
      for (int64_t i = row; i < row + kM; ++i)
        if (a.visible[i] > common)
          FewOuterTile<V, 1, kN>(s, a, {i, chunk * kChunk, common, a.visible[i], false});
    });
  });
}

// Brings the columns of the outputs into order.
template <class V>
void StoreFew(const FewScratch& s, const FewRows& a, int64_t columns, const Partial& out) {
  for (int64_t i = 0; i < a.rows; ++i) {
    float* const o = out.o + i * columns;
    for (int64_t at = 0; at < columns; at += kChunk) {
      const typename V::Vec even = V::Load(s.o + i * s.width + at);
      const typename V::Vec odd = V::Load(s.o + i * s.width + at + V::kLanes);
      StoreNext<V>(o + at, V::ZipFloatsLow(even, odd), columns - at);
      const int64_t rest = columns - at - V::kLanes;
      if (rest > 0) StoreNext<V>(o + at + V::kLanes, V::ZipFloatsHigh(even, odd), rest);
    }
  }
  StoreMaxAndSum(a, out);
}

// Requires: t.cache is quantised or plain bf16; t.page_tokens is a multiple of 16.
template <class V>
void MlaDecodeFew(const DecodeTask& t) {
  FewScratch s;
  s.width = RoundUp(t.c + t.r, kChunk);
  s.stride = s.width | kChunk;
  TakeFewQueries<V>(t, s);
  FewRows a;
  a.rows = t.rows;
  a.v_width = RoundUp(t.c, kChunk);  // behind the last column lies what is not stored
  a.o = s.o;
  a.o_stride = s.width;
  a.scale = t.scale;
  Start(a);
  for (int64_t begin = t.key_begin; begin < t.key_end; begin += kFewBlock) {
    s.count = Min(kFewBlock, t.key_end - begin);
    if ((begin - t.key_begin) % kFewAhead == 0)
      s.ahead.Start(t, begin + kFewAhead, kFewAhead, 16, kFewAhead / 4);
    for (int64_t i = 0; i < t.rows; ++i) a.visible[i] = Min(s.count, t.q[i].visible - begin);
    FewScores<V>(t, begin, s, a);
    Softmax<V>(a);
    AddFewValues<V>(s, a);
  }
  StoreFew<V>(s, a, t.c, t.out);
}

}  // namespace
}  // namespace latte::cpu
