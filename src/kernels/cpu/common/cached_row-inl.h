// Converts cached rows of every format to f32, with the bytes of kernels/ref/cached_row.cc.
// docs/formats/cache.md draws the formats.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// to[i] = scale·from[i]
template <class V, class T>
void WidenScaled(const void* from, int64_t count, float scale, float* to) {
  const auto* const typed = static_cast<const T*>(from);
  const typename V::Vec s = V::Set1(scale);
  int64_t i = 0;
  for (; i + V::kLanes <= count; i += V::kLanes) V::Store(to + i, V::Mul(V::Load(typed + i), s));
  if (i < count)
    V::StorePartial(to + i, V::Mul(V::LoadPartial(typed + i, count - i), s), count - i);
}

inline float FloatFrom(const char* at) {
  float x;
  __builtin_memcpy(&x, at, sizeof(x));
  return x;
}
inline float BF16From(const char* at) {
  uint16_t bits;
  __builtin_memcpy(&bits, at, sizeof(bits));
  return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
}

// The same for e4m3. A chunk with a NaN, and all chunks after it, take the slower path.
template <class V>
void WidenF8(const char* from, int64_t count, float scale, float* to) {
  constexpr int64_t kNumbers = 64;
  const auto* const numbers = reinterpret_cast<const F8*>(from);
  const typename V::Vec by = V::Set1(0x1p8f * scale);
  int64_t at = 0;
  if (scale < 0x1p119f)  // 2⁸·scale is finite
    for (; at + kNumbers <= count && !V::AnyNaN(numbers + at); at += kNumbers)
      for (int64_t i = at; i < at + kNumbers; i += V::kLanes)
        V::Store(to + i, V::Mul(V::LoadSmall(numbers + i), by));
  WidenScaled<V, F8>(numbers + at, count - at, scale, to + at);
}

template <class V>
void WidenF8Groups(const CachedRowLayout& f, const char* row, float* to) {
  constexpr int64_t kGroup = 128;
  for (int64_t at = 0; at < f.c; at += kGroup)
    WidenF8<V>(row + at, Min(kGroup, f.c - at), FloatFrom(row + f.scales_at + at / kGroup * 4),
               to + at);
}

// Up to 64 signed bytes from bytes that are stored with an offset of 128.
struct OffsetBytes {
  alignas(64) I8 value[64];
  OffsetBytes(const char* from, int64_t count) {
    for (int64_t i = 0; i < count; ++i) value[i].value = static_cast<int8_t>(from[i] ^ -128);
  }
};

template <class V>
void WidenI8(const char* from, int64_t count, float scale, float* to) {
  for (int64_t at = 0; at < count; at += 64) {
    const int64_t n = Min(64, count - at);
    WidenScaled<V, I8>(OffsetBytes(from + at, n).value, n, scale, to + at);
  }
}

// 16-bit integers, stored as `count` high bytes, then `count` low bytes.
template <class V>
void WidenI16(const char* from, int64_t count, float scale, float* to) {
  const typename V::Vec s = V::Set1(scale);
  for (int64_t at = 0; at < count; at += 64) {
    const int64_t n = Min(64, count - at);
    const OffsetBytes high(from + at, n);
    const OffsetBytes low(from + count + at, n);
    for (int64_t i = 0; i < n; i += V::kLanes) {
      const typename V::Vec upper = LoadNext<V>(high.value + i, n - i);
      const typename V::Vec whole =
          V::Fma(upper, V::Set1(256.0f), LoadNext<V>(low.value + i, n - i));
      StoreNext<V>(to + at + i, V::Mul(whole, s), n - i);
    }
  }
}

// 5-bit latents in chunks of 64, one bf16 scale for every 32.
template <class V>
void WidenS5(const char* codes, const char* scales, int64_t count, float* to) {
  alignas(64) I8 chunk[64];
  for (int64_t at = 0; at < count; at += 64, codes += 40) {
    V::UnpackQ6(codes, chunk);
    for (int64_t half = 0; half < 64 && at + half < count; half += 32, scales += 2)
      WidenScaled<V, I8>(chunk + half, Min(32, count - at - half), BF16From(scales),
                         to + at + half);
  }
}

// 12-bit integers + 2048, stored as `count` high bytes, then the low four bits, 64 at a time.
template <class V>
void WidenS12(const char* from, int64_t count, float scale, float* to) {
  const char* low = from + count;
  const typename V::Vec s = V::Set1(scale);
  for (int64_t at = 0; at < count; at += 64, low += 32) {
    const int64_t n = Min(64, count - at);
    const OffsetBytes high(from + at, n);
    alignas(64) I8 nibbles[64];
    const int64_t half = (n + 1) / 2;
    for (int64_t i = 0; i < half; ++i) nibbles[i].value = static_cast<int8_t>(low[i] & 15);
    for (int64_t i = half; i < n; ++i)
      nibbles[i].value = static_cast<int8_t>(low[i - half] >> 4 & 15);
    for (int64_t i = 0; i < n; i += V::kLanes) {
      const typename V::Vec whole = V::Fma(LoadNext<V>(high.value + i, n - i), V::Set1(16.0f),
                                           LoadNext<V>(nibbles + i, n - i));
      StoreNext<V>(to + at + i, V::Mul(whole, s), n - i);
    }
  }
}

// A cached row to f32. to: [c + r].
template <class V>
void WidenCachedRow(const CachedRowLayout& f, const char* row, float* to) {
  switch (f.kind) {
    case CacheFormat::kPlain:
      return WithType(row, f.element,
                      [&](const auto* typed) { WidenRow<V>(typed, f.c + f.r, to); });
    case CacheFormat::kF8:
      WidenF8Groups<V>(f, row, to);
      return WidenRow<V>(reinterpret_cast<const BF16*>(row + f.rope_at), f.r, to + f.c);
    case CacheFormat::kF8Dense:
      return WidenF8<V>(row, f.c + f.r, f.descale, to);
    case CacheFormat::kI8:
      WidenI8<V>(row, f.c, FloatFrom(row + f.scales_at), to);
      return WidenI16<V>(row + f.rope_at, f.r, FloatFrom(row + f.scales_at + 4), to + f.c);
    case CacheFormat::kQ6:
      WidenS5<V>(row, row + f.scales_at, f.c, to);
      return WidenS12<V>(row + f.rope_at, f.r, BF16From(row + f.scales_at + (f.c + 31) / 32 * 2),
                         to + f.c);
  }
}

// The cached row of a key. Task: GatherTask or DecodeTask.
template <class Task>
const char* CachedRowOf(const Task& t, int64_t key) {
  const int64_t row = t.page_table[key / t.page_tokens] * t.page_tokens + key % t.page_tokens;
  return static_cast<const char*>(t.pages) + row * t.cache.bytes;
}

template <class V>
void GatherPages(const GatherTask& t) {
  const int64_t width = t.cache.c + t.cache.r;
  for (int64_t i = 0; i < t.count; ++i)
    WidenCachedRow<V>(t.cache, CachedRowOf(t, t.begin + i), t.y + i * width);
}

}  // namespace
}  // namespace latte::cpu
