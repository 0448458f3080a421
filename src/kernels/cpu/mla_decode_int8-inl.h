// mla_decode on int8: absorbed attention to an int8 cache, both products of bytes, added exactly.
//
// Rounding  queries to signed bytes, with one scale per row for the latent and one for the rope
//           part; probabilities, times the scale of their key, to unsigned bytes per row and block
//           of 128 keys. Scores and sums of probabilities, and with them lse, are f32.
// Work      tasks as in mla_decode-inl.h. Once per block and for all rows of the task, keys are
//           turned to fours of dimensions, 16 keys side by side, and values to fours of keys, 16
//           columns side by side, so that neither product has sums to take across a vector:
//
//             keys, one panel per 16 keys                  values, one panel per 16 columns
//             dims 0–3 │ key 0 … key 15, 4 bytes each      keys 0–3 │ column 0 … 15
//             dims 4–7 │                                   keys 4–7 │
//
//           A tile is kTileRows rows × 4 panels in both. The products need one unsigned operand:
//           key bytes are shifted by 128, and 128·Σq is what each sum starts from.
// Order     sums of integers are exact; blocks of 128 keys anchored at position 0. Neither grouping
//           of rows nor page size, batch or threads change a byte.
// Limits    C+R ≤ 1152; stack 850 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/attention-inl.h"
#include "src/kernels/cpu/cached_row-inl.h"
#include "src/kernels/cpu/partial-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/tiles-inl.h"

