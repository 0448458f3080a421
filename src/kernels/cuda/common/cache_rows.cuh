// Rows of the cache in every format, as f32: the values of src/kernels/ref/cached_row.cc, which
// defines them. docs/formats/cache.md draws the formats.
#pragma once

#include "src/kernels/cuda/common/elements.cuh"
#include "src/kernels/cuda/params/cache_rows.h"

namespace latte::cuda {

inline constexpr int kF8Group = 128;                // latents that share a scale
inline constexpr int kQ6Group = 32;                 // the same
inline constexpr int kQ6Chunk = 2 * kQ6Group;       // latents whose bits are packed together
inline constexpr int kQ6ChunkBytes = 40;            // 32 of low bits, 8 of fifth bits
inline constexpr int kI16Offset = 128 * 256 + 128;  // both bytes less 128 are signed

// Little-endian numbers: parts of a row begin at any byte.
LATTE_DEVICE uint32_t Load16(const unsigned char* at) {
  return LoadGlobal(at) | static_cast<uint32_t>(LoadGlobal(at + 1)) << 8;
}
LATTE_DEVICE float LoadFloat(const unsigned char* at) {
  if (reinterpret_cast<uint64_t>(at) % 4 == 0)
    return LoadGlobal(reinterpret_cast<const float*>(at));
  return BitsFloat(Load16(at) | Load16(at + 2) << 16);
}
LATTE_DEVICE float LoadBf16(const unsigned char* at) {
  return BF16ToFloat(static_cast<uint16_t>(Load16(at)));
}

// The byte and the bit at which the low four bits of value i of a q6 rope part begin. Values come
// 64 at a time; the first half of them has the lower bits of the bytes.
struct NibblePlace {
  int byte, shift;
};
LATTE_DEVICE NibblePlace NibbleOf(int i, int r) {
  const int chunk = i / kQ6Chunk, in_chunk = i % kQ6Chunk;
  const int rest = r - chunk * kQ6Chunk;
  const int half = ((rest < kQ6Chunk ? rest : kQ6Chunk) + 1) / 2;
  return {chunk * (kQ6Chunk / 2) + in_chunk % half, in_chunk / half * 4};
}

// A row. Value i of its c + r is Code(i) · Scale(i); the values [i, GroupEnd(i)) share a scale.
struct CachedRow {
  const CacheRows& f;
  const unsigned char* at;

  LATTE_DEVICE int GroupEnd(int i) const {
    if (i >= f.c) return f.c + f.r;
    const int group = f.kind == CacheFormat::kF8   ? kF8Group
                      : f.kind == CacheFormat::kQ6 ? kQ6Group
                                                   : f.c;
    const int end = i / group * group + group;
    return end < f.c ? end : f.c;
  }

  LATTE_DEVICE float Scale(int i) const {
    const unsigned char* const scales = at + f.scales_at;
    switch (f.kind) {
      case CacheFormat::kF8:
        return i < f.c ? LoadFloat(scales + i / kF8Group * 4) : 1.0f;
      case CacheFormat::kF8Dense:
        return f.descale;
      case CacheFormat::kI8:
        return LoadFloat(scales + (i < f.c ? 0 : 4));
      case CacheFormat::kQ6:
        return LoadBf16(scales + 2 * (i < f.c ? i / kQ6Group : (f.c + kQ6Group - 1) / kQ6Group));
      case CacheFormat::kPlain:
        break;
    }
    return 1.0f;
  }

  LATTE_DEVICE float Code(int i) const {
    const bool is_latent = i < f.c;
    const int j = i - f.c;
    const unsigned char* const rope = at + f.rope_at;
    switch (f.kind) {
      case CacheFormat::kF8:
        return is_latent ? F8E4M3ToFloat(LoadGlobal(at + i)) : LoadBf16(rope + 2 * j);
      case CacheFormat::kF8Dense:
        return F8E4M3ToFloat(LoadGlobal(at + i));
      case CacheFormat::kI8:
        if (is_latent) return static_cast<float>(LoadGlobal(at + i) - 128);
        return static_cast<float>(LoadGlobal(rope + j) * 256 + LoadGlobal(rope + f.r + j) -
                                  kI16Offset);
      case CacheFormat::kQ6:
        return static_cast<float>(is_latent ? Five(i) - 16 : Twelve(rope, j) - 2048);
      case CacheFormat::kPlain:
        break;
    }
    return LoadElement(at, f.element, i);
  }

  LATTE_DEVICE float Value(int i) const { return Mul(Code(i), Scale(i)); }

 private:
  // Latent i of a q6 row, + 16.
  LATTE_DEVICE int Five(int i) const {
    const unsigned char* const chunk = at + i / kQ6Chunk * kQ6ChunkBytes;
    const int in_chunk = i % kQ6Chunk;
    const int low = LoadGlobal(chunk + in_chunk % 32) >> in_chunk / 32 * 4 & 15;
    const int high = LoadGlobal(chunk + 32 + in_chunk % 8) >> in_chunk / 8 & 1;
    return low | high << 4;
  }
  // Number j of its rope part, + 2048.
  LATTE_DEVICE int Twelve(const unsigned char* rope, int j) const {
    const NibblePlace low = NibbleOf(j, f.r);
    return LoadGlobal(rope + j) * 16 + (LoadGlobal(rope + f.r + low.byte) >> low.shift & 15);
  }
};

LATTE_DEVICE CachedRow RowOf(const CacheRows& rows, int64_t row) {
  return {rows, rows.base + row * rows.bytes};
}

// latent · the row's latent + rope · its rope part, summed in order.
LATTE_DEVICE float RowDot(const CachedRow& row, const float* latent, const float* rope) {
  float dot = 0;
  for (int begin = 0, end; begin < row.f.c + row.f.r; begin = end) {
    end = row.GroupEnd(begin);
    const float* const x = begin < row.f.c ? latent : rope - row.f.c;
    const float scale = row.Scale(begin);
    for (int i = begin; i < end; ++i) dot = Fma(LoadGlobal(x + i), Mul(row.Code(i), scale), dot);
  }
  return dot;
}

}  // namespace latte::cuda
