// Reference quantisation of cached rows, and back to f32. docs/formats/cache.md draws the formats.
#include <algorithm>
#include <cmath>
#include <limits>

#include "src/base/math.h"
#include "src/kernels/ref/ref.h"

namespace latte::ref {
namespace {

// Below this, all values of a group become zero: quotients by it would overflow.
constexpr float kSmallest = 0x1p-100f;

// The largest finite magnitude of x. `nan`: whether x contains a NaN.
struct Range {
  float top = 0;
  bool nan = false;
};
Range RangeOf(const float* x, int64_t count) {
  Range out;
  for (int64_t i = 0; i < count; ++i) {
    out.nan = out.nan || std::isnan(x[i]);
    if (std::isfinite(x[i])) out.top = std::max(out.top, std::abs(x[i]));
  }
  return out;
}

void StoreFloat(std::byte* at, float x) { __builtin_memcpy(at, &x, sizeof(x)); }
float LoadFloat(const std::byte* at) {
  float x;
  __builtin_memcpy(&x, at, sizeof(x));
  return x;
}
void Store16(std::byte* at, uint16_t x) { __builtin_memcpy(at, &x, sizeof(x)); }
uint16_t Load16(const std::byte* at) {
  uint16_t x;
  __builtin_memcpy(&x, at, sizeof(x));
  return x;
}

// x/scale to the nearest integer, ties to even, at most `top` in magnitude; a NaN becomes 0.
int Quantise(float x, float inverse, float top) {
  if (std::isnan(x)) return 0;
  return static_cast<int>(std::nearbyint(std::clamp(x * inverse, -top, top)));
}

// The power of two that scales a group to ±448. Source: DeepSeek's FlashMLA, tests/quant.py.
float F8Scale(float top) {
  int exponent;
  const float fraction = std::frexp(std::max(top / 448.0f, 1e-4f), &exponent);
  return std::ldexp(1.0f, fraction == 0.5f ? exponent - 1 : exponent);
}

void QuantiseF8(const float* x, int64_t count, float scale, std::byte* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = std::byte{FloatToF8E4M3(x[i] / scale)};
}
void DequantiseF8(const std::byte* from, int64_t count, float scale, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = F8E4M3ToFloat(static_cast<uint8_t>(from[i])) * scale;
}

// Integers up to `top` with one scale. If x contains a NaN or an infinity, the scale is NaN.
template <class Store>
void QuantiseIntegers(const float* x, int64_t count, float top, std::byte* scale_at,
                      const Store& store) {
  const Range range = RangeOf(x, count);
  const bool zero = range.top < kSmallest;
  const float inverse = zero ? 0.0f : top / range.top;
  for (int64_t i = 0; i < count; ++i) store(i, zero ? 0 : Quantise(x[i], inverse, top));
  const float scale = zero ? 0.0f : range.top / top;
  StoreFloat(scale_at, range.nan ? std::numeric_limits<float>::quiet_NaN() : scale);
}

// Integer + 128.
void QuantiseI8(const float* x, int64_t count, std::byte* to, std::byte* scale_at) {
  QuantiseIntegers(x, count, 127.0f, scale_at,
                   [&](int64_t i, int q) { to[i] = static_cast<std::byte>(q + 128); });
}
void DequantiseI8(const std::byte* from, int64_t count, float scale, float* to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = static_cast<float>(static_cast<int>(from[i]) - 128) * scale;
}

// Integer + 128·256 + 128, so that both bytes less 128 are signed; all high bytes first, then all
// low bytes. 127·256 + 127 is the largest integer of which both bytes fit.
constexpr float kMaxI16 = 127.0f * 256 + 127;
void QuantiseI16(const float* x, int64_t count, std::byte* to, std::byte* scale_at) {
  QuantiseIntegers(x, count, kMaxI16, scale_at, [&](int64_t i, int q) {
    to[i] = static_cast<std::byte>((q + 0x8080) >> 8);
    to[count + i] = static_cast<std::byte>(q + 0x8080);
  });
}
void DequantiseI16(const std::byte* from, int64_t count, float scale, float* to) {
  for (int64_t i = 0; i < count; ++i) {
    const int code = static_cast<int>(from[i]) * 256 + static_cast<int>(from[count + i]);
    to[i] = static_cast<float>(code - 0x8080) * scale;
  }
}

// The smallest bf16 that is not less than x ≥ 0.
float RoundUpToBF16(float x) {
  const float nearest = RoundToBF16(x);
  return nearest >= x ? nearest : BF16ToFloat(static_cast<uint16_t>(FloatToBF16(nearest) + 1));
}

// Calls f(i, integer) for all of x, with integers up to `top` and one scale, stored as bf16.
template <class F>
void QuantiseWithBF16(const float* x, int64_t count, float top, std::byte* scale_at, const F& f) {
  const Range range = RangeOf(x, count);
  const bool zero = range.top < kSmallest;
  const float scale = zero ? 0.0f : RoundUpToBF16(range.top / top);
  const float inverse = zero ? 0.0f : 1.0f / scale;
  for (int64_t i = 0; i < count; ++i) f(i, zero ? 0 : Quantise(x[i], inverse, top));
  Store16(scale_at, range.nan ? uint16_t{0x7fc0} : FloatToBF16(scale));
}

// One 5-bit latent of a chunk, code = integer + 16: byte i mod 32 holds the low four bits, byte 32
// + i mod 8 the fifth (docs/formats/cache.md).
void StoreFive(std::byte* chunk, int64_t i, int code) {
  chunk[i % 32] |= static_cast<std::byte>((code & 15) << (i / 32 * 4));
  chunk[32 + i % 8] |= static_cast<std::byte>((code >> 4) << (i / 8));
}
int LoadFive(const std::byte* chunk, int64_t i) {
  const int low = static_cast<int>(chunk[i % 32]) >> (i / 32 * 4) & 15;
  const int high = static_cast<int>(chunk[32 + i % 8]) >> (i / 8) & 1;
  return low | (high << 4);
}

void QuantiseFive(const float* x, int64_t count, std::byte* to, std::byte* scales) {
  std::fill_n(to, CeilDiv(count, kQ6Chunk) * kQ6ChunkBytes, std::byte{0});
  for (int64_t begin = 0; begin < count; begin += kQ6Group, scales += 2) {
    std::byte* const chunk = to + begin / kQ6Chunk * kQ6ChunkBytes;
    const auto store = [&](int64_t i, int q) { StoreFive(chunk, begin % kQ6Chunk + i, q + 16); };
    QuantiseWithBF16(x + begin, std::min(kQ6Group, count - begin), 15.0f, scales, store);
  }
}
void DequantiseFive(const std::byte* from, int64_t count, const std::byte* scales, float* to) {
  for (int64_t i = 0; i < count; ++i) {
    const int code = LoadFive(from + i / kQ6Chunk * kQ6ChunkBytes, i % kQ6Chunk);
    to[i] = static_cast<float>(code - 16) * BF16ToFloat(Load16(scales + i / kQ6Group * 2));
  }
}

// 12-bit integers of the rope part, code = integer + 2048: byte i holds the high eight bits. The
// low four bits follow, 64 values at a time, value i in the half i div ⌈count/2⌉ of byte i mod
// ⌈count/2⌉.
struct Nibble {
  Nibble(int64_t i, int64_t count) {
    const int64_t in_chunk = std::min(kQ6Chunk, count - i / kQ6Chunk * kQ6Chunk);
    const int64_t half = CeilDiv(in_chunk, int64_t{2});
    byte = i / kQ6Chunk * (kQ6Chunk / 2) + i % kQ6Chunk % half;
    shift = static_cast<int>(i % kQ6Chunk / half * 4);
  }
  int64_t byte;
  int shift;
};
void QuantiseTwelve(const float* x, int64_t count, std::byte* to, std::byte* scale_at) {
  std::fill_n(to, count + CeilDiv(count, int64_t{2}), std::byte{0});
  QuantiseWithBF16(x, count, 2047.0f, scale_at, [&](int64_t i, int q) {
    const Nibble low(i, count);
    to[i] = static_cast<std::byte>((q + 2048) >> 4);
    to[count + low.byte] |= static_cast<std::byte>(((q + 2048) & 15) << low.shift);
  });
}
void DequantiseTwelve(const std::byte* from, int64_t count, float scale, float* to) {
  for (int64_t i = 0; i < count; ++i) {
    const Nibble low(i, count);
    const int code = static_cast<int>(from[i]) * 16 +
                     (static_cast<int>(from[count + low.byte]) >> low.shift & 15);
    to[i] = static_cast<float>(code - 2048) * scale;
  }
}

}  // namespace

void QuantiseRow(CacheRowFormat format, const float* latent, int64_t c, const float* rope,
                 int64_t r, std::byte* row) {
  const CacheRowLayout at = LayoutOf(format.kind, c, r);
  switch (format.kind) {
    case CacheFormat::kF8:
      for (int64_t begin = 0; begin < c; begin += kF8Group) {
        const int64_t count = std::min(kF8Group, c - begin);
        const float scale = F8Scale(RangeOf(latent + begin, count).top);
        QuantiseF8(latent + begin, count, scale, row + begin);
        StoreFloat(row + at.scales_at + begin / kF8Group * 4, scale);
      }
      for (int64_t i = 0; i < r; ++i) Store16(row + at.rope_at + 2 * i, FloatToBF16(rope[i]));
      return;
    case CacheFormat::kF8Dense:
      QuantiseF8(latent, c, format.descale, row);
      return QuantiseF8(rope, r, format.descale, row + at.rope_at);
    case CacheFormat::kI8:
      QuantiseI8(latent, c, row, row + at.scales_at);
      return QuantiseI16(rope, r, row + at.rope_at, row + at.scales_at + 4);
    case CacheFormat::kQ6:
      QuantiseFive(latent, c, row, row + at.scales_at);
      return QuantiseTwelve(rope, r, row + at.rope_at,
                            row + at.scales_at + CeilDiv(c, kQ6Group) * 2);
    case CacheFormat::kPlain:
      return;
  }
}

void DequantiseRow(CacheRowFormat format, const std::byte* row, int64_t c, int64_t r, float* to) {
  const CacheRowLayout at = LayoutOf(format.kind, c, r);
  switch (format.kind) {
    case CacheFormat::kF8:
      for (int64_t begin = 0; begin < c; begin += kF8Group)
        DequantiseF8(row + begin, std::min(kF8Group, c - begin),
                     LoadFloat(row + at.scales_at + begin / kF8Group * 4), to + begin);
      for (int64_t i = 0; i < r; ++i) to[c + i] = BF16ToFloat(Load16(row + at.rope_at + 2 * i));
      return;
    case CacheFormat::kF8Dense:
      return DequantiseF8(row, c + r, format.descale, to);
    case CacheFormat::kI8:
      DequantiseI8(row, c, LoadFloat(row + at.scales_at), to);
      return DequantiseI16(row + at.rope_at, r, LoadFloat(row + at.scales_at + 4), to + c);
    case CacheFormat::kQ6:
      DequantiseFive(row, c, row + at.scales_at, to);
      return DequantiseTwelve(row + at.rope_at, r,
                              BF16ToFloat(Load16(row + at.scales_at + CeilDiv(c, kQ6Group) * 2)),
                              to + c);
    case CacheFormat::kPlain:
      return;
  }
}

}  // namespace latte::ref
