// What mla_decode_int8-inl.h works on, and queries as bytes in the order that it reads them in.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/ahead-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/tiles-inl.h"

namespace latte::cpu {
namespace {

constexpr int64_t kByteKeys = 256;  // keys
constexpr int64_t kByteRun = 16;    // keys that are read at a fixed distance from one another
constexpr int64_t kByteRuns = kByteKeys / kByteRun;
constexpr int64_t kByteLanes = 16;  // rows of a group
constexpr int64_t kByteGroups = kMaxTileRows / kByteLanes;
constexpr int64_t kFours = 64;    // bytes of a vector of fours of a row or column each
constexpr int64_t kEights = 128;  // of two vectors with eights of 16 rows
constexpr int64_t kStrip = 64;    // columns that are zipped at once
constexpr int64_t kPlanes = 3;    // of a query: latent, upper and lower bytes of the rope part
// Of any plane, and of a query or a row as cached, scales included.
constexpr int64_t kMaxPlane = (kMaxDecodeWidth + 63) / 64 * 64;
constexpr int64_t kMaxByteQuery = kMaxPlane + 2 * kMaxByteRope + kPlanes * 64;

constexpr int64_t RoundUp64(int64_t x) { return (x + 63) / 64 * 64; }

// Sixteen rows.
struct ByteGroup {
  alignas(64) float max[kByteLanes];
  alignas(64) float sum[kByteLanes];
  alignas(64) float factor[kByteLanes];        // of the current block
  alignas(64) float p_scale[kByteLanes];       // what a byte of a weight stands for
  alignas(64) float latent_scale[kByteLanes];  // of queries, times the softmax's
  alignas(64) float rope_scale[kByteLanes];
  alignas(64) int32_t latent_bias[kByteLanes];  // −128·Σ of a query's bytes
  alignas(64) int32_t rope_bias[kByteLanes];    // the same of its rope part, in units of 256
  alignas(64) int32_t visible[kByteLanes];      // keys of the current block that the row sees
  int64_t least, most;                          // of visible
};

struct ByteDecode {
  ByteGroup groups[kByteGroups];
  alignas(64) int8_t q[kByteGroups * kMaxByteQuery * kByteLanes];  // [group][eight][row]
  alignas(64) float scores[kByteGroups * kByteKeys * kByteLanes];  // [group][key][row]
  alignas(64) uint8_t p[kByteGroups * kByteKeys * kByteLanes];     // [group][four][row]
  alignas(64) int8_t values[kByteKeys * kMaxPlane];                // [64 columns][four][vector]
  alignas(64) float o[kMaxTileRows * kMaxPlane];                   // [row][column]
  alignas(64) char copied[kByteKeys * (kMaxDecodeWidth + kMaxByteRope + 8)];  // keys, if need be
  float latent_scale[kByteKeys];                                              // of the block's keys
  float rope_scale[kByteKeys];
  const char* keys[kByteRuns];  // every 16th row of the block
  NextBlock ahead;
  int64_t row_bytes, c, r, rope_at, scales_at;
  int64_t eights[kPlanes];     // of each plane of a query
  int64_t q_group;             // bytes of a group of queries
  int64_t columns;             // C as a multiple of 64
  int64_t group_count, count;  // keys of the block
  bool first;                  // block: nothing is known of o