namespace latte::cpu {
namespace {

constexpr int64_t kByteBlock = 128;
constexpr int64_t kByteFours = kByteBlock / 4;
// Bytes of a row of a panel: 16 keys or columns of four bytes.
constexpr int64_t kFours = 64;
// Widths in scratch are multiples of 64, latent and rope part each.
constexpr int64_t kMaxByteWidth = kMaxDecodeWidth + 128;

using ByteAttentionRows = AttentionRows<kByteBlock, kMaxDecodeRows>;

struct ByteScratch {
  alignas(64) int8_t q[kMaxDecodeRows * kMaxByteWidth];
  alignas(64) uint8_t keys[kByteBlock * kMaxByteWidth];                 // panels of 16 keys
  alignas(64) int8_t values[kMaxByteWidth / 16 * kByteFours * kFours];  // panels of 16 columns
  alignas(64) uint8_t p[kMaxDecodeRows * kByteBlock];
  alignas(64) float latent_scale[kByteBlock];  // of the block's keys
  alignas(64) float rope_scale[kByteBlock];
  const char* rows[kByteBlock];         // of the block as cached; behind its end, zeros
  int32_t latent_bias[kMaxDecodeRows];  // −128·Σ of a query's bytes
  int32_t rope_bias[kMaxDecodeRows];
  float q_latent_scale[kMaxDecodeRows];
  float q_rope_scale[kMaxDecodeRows];
  float p_scale[kMaxDecodeRows];  // what a byte of p stands for
  int64_t c, r;                   // multiples of 64
  int64_t count;
};

constexpr int64_t RoundUp64(int64_t x) { return (x + 63) / 64 * 64; }

// x as signed bytes, zeros up to a multiple of 64 behind them; returns the scale and −128·Σ.
template <class V>
float QuantiseQuery(const float* x, int64_t count, int8_t* to, int32_t* bias) {
  typename V::Vec top = V::Zero();
  for (int64_t i = 0; i < count; i += V::kLanes)
    top = V::Max(V::Abs(LoadNext<V>(x + i, count - i)), top);
  const float max = V::MaxOf(top);
  const float inverse = max > 0x1p-100f ? 127.0f / max : 0.0f;
  int32_t sum = 0;
  for (int64_t i = 0; i < RoundUp64(count); i += V::kLanes) {
    const typename V::Vec v = i < count ? LoadNext<V>(x + i, count - i) : V::Zero();
    V::StoreSignedBytes(to + i, V::Mul(v, V::Set1(inverse)));
  }
  for (int64_t i = 0; i < count; ++i) sum += to[i];
  *bias = -128 * sum;
  // A NaN hides from max, but not from this sum.
  typename V::Vec all = V::Zero();
  for (int64_t i = 0; i < count; i += V::kLanes)
    all = V::Add(all, V::Mul(LoadNext<V>(x + i, count - i), V::Zero()));
  return max / 127.0f + V::Sum(all);
}

// Finds the block's rows and their scales.
template <class V>
void TakeBytes(const DecodeTask& t, int64_t begin, ByteScratch& s) {
  alignas(64) static constexpr char kZeros[kMaxByteWidth + 8] = {};
  s.count = Min(kByteBlock, t.key_end - begin);
  for (int64_t j = 0; j < kByteBlock; ++j) {
    const bool in = j < s.count;
    s.rows[j] = in ? CachedRowOf(t, begin + j) : kZeros;
    s.latent_scale[j] = in ? FloatFrom(s.rows[j] + t.cache.scales_at) : 0.0f;
    s.rope_scale[j] = in ? FloatFrom(s.rows[j] + t.cache.scales_at + 4) : 0.0f;
  }
}

// Asks for four rows of the next block.
template <class V>
void PrefetchBytes(const DecodeTask& t, int64_t key) {
  for (int64_t j = key; j < Min(key + 4, t.key_end); ++j) {
    const char* const row = CachedRowOf(t, j);
    for (int64_t at = 0; at < t.cache.bytes; at += 64) V::Prefetch(row + at);
  }
}

// 64 bytes of 16 keys at a time to 16 rows of a panel.
template <class V>
void TurnKeys(const DecodeTask& t, ByteScratch& s) {
  const int64_t panel = 16 * (s.c + s.r);
  const auto turn = [&](int64_t from, int64_t width, int64_t to) {
    for (int64_t at = 0; at < width; at += 64)
      for (int64_t key = 0; key < kByteBlock; key += 16)
        V::TurnFours(s.rows + key, from + at, Min(64, width - at),
                     s.keys + key / 16 * panel + (to + at) * 16);
  };
  turn(0, t.c, 0);
  turn(t.cache.rope_at, t.r, s.c);
}

// Values of four keys at a time, 64 columns to four panels.
template <class V>
void ZipBytes(const DecodeTask& t, ByteScratch& s) {
  for (int64_t key = 0; key < s.count; key += 4)
    for (int64_t at = 0; at < t.c; at += 64)
      V::ZipFours(s.rows + key, at, Min(64, t.c - at),
                  s.values + (at / 16 * kByteFours + key / 4) * kFours, kByteFours * kFours);
}

// Σ q·k of kM rows from `row` with 16·kN keys, `fours` rows of panels from the first `q` and `w`.
// In line, or the sums would live in memory.
template <class V, int64_t kM, int64_t kN>
[[gnu::always_inline]] inline void DotFours(const int8_t* q, int64_t q_stride, const uint8_t* w,
                                            int64_t panel, int64_t fours, const int32_t* bias,
                                            typename V::Ints (&acc)[kM][kN]) {
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) acc[i][j] = V::SetInt(bias[i]);
  for (int64_t n = 0; n < fours; ++n, w += kFours, q += 4) {
    typename V::Ints k[kN];
    for (int64_t j = 0; j < kN; ++j) k[j] = V::LoadBytes(w + j * panel);
    for (int64_t i = 0; i < kM; ++i) {
      const typename V::Ints qi = V::SetFour(q + i * q_stride);
      for (int64_t j = 0; j < kN; ++j) acc[i][j] = V::DotBytes(acc[i][j], k[j], qi);
    }
  }
}

// Scores of kM rows from `row` with 64 keys from `key`.
template <class V, int64_t kM>
inline void ByteScoreTile(const ByteScratch& s, int64_t row, int64_t key, ByteAttentionRows& a) {
  const int64_t width = s.c + s.r;
  const uint8_t* const w = s.keys + key * width;
  const int8_t* const q = s.q + row * width;
  float* const p = a.p + row * kByteBlock + key;
  typename V::Ints acc[kM][4];
  DotFours<V, kM, 4>(q, width, w, 16 * width, s.c / 4, s.latent_bias + row, acc);
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < 4; ++j) {
      const typename V::Vec scale =
          V::Mul(V::Load(s.latent_scale + key + 16 * j), V::Set1(s.q_latent_scale[row + i]));
      V::Store(p + i * kByteBlock + 16 * j, V::Mul(V::ToFloat(acc[i][j]), scale));
    }
  if (s.r == 0) return;
  DotFours<V, kM, 4>(q + s.c, width, w + 16 * s.c, 16 * width, s.r / 4, s.rope_bias + row, acc);
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < 4; ++j) {
      float* const to = p + i * kByteBlock + 16 * j;
      const typename V::Vec scale =
          V::Mul(V::Load(s.rope_scale + key + 16 * j), V::Set1(s.q_rope_scale[row + i]));
      V::Store(to, V::Fma(V::ToFloat(acc[i][j]), scale, V::Load(to)));
    }
}

template <class V>
void ByteScores(const DecodeTask& t, int64_t begin, const ByteScratch& s, ByteAttentionRows& a) {
  ForEachRun<V::kTileRows>(a.rows, [&](int64_t row, auto rows) {
    for (int64_t key = 0; key < s.count; key += 64)
      ByteScoreTile<V, decltype(rows)::value>(s, row, key, a);
    const int64_t next = begin + kByteBlock;
    const int64_t from = row * kByteBlock / a.rows / 4 * 4;
    const int64_t to = (row + decltype(rows)::value) * kByteBlock / a.rows / 4 * 4;
    for (int64_t key = from; key < to; key += 4) PrefetchBytes<V>(t, next + key);
  });
}

