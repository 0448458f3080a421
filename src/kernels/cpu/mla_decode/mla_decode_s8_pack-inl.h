// What mla_decode_s8_vnni-inl.h works on, and queries as bytes in the order that it reads them in.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/mla_decode/prefetch_pages-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kByteKeys = 256;  // keys
constexpr int64_t kByteRun = 16;    // keys that are read at a fixed distance from one another
constexpr int64_t kByteRuns = kByteKeys / kByteRun;
constexpr int64_t kByteLanes = 16;  // rows of a group
constexpr int64_t kByteGroups = kMaxTileRows / kByteLanes;
constexpr int64_t kFours = 64;  // bytes of a vector of fours of a row or column each
constexpr int64_t kStrip = 64;  // columns that are zipped at once
// Zipped values of a block, and 1 KiB more: what a run of keys writes to strips would lie in the
// same sets of the L1 and drive the queries out of it.
constexpr int64_t kStripBytes = kByteKeys * kStrip + kByteRun * kStrip;
// The largest magnitude of a word of a key's rope part: 127·256 + 127 less two bits.
constexpr int64_t kMaxKeyWord = (127 * 256 + 127 + 2) / 4;
// Of any plane, and of a query or a row as cached, scales included.
constexpr int64_t kMaxPlane = (kMaxDecodeWidth + 63) / 64 * 64;
constexpr int64_t kMaxByteQuery = kMaxPlane + 2 * kMaxByteRope + 3 * 64;

constexpr int64_t RoundUp64(int64_t x) { return (x + 63) / 64 * 64; }
// The largest magnitude of a word of a query's rope part, so that sums fit 32 bits.
constexpr int64_t MaxQueryWord(int64_t r) {
  return Min(32767, 0x7fffffff / (Max(r, 1) * kMaxKeyWord));
}

// Sixteen rows.
struct ByteGroup {
  alignas(64) float max[kByteLanes];
  alignas(64) float sum[kByteLanes];
  alignas(64) float factor[kByteLanes];        // of the current block
  alignas(64) float p_scale[kByteLanes];       // what a byte of a weight stands for
  alignas(64) float latent_scale[kByteLanes];  // of queries, times the softmax's
  alignas(64) float rope_scale[kByteLanes];
  alignas(64) int32_t latent_bias[kByteLanes];  // −128·Σ of a query's bytes
  alignas(64) int32_t rope_bias[kByteLanes];    // for tiles: that of the rope part / 256
  alignas(64) int32_t visible[kByteLanes];      // keys of the current block that the row sees
  int64_t least, most;                          // of visible
};

struct ByteDecode {
  ByteGroup groups[kByteGroups];
  alignas(64) int8_t q[kByteGroups * kMaxByteQuery * kByteLanes];  // [group][fours of dims][row]
  alignas(64) float scores[kByteGroups * kByteKeys * kByteLanes];  // [group][key][row]
  alignas(64) uint8_t p[kByteGroups * kByteKeys * kByteLanes];     // [group][four][row]
  alignas(64) int8_t values[kMaxPlane / kStrip * kStripBytes];     // [64 columns][four][vector]
  alignas(64) int16_t words[kByteKeys * kMaxByteRope];             // [key][R, multiple of 64]
  alignas(64) float o[kMaxTileRows * kMaxPlane];                   // [row][column]
  alignas(64) char copied[kByteKeys * (kMaxDecodeWidth + kMaxByteRope + 8)];  // keys, if need be
  float latent_scale[kByteKeys];                                              // of the block's keys
  float rope_scale[kByteKeys];
  const char* keys[kByteRuns];  // every 16th row of the block
  NextBlock ahead;
  int64_t row_bytes, c, r, rope_at, scales_at;
  int64_t latent_columns;      // C as a multiple of 8
  int64_t q_group;             // bytes of a group of queries
  int64_t columns;             // C as a multiple of 64
  int64_t group_count, count;  // keys of the block
  bool first;                  // block: nothing is known of o
  bool asks_in_scores;         // for lines of the next block

