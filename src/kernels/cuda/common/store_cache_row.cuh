// Writes a row of the cache in every format: a warp a row, with the bytes of
// src/kernels/ref/cached_row.cc.
#pragma once

#include "src/kernels/cuda/common/cache_rows.cuh"
#include "src/kernels/cuda/common/reduce.cuh"

namespace latte::cuda {

LATTE_DEVICE void Store16(unsigned char* at, uint32_t value) {
  StoreGlobal(at, static_cast<unsigned char>(value));
  StoreGlobal(at + 1, static_cast<unsigned char>(value >> 8));
}
LATTE_DEVICE void StoreFloat(unsigned char* at, float value) {
  Store16(at, FloatBits(value));
  Store16(at + 2, FloatBits(value) >> 16);
}

// Of x[0, count), in every lane of the warp: the largest finite magnitude, and whether there is a
// NaN.
struct Range {
  float top;
  bool has_nan;
};
LATTE_DEVICE Range RangeOf(const float* x, int count) {
  float top = 0;
  int32_t nans = 0;
  for (int i = Lane(); i < count; i += kWarp) {
    const float v = LoadGlobal(x + i);
    if (v != v) nans = 1;
    if (Sub(v, v) == 0.0f) top = Max(top, BitsFloat(FloatBits(v) & 0x7fffffffu));
  }
  return {WarpMax(top), WarpSum(nans) > 0};
}

// How numbers become integers of up to `top`: x · inverse, rounded to nearest, ties to even. All
// are 0 if the largest is so small that quotients by it overflow. A NaN becomes 0, and the stored
// scale NaN.
struct IntegerScale {
  float top, scale, inverse;
  bool has_nan;

