// Scratch and query packing of the int8 mla_decode kernels (mla_decode_s8_vnni-inl.h and
// mla_decode_amx_s8-inl.h). The rows of a task are (token, head) pairs; 16 of them form a group,
// one per lane.
//
// The latent part of a query becomes s8 with one scale, its rope part s16 with another. Both are
// stored as [4 bytes of a row][16 rows], so that a register holds 4 columns of 16 rows. A
// compensation term, −128 times the sum of the query, corrects for keys that are stored as unsigned
// bytes.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch_pages-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kS8Block = 256;   // keys
constexpr int64_t kS8Segment = 16;  // keys at a constant stride in memory
constexpr int64_t kS8Segments = kS8Block / kS8Segment;
constexpr int64_t kS8Lanes = 16;  // rows of a group
constexpr int64_t kS8Groups = kMaxLargeDecodeRows / kS8Lanes;
constexpr int64_t kVectorBytes = 64;   // one vector: a group of 4 bytes per row or column
constexpr int64_t kStripColumns = 64;  // columns that are interleaved together
// Interleaved values of a block, and 1 KiB of padding: without it, the stores of one segment would
// fall into the same sets of the L1 and evict the queries.
constexpr int64_t kStripBytes = kS8Block * kStripColumns + kS8Segment * kStripColumns;
// The largest magnitude of an s16 in a key's rope part: 127·256 + 127, less two bits.
constexpr int64_t kMaxKeyS16 = (127 * 256 + 127 + 2) / 4;
// The widest latent part, and the largest packed query of one row.
constexpr int64_t kMaxS8Columns = (kMaxDecodeWidth + 63) / 64 * 64;
constexpr int64_t kMaxS8Query = kMaxS8Columns + 2 * kMaxS8Rope + 3 * 64;

constexpr int64_t RoundUp64(int64_t x) { return (x + 63) / 64 * 64; }
// The largest magnitude of an s16 in a query's rope part, such that sums of r products fit s32.
constexpr int64_t MaxQueryS16(int64_t r) {
  return Min(32767, 0x7fffffff / (Max(r, 1) * kMaxKeyS16));
}

// State of a group of 16 rows.
struct S8Group {
  alignas(64) float max[kS8Lanes];
  alignas(64) float sum[kS8Lanes];
  alignas(64) float factor[kS8Lanes];        // of the current block
  alignas(64) float p_scale[kS8Lanes];       // value of one unit of a u8 probability
  alignas(64) float latent_scale[kS8Lanes];  // scale of the query, times the scale of the softmax
  alignas(64) float rope_scale[kS8Lanes];
  alignas(64) int32_t latent_compensation[kS8Lanes];  // −128·Σ of the query's bytes
  alignas(64) int32_t rope_compensation[kS8Lanes];    // AMX: the same of the rope part, / 256
  alignas(64) int32_t visible[kS8Lanes];              // keys of the current block that the row sees
  int64_t least, most;                                // of visible
};

struct S8Scratch {
  S8Group groups[kS8Groups];
  alignas(64) int8_t q[kS8Groups * kMaxS8Query * kS8Lanes];   // [group][dims/4][row][4]
  alignas(64) float scores[kS8Groups * kS8Block * kS8Lanes];  // [group][key][row]
  alignas(64) uint8_t p[kS8Groups * kS8Block * kS8Lanes];     // [group][keys/4][row][4]
  alignas(
      64) int8_t values[kMaxS8Columns / kStripColumns * kStripBytes];  // [strip][keys/4][vector]
  alignas(64) int16_t rope_s16[kS8Block * kMaxS8Rope];                 // [key][R, multiple of 64]
  alignas(64) float o[kMaxLargeDecodeRows * kMaxS8Columns];            // [row][column]
  // Rows of segments that cross pages.
  alignas(64) char copied[kS8Block * (kMaxDecodeWidth + kMaxS8Rope + 8)];
  float latent_scale[kS8Block];  // of the block's keys
  float rope_scale[kS8Block];
  const char* keys[kS8Segments];  // every 16th row of the block
  PagePrefetch prefetch;
  int64_t row_bytes, c, r, rope_at, scales_at;
  int64_t latent_columns;      // C rounded up to a multiple of 8
  int64_t q_group;             // bytes of a group of queries
  int64_t columns;             // C rounded up to a multiple of 64
  int64_t group_count, count;  // keys of the block
  bool first;                  // first block of the split: o is not read
  bool prefetch_in_scores;     // whether score tiles prefetch the next block

  int8_t* Q(int64_t group) { return q + group * q_group; }
  float* Scores(int64_t group) { return scores + group * kS8Block * kS8Lanes; }
  int8_t* Values(int64_t column) { return values + column / kStripColumns * kStripBytes; }
  uint8_t* P(int64_t group) { return p + group * kS8Block * kS8Lanes; }
  int64_t RopeS16Bytes() const { return 2 * RoundUp64(r); }
  char* RopeS16(int64_t key) { return reinterpret_cast<char*>(rope_s16) + key * RopeS16Bytes(); }
  const char* Key(int64_t key) const {
    return keys[key / kS8Segment] + key % kS8Segment * row_bytes;
  }
};