// Probabilities times the scales of their keys, as unsigned bytes of which the largest is 255.
template <class V>
void QuantiseProbabilities(ByteScratch& s, const ByteAttentionRows& a) {
  for (int64_t i = 0; i < a.rows; ++i) {
    uint8_t* const to = s.p + i * kByteBlock;
    const float* const p = a.p + i * kByteBlock;
    typename V::Vec w[kByteBlock / V::kLanes];
    typename V::Vec top = V::Zero();
    for (int64_t j = 0; j < kByteBlock; j += V::kLanes) {
      // Hidden keys may have any scale: their weight is zero, not zero times it.
      const int64_t seen = Max(0, Min(a.visible[i] - j, V::kLanes));
      w[j / V::kLanes] =
          V::Mul(V::LoadPartial(p + j, seen), V::LoadPartial(s.latent_scale + j, seen));
      top = V::Max(w[j / V::kLanes], top);
    }
    const float max = V::MaxOf(top);
    const typename V::Vec inverse = V::Set1(max > 0x1p-100f ? 255.0f / max : 0.0f);
    for (int64_t j = 0; j < kByteBlock; j += V::kLanes)
      V::StoreUnsignedBytes(to + j, V::Mul(w[j / V::kLanes], inverse));
    s.p_scale[i] = max / 255.0f;
  }
}

// Outputs of kM rows from `row`, 16·kN columns from `column`; a single vector may be partial.
template <class V, int64_t kM, int64_t kN>
inline void ByteOuterTile(const ByteScratch& s, const ByteAttentionRows& a, int64_t row,
                          int64_t column) {
  typename V::Ints acc[kM][kN];
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) acc[i][j] = V::ZeroInts();
  const int8_t* w = s.values + column / 16 * kByteFours * kFours;
  const uint8_t* p = s.p + row * kByteBlock;
  for (int64_t n = 0; n < (s.count + 3) / 4; ++n, w += kFours, p += 4) {
    typename V::Ints v[kN];
    for (int64_t j = 0; j < kN; ++j) v[j] = V::LoadBytes(w + j * kByteFours * kFours);
    for (int64_t i = 0; i < kM; ++i) {
      const typename V::Ints pi = V::SetFour(p + i * kByteBlock);
      for (int64_t j = 0; j < kN; ++j) acc[i][j] = V::DotBytes(acc[i][j], pi, v[j]);
    }
  }
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) {
      const int64_t rest = kN == 1 ? a.v_width - column : V::kLanes;
      float* const o = a.o + (row + i) * a.o_stride + column + j * V::kLanes;
      const typename V::Vec old = V::Mul(LoadNext<V>(o, rest), V::Set1(a.factor[row + i]));
      StoreNext<V>(o, V::Fma(V::ToFloat(acc[i][j]), V::Set1(s.p_scale[row + i]), old), rest);
    }
}

template <class V>
void AddByteValues(const ByteScratch& s, const ByteAttentionRows& a) {
  ForEachColumnRun<V, 4>(a.v_width, [&](int64_t column, auto vectors, int64_t) {
    ForEachRun<V::kTileRows>(a.rows, [&](int64_t row, auto rows) {
      ByteOuterTile<V, decltype(rows)::value, decltype(vectors)::value>(s, a, row, column);
    });
  });
}

// Requires: t.cache is kI8.
template <class V>
void MlaDecodeInt8(const DecodeTask& t) {
  ByteScratch s;
  s.c = RoundUp64(t.c);
  s.r = RoundUp64(t.r);
  for (int64_t i = 0; i < t.rows; ++i) {
    int8_t* const q = s.q + i * (s.c + s.r);
    s.q_latent_scale[i] = QuantiseQuery<V>(t.q[i].q_latent, t.c, q, s.latent_bias + i);
    s.q_rope_scale[i] = QuantiseQuery<V>(t.q[i].q_rope, t.r, q + s.c, s.rope_bias + i);
  }
  ByteAttentionRows a;
  a.rows = t.rows;
  a.v_width = t.c;
  a.o = t.out.o;
  a.o_stride = t.c;
  a.scale = t.scale;
  Start(a);
  for (int64_t begin = t.key_begin; begin < t.key_end; begin += kByteBlock) {
    TakeBytes<V>(t, begin, s);
    TurnKeys<V>(t, s);
    for (int64_t i = 0; i < t.rows; ++i) a.visible[i] = Min(s.count, t.q[i].visible - begin);
    ByteScores<V>(t, begin, s, a);
    Softmax<V>(a);
    QuantiseProbabilities<V>(s, a);
    ZipBytes<V>(t, s);
    AddByteValues<V>(s, a);
  }
  StoreMaxAndSum(a, t.out);
}

}  // namespace
}  // namespace latte::cpu