  int8_t* Q(int64_t group) { return q + group * q_group; }
  float* Scores(int64_t group) { return scores + group * kByteKeys * kByteLanes; }
  int8_t* Values(int64_t column) { return values + column / kStrip * kStripBytes; }
  uint8_t* P(int64_t group) { return p + group * kByteKeys * kByteLanes; }
  int64_t WordBytes() const { return 2 * RoundUp64(r); }
  char* Words(int64_t key) { return reinterpret_cast<char*>(words) + key * WordBytes(); }
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

// x as words in the order that JoinBytes has keys' in, zeros up to a multiple of 64 behind them.
// Returns what one of them stands for.
template <class V>
float QuantiseRope(const float* x, int64_t count, int16_t* to) {
  const auto largest = static_cast<float>(MaxQueryWord(count));
  const float top = TopOf<V>(x, count);
  const typename V::Vec inverse = V::Set1(top > 0x1p-100f ? largest / top : 0.0f);
  for (int64_t i = 0; i < RoundUp64(count); i += V::kLanes) {
    const typename V::Vec v = i < count ? LoadNext<V>(x + i, count - i) : V::Zero();
    int16_t* const first = to + i / 64 * 64 + i % 64 / 2;
    V::StoreLowWords(first, first + 32, V::ToInts(V::Mul(v, inverse)));
  }
  return top / largest;
}

template <class V>
int32_t BiasOf(const int8_t* q, int64_t count) {
  typename V::Ints sum = V::ZeroInts();
  for (int64_t i = 0; i < count; i += kFours)
    sum = V::DotBytes(sum, V::SetByte(1), V::LoadBytes(q + i));
  return -128 * V::SumInts(sum);
}

// The query in lane i of a group; lanes that have none repeat the last.
inline const DecodeRow& QueryOf(const DecodeTask& t, int64_t group, int64_t i) {
  return t.q[Min(group * kByteLanes + i, t.rows - 1)];
}

// Bytes of 16 rows, `stride` apart: four by four, where groups are taken in pairs, or eight by
// eight, the second fours of a row in its neighbour's lane of the other vector.
template <class V>
void TurnRows(const int8_t* rows, int64_t stride, int64_t columns, bool paired, int8_t* to) {
  for (int64_t at = 0; at < columns; at += 64) {
    typename V::Vec fours[kByteLanes];
    for (int64_t i = 0; i < kByteLanes; ++i)
      fours[i] = V::ToFloatBits(V::LoadBytes(rows + i * stride + at));
    V::Transpose(fours);
    for (int64_t i = 0; i < Min(16, (columns - at) / 4); i += 2, to += 2 * kFours) {
      const typename V::Ints first = V::ToIntBits(fours[i]);
      const typename V::Ints second = V::ToIntBits(fours[i + 1]);
      V::StoreBytes(to, paired ? first : V::MixLanes(first, second));
      V::StoreBytes(to + kFours, paired ? second : V::SwapLanes(V::MixLanes(second, first)));
    }
  }
}

// Latent parts of sixteen queries, and what scales their sums.
template <class V>
void QuantiseLatents(const DecodeTask& t, int64_t group, ByteDecode& s,
                     int8_t (&latents)[kByteLanes][kMaxPlane]) {
  ByteGroup& g = s.groups[group];
  for (int64_t i = 0; i < kByteLanes; ++i) {
    const float* const q = QueryOf(t, group, i).q_latent;
    g.latent_scale[i] = t.scale * QuantiseLatent<V>(q, s.c, latents[i]);
    g.latent_bias[i] = BiasOf<V>(latents[i], s.c);
  }
}

template <class V>
void PackByteQueries(const DecodeTask& t, int64_t group, ByteDecode& s) {
  alignas(64) int8_t latents[kByteLanes][kMaxPlane];
  QuantiseLatents<V>(t, group, s, latents);
  const bool paired = group < s.group_count / 2 * 2;
  TurnRows<V>(latents[0], kMaxPlane, s.latent_columns, paired, s.Q(group));
  alignas(64) int16_t ropes[kByteLanes][kMaxByteRope];
  // A key's word is a quarter of what its scale is for.
  for (int64_t i = 0; i < kByteLanes; ++i)
    s.groups[group].rope_scale[i] =
        4 * t.scale * QuantiseRope<V>(QueryOf(t, group, i).q_rope, s.r, ropes[i]);
  TurnRows<V>(reinterpret_cast<const int8_t*>(ropes), sizeof(ropes[0]), s.WordBytes(), paired,
              s.Q(group) + s.latent_columns * kByteLanes);
}

}  // namespace
}  // namespace latte::cpu