// The largest magnitude of x [count]; NaN if one of them is NaN.
template <class V>
float MaxMagnitudeOf(const float* x, int64_t count) {
  typename V::Ints top = V::ZeroInts();  // as integers, NaNs are larger than all numbers
  for (int64_t i = 0; i < count; i += V::kLanes)
    top = V::MaxInts(V::ToIntBits(V::Abs(LoadNext<V>(x + i, count - i))), top);
  return __builtin_bit_cast(float, V::MaxOfInts(top));
}

// Quantises x to s8, zeros up to a multiple of 64. Returns the scale.
template <class V>
float QuantiseLatent(const float* x, int64_t count, int8_t* to) {
  const float top = MaxMagnitudeOf<V>(x, count);
  const typename V::Vec inverse = V::Set1(top > 0x1p-100f ? 127.0f / top : 0.0f);
  for (int64_t i = 0; i < RoundUp64(count); i += V::kLanes)
    V::StoreSignedBytes(to + i,
                        V::Mul(i < count ? LoadNext<V>(x + i, count - i) : V::Zero(), inverse));
  return top / 127.0f;
}

// Quantises x to s16 in the column order that JoinBytes gives keys, zeros up to a multiple of 64.
// Returns the scale.
template <class V>
float QuantiseRope(const float* x, int64_t count, int16_t* to) {
  const auto largest = static_cast<float>(MaxQueryS16(count));
  const float top = MaxMagnitudeOf<V>(x, count);
  const typename V::Vec inverse = V::Set1(top > 0x1p-100f ? largest / top : 0.0f);
  for (int64_t i = 0; i < RoundUp64(count); i += V::kLanes) {
    const typename V::Vec v = i < count ? LoadNext<V>(x + i, count - i) : V::Zero();
    int16_t* const first = to + i / 64 * 64 + i % 64 / 2;
    V::StoreLowWords(first, first + 32, V::ToInts(V::Mul(v, inverse)));
  }
  return top / largest;
}

template <class V>
int32_t CompensationOf(const int8_t* q, int64_t count) {
  typename V::Ints sum = V::ZeroInts();
  for (int64_t i = 0; i < count; i += kVectorBytes)
    sum = V::DotBytes(sum, V::SetByte(1), V::LoadBytes(q + i));
  return -128 * V::SumInts(sum);
}

// The query in lane i of a group. Lanes past the last row repeat the last row.
inline const DecodeQuery& QueryOf(const DecodeTask& t, int64_t group, int64_t i) {
  return t.q[Min(group * kS8Lanes + i, t.rows - 1)];
}

// Packs 16 rows of bytes, `stride` apart, by groups of 4 bytes: [columns/4][row][4] if two groups
// of rows share a score tile. For a single group of rows, two vectors hold 8 columns per row, with
// the second 4 bytes of a row in its neighbour's lane of the other vector.
template <class V>
void TransposeGroups(const int8_t* rows, int64_t stride, int64_t columns, bool two_groups,
                     int8_t* to) {
  for (int64_t at = 0; at < columns; at += 64) {
    typename V::Vec groups[kS8Lanes];
    for (int64_t i = 0; i < kS8Lanes; ++i)
      groups[i] = V::ToFloatBits(V::LoadBytes(rows + i * stride + at));
    V::Transpose(groups);
    for (int64_t i = 0; i < Min(16, (columns - at) / 4); i += 2, to += 2 * kVectorBytes) {
      const typename V::Ints first = V::ToIntBits(groups[i]);
      const typename V::Ints second = V::ToIntBits(groups[i + 1]);
      V::StoreBytes(to, two_groups ? first : V::MixLanes(first, second));
      V::StoreBytes(to + kVectorBytes,
                    two_groups ? second : V::SwapLanes(V::MixLanes(second, first)));
    }
  }
}

// Quantises the latent parts of 16 queries, and sets their scale and compensation.
template <class V>
void QuantiseLatents(const DecodeTask& t, int64_t group, S8Scratch& s,
                     int8_t (&latents)[kS8Lanes][kMaxS8Columns]) {
  S8Group& g = s.groups[group];
  for (int64_t i = 0; i < kS8Lanes; ++i) {
    const float* const q = QueryOf(t, group, i).q_latent;
    g.latent_scale[i] = t.scale * QuantiseLatent<V>(q, s.c, latents[i]);
    g.latent_compensation[i] = CompensationOf<V>(latents[i], s.c);
  }
}

template <class V>
void PackS8Queries(const DecodeTask& t, int64_t group, S8Scratch& s) {
  alignas(64) int8_t latents[kS8Lanes][kMaxS8Columns];
  QuantiseLatents<V>(t, group, s, latents);
  const bool two_groups = group < s.group_count / 2 * 2;
  TransposeGroups<V>(latents[0], kMaxS8Columns, s.latent_columns, two_groups, s.Q(group));
  alignas(64) int16_t ropes[kS8Lanes][kMaxS8Rope];
  // The kernel drops two bits of a key's s16, hence the factor 4.
  for (int64_t i = 0; i < kS8Lanes; ++i)
    s.groups[group].rope_scale[i] =
        4 * t.scale * QuantiseRope<V>(QueryOf(t, group, i).q_rope, s.r, ropes[i]);
  TransposeGroups<V>(reinterpret_cast<const int8_t*>(ropes), sizeof(ropes[0]), s.RopeS16Bytes(),
                     two_groups, s.Q(group) + s.latent_columns * kS8Lanes);
}

}  // namespace
}  // namespace latte::cpu