  LATTE_DEVICE int Quantise(float x) const {
    if (inverse == 0.0f || x != x) return 0;
    constexpr float kRound = 0x1.8p23f;  // adding it leaves the nearest integer
    return static_cast<int>(Sub(Add(Max(-top, Min(Mul(x, inverse), top)), kRound), kRound));
  }
};
inline constexpr float kSmallestTop = 0x1p-100f;

LATTE_DEVICE IntegerScale ScaleOf(const Range& range, float top) {
  if (range.top < kSmallestTop) return {top, 0.0f, 0.0f, range.has_nan};
  return {top, Div(range.top, top), Div(top, range.top), range.has_nan};
}
// The scale is the smallest bf16 that suffices.
LATTE_DEVICE IntegerScale Bf16ScaleOf(const Range& range, float top) {
  if (range.top < kSmallestTop) return {top, 0.0f, 0.0f, range.has_nan};
  const float exact = Div(range.top, top);
  const uint16_t nearest = FloatToBF16(exact);
  const float scale =
      BF16ToFloat(static_cast<uint16_t>(BF16ToFloat(nearest) < exact ? nearest + 1 : nearest));
  return {top, scale, Div(1.0f, scale), range.has_nan};
}
LATTE_DEVICE float StoredScale(const IntegerScale& s) {
  return s.has_nan ? BitsFloat(0x7fc00000u) : s.scale;
}

// The power of two that scales a group to ±448. Source: DeepSeek's FlashMLA, tests/quant.py.
LATTE_DEVICE float F8Scale(float top) {
  const uint32_t bits = FloatBits(Max(Div(top, 448.0f), 1e-4f));
  return BitsFloat((bits + 0x007fffffu) & 0x7f800000u);
}
// A NaN keeps its sign, which a division may change.
LATTE_DEVICE uint8_t F8Of(float x, float scale) {
  return FloatToF8E4M3(x != x ? x : Div(x, scale));
}

LATTE_DEVICE void StoreF8(const float* x, int count, float scale, unsigned char* to) {
  for (int i = Lane(); i < count; i += kWarp) StoreGlobal(to + i, F8Of(LoadGlobal(x + i), scale));
}

LATTE_DEVICE void StoreF8Groups(const CacheRows& f, const float* latent, unsigned char* row) {
  for (int begin = 0; begin < f.c; begin += kF8Group) {
    const int count = f.c - begin < kF8Group ? f.c - begin : kF8Group;
    const float scale = F8Scale(RangeOf(latent + begin, count).top);
    StoreF8(latent + begin, count, scale, row + begin);
    if (Lane() == 0) StoreFloat(row + f.scales_at + begin / kF8Group * 4, scale);
  }
}

LATTE_DEVICE void StoreI8(const float* x, int count, unsigned char* to, unsigned char* scale_at) {
  const IntegerScale s = ScaleOf(RangeOf(x, count), 127.0f);
  for (int i = Lane(); i < count; i += kWarp)
    StoreGlobal(to + i, static_cast<unsigned char>(s.Quantise(LoadGlobal(x + i)) + 128));
  if (Lane() == 0) StoreFloat(scale_at, StoredScale(s));
}

// High bytes, then low bytes.
LATTE_DEVICE void StoreI16(const float* x, int count, unsigned char* to, unsigned char* scale_at) {
  const IntegerScale s = ScaleOf(RangeOf(x, count), 127.0f * 256 + 127);
  for (int i = Lane(); i < count; i += kWarp) {
    const int code = s.Quantise(LoadGlobal(x + i)) + kI16Offset;
    StoreGlobal(to + i, static_cast<unsigned char>(code >> 8));
    StoreGlobal(to + count + i, static_cast<unsigned char>(code));
  }
  if (Lane() == 0) StoreFloat(scale_at, StoredScale(s));
}

// The code of latent begin + this lane, + 16; 0 past the end. Stores the scale of the group.
LATTE_DEVICE int FiveOfLane(const float* x, int begin, int count, unsigned char* scales) {
  if (begin >= count) return 0;
  const int rest = count - begin;
  const IntegerScale s = Bf16ScaleOf(RangeOf(x + begin, rest < kQ6Group ? rest : kQ6Group), 15.0f);
  if (Lane() == 0) Store16(scales + begin / kQ6Group * 2, FloatToBF16(StoredScale(s)));
  return Lane() < rest ? s.Quantise(LoadGlobal(x + begin + Lane())) + 16 : 0;
}

// 5-bit latents: a lane holds values l and 32 + l of a chunk, whose low bits share byte l. Their
// fifth bits are bits l/8 and 4 + l/8 of byte 32 + l mod 8.
LATTE_DEVICE void StoreFives(const float* x, int count, unsigned char* to, unsigned char* scales) {
  for (int begin = 0; begin < count; begin += kQ6Chunk, to += kQ6ChunkBytes) {
    const int first = FiveOfLane(x, begin, count, scales);
    const int second = FiveOfLane(x, begin + kQ6Group, count, scales);
    StoreGlobal(to + Lane(), static_cast<unsigned char>((first & 15) | (second & 15) << 4));
    int32_t fifths = (first >> 4 | second >> 4 << 4) << Lane() / 8;
    fifths += ShuffleXor(fifths, 8);
    fifths += ShuffleXor(fifths, 16);
    if (Lane() < 8) StoreGlobal(to + 32 + Lane(), static_cast<unsigned char>(fifths));
  }
}

// 12-bit numbers: high bytes, then the low four bits of two numbers in a byte.
LATTE_DEVICE void StoreTwelves(const float* x, int count, unsigned char* to,
                               unsigned char* scale_at) {
  const IntegerScale s = Bf16ScaleOf(RangeOf(x, count), 2047.0f);
  for (int byte = Lane(); byte < (count + 1) / 2; byte += kWarp) {
    const int begin = byte / (kQ6Chunk / 2) * kQ6Chunk;
    const int in_chunk = count - begin < kQ6Chunk ? count - begin : kQ6Chunk;
    const int first = begin + byte % (kQ6Chunk / 2), second = first + (in_chunk + 1) / 2;
    const int low = s.Quantise(LoadGlobal(x + first)) + 2048;
    const int high = second < begin + in_chunk ? s.Quantise(LoadGlobal(x + second)) + 2048 : 0;
    StoreGlobal(to + first, static_cast<unsigned char>(low >> 4));
    if (second < begin + in_chunk) StoreGlobal(to + second, static_cast<unsigned char>(high >> 4));
    StoreGlobal(to + count + byte, static_cast<unsigned char>((low & 15) | (high & 15) << 4));
  }
  if (Lane() == 0) Store16(scale_at, FloatToBF16(StoredScale(s)));
}

// Writes [latent | rope] into a row.
LATTE_DEVICE void StoreRow(const CacheRows& f, int64_t index, const float* latent,
                           const float* rope) {
  unsigned char* const row = f.base + index * f.bytes;
  unsigned char* const rope_at = row + f.rope_at;
  switch (f.kind) {
    case CacheFormat::kF8:
      StoreF8Groups(f, latent, row);
      for (int i = Lane(); i < f.r; i += kWarp)
        Store16(rope_at + 2 * i, FloatToBF16(LoadGlobal(rope + i)));
      return;
    case CacheFormat::kF8Dense:
      StoreF8(latent, f.c, f.descale, row);
      return StoreF8(rope, f.r, f.descale, rope_at);
    case CacheFormat::kI8:
      StoreI8(latent, f.c, row, row + f.scales_at);
      return StoreI16(rope, f.r, rope_at, row + f.scales_at + 4);
    case CacheFormat::kQ6:
      StoreFives(latent, f.c, row, row + f.scales_at);
      return StoreTwelves(rope, f.r, rope_at,
                          row + f.scales_at + (f.c + kQ6Group - 1) / kQ6Group * 2);
    case CacheFormat::kPlain:
      break;
  }
  for (int i = Lane(); i < f.c + f.r; i += kWarp)
    StoreElement(row, f.element, i, LoadGlobal(i < f.c ? latent + i : rope + i - f.c));
}

}  // namespace latte::cuda