  int8_t* Q(int64_t group) { return q + group * q_group; }
  float* Scores(int64_t group) { return scores + group * kByteKeys * kByteLanes; }
  int8_t* Values(int64_t column) { return values + column * kByteKeys; }
  uint8_t* P(int64_t group) { return p + group * kByteKeys * kByteLanes; }
  const char* Key(int64_t key) const { return keys[key / kByteRun] + key % kByteRun * row_bytes; }
};

// The largest magnitude of x [count], NaN if one of them is.
template <class V>
float TopOf(const float* x, int64_t count) {
  typename V::Ints top = V::ZeroInts();  // as integers, NaNs are above all numbers
  for (int64_t i = 0; i < count; i += V::kLanes)
    top = V::MaxInts(V::ToIntBits(V::Abs(LoadNext<V>(x + i, count - i))), top);
  return __builtin_bit_cast(float, V::MaxOfInts(top));
}

// x as signed bytes, zeros up to a multiple of 64 behind them.
template <class V>
float QuantiseLatent(const float* x, int64_t count, int8_t* to) {
  const float top = TopOf<V>(x, count);
  const typename V::Vec inverse = V::Set1(top > 0x1p-100f ? 127.0f / top : 0.0f);
  for (int64_t i = 0; i < RoundUp64(count); i += V::kLanes)
    V::StoreSignedBytes(to + i,
                        V::Mul(i < count ? LoadNext<V>(x + i, count - i) : V::Zero(), inverse));
  return top / 127.0f;
}

// x as 16-bit integers: upper bytes, rounded to the nearest, and lower ones.
template <class V>
float QuantiseRope(const float* x, int64_t count, int8_t* high, int8_t* low) {
  constexpr float kTop = 127.0f * 256 + 127;
  const float top = TopOf<V>(x, count);
  const typename V::Vec inverse = V::Set1(top > 0x1p-100f ? kTop / top : 0.0f);
  for (int64_t i = 0; i < RoundUp64(count); i += V::kLanes) {
    const typename V::Vec v = i < count ? LoadNext<V>(x + i, count - i) : V::Zero();
    const typename V::Ints whole = V::ToInts(V::Mul(v, inverse));
    const typename V::Ints upper = V::template ShiftRight<8>(V::AddInts(whole, V::SetInt(128)));
    V::StoreLowBytes(high + i, upper);
    V::StoreLowBytes(low + i, whole);
  }
  return top / kTop;
}

template <class V>
int32_t BiasOf(const int8_t* q, int64_t count) {
  typename V::Ints sum = V::ZeroInts();
  for (int64_t i = 0; i < count; i += kFours)
    sum = V::DotBytes(sum, V::SetByte(1), V::LoadBytes(q + i));
  return -128 * V::SumInts(sum);
}

// Bytes of 16 rows, `stride` apart, eight by eight: those of row 0, of row 2 …, of row 1, of row
// 3….
template <class V>
void TurnEights(const int8_t* rows, int64_t stride, int64_t eights, int8_t* to) {
  for (int64_t at = 0; at < eights; at += 8) {
    typename V::Vec fours[kByteLanes];
    for (int64_t i = 0; i < kByteLanes; ++i)
      fours[i] = V::ToFloatBits(V::LoadBytes(rows + i * stride + at * 8));
    V::Transpose(fours);
    for (int64_t i = 0; i < Min(8, eights - at); ++i, to += kEights) {
      const typename V::Ints first = V::ToIntBits(fours[2 * i]);
      const typename V::Ints second = V::ToIntBits(fours[2 * i + 1]);
      V::StoreBytes(to, V::JoinEven(first, second));
      V::StoreBytes(to + kFours, V::JoinOdd(first, second));
    }
  }
}

// Sixteen queries as bytes, zeros behind each.
struct ByteQueries {
  static constexpr int64_t kRope = RoundUp64(kMaxByteRope);
  alignas(64) int8_t latent[kByteLanes][kMaxPlane];
  alignas(64) int8_t high[kByteLanes][kRope];
  alignas(64) int8_t low[kByteLanes][kRope];
};

// Quantises the queries of a group; lanes that have none repeat the last.
template <class V>
void QuantiseQueries(const DecodeTask& t, int64_t group, ByteDecode& s, ByteQueries& q) {
  ByteGroup& g = s.groups[group];
  for (int64_t i = 0; i < kByteLanes; ++i) {
    const DecodeRow& row = t.q[Min(group * kByteLanes + i, t.rows - 1)];
    g.latent_scale[i] = t.scale * QuantiseLatent<V>(row.q_latent, s.c, q.latent[i]);
    g.rope_scale[i] = t.scale * 256.0f * QuantiseRope<V>(row.q_rope, s.r, q.high[i], q.low[i]);
    g.latent_bias[i] = BiasOf<V>(q.latent[i], s.c);
    g.rope_bias[i] = 257 * BiasOf<V>(q.high[i], s.r) + BiasOf<V>(q.low[i], s.r);
  }
}

template <class V>
void PackByteQueries(const DecodeTask& t, int64_t group, ByteDecode& s) {
  ByteQueries q;
  QuantiseQueries<V>(t, group, s, q);
  int8_t* to = s.Q(group);
  TurnEights<V>(q.latent[0], kMaxPlane, s.eights[0], to);
  TurnEights<V>(q.high[0], ByteQueries::kRope, s.eights[1], to += s.eights[0] * kEights);
  TurnEights<V>(q.low[0], ByteQueries::kRope, s.eights[2], to + s.eights[1] * kEights);
}

}  // namespace
}  // namespace latte::cpu
