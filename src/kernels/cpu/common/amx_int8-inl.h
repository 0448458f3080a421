// int8 operands of AMX tiles: rows of int8 and 4-bit B as operand A, int8 A as operand B.
//
// A chunk of 128 columns is two tile rows of 64 bytes. 4-bit values are unpacked minus their zero
// points, in the order [16 even | 16 odd] of every 32 columns; A takes the same order.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/amx_tile-inl.h"
#include "src/kernels/cpu/common/int8_scales-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

using Bytes = Avx512Vnni::Ints;

constexpr int64_t kByteStep = 64;  // columns of a tile row
constexpr int64_t kByteTile = kTileSide * kByteStep;

// A chunk of 16 rows of A: [K step][4 columns][row][column], and a scale per row.
struct ByteColumns {
  int8_t codes[2][kByteTile];
  float scale[kTileSide];
};
static_assert(sizeof(ByteColumns) == kPackedS8Bytes);

// A chunk of A with `count` valid values; the others are zero.
inline void LoadChunk(const int8_t* x, int64_t count, Bytes (&to)[2]) {
  for (int64_t i = 0; i < 2; ++i)
    to[i] = Avx512Vnni::LoadBytesPartial(x + i * kByteStep,
                                         Max(0, Min(count - i * kByteStep, kByteStep)));
}

// Reorders a chunk of A to the order of unpacked 4-bit values.
inline void OrderAsCodes(Bytes (&chunk)[2]) {
  const Bytes even = Avx512Vnni::EvenBytes(chunk[0], chunk[1]);
  const Bytes odd = Avx512Vnni::OddBytes(chunk[0], chunk[1]);
  chunk[0] = Avx512Vnni::Interleave128Low(even, odd);
  chunk[1] = Avx512Vnni::Interleave128High(even, odd);
}

inline void LoadInOrder(const int8_t* x, int64_t count, Element w_type, Bytes (&to)[2]) {
  LoadChunk(x, count, to);
  if (w_type == Element::kU4) OrderAsCodes(to);
}

// Packs 16 rows of A as ByteColumns; missing rows are zero.
inline void PackBytes(const PackTask& t) {
  auto* to = static_cast<ByteColumns*>(t.packed);
  for (int64_t at = 0; at < t.k; at += kChunkK, ++to) {
    Amx::Words words[2][kTileSide];
    for (int64_t i = 0; i < kTileSide; ++i) {
      const bool there = i < t.rows;
      const auto* const x = static_cast<const int8_t*>(t.x) + (there ? i * t.x_stride + at : 0);
      Bytes chunk[2];
      LoadInOrder(x, there ? t.k - at : 0, t.w_type, chunk);
      words[0][i] = chunk[0];
      words[1][i] = chunk[1];
      to->scale[i] = there ? t.x_scale[i * t.x_scale_stride + at / t.x_group] : 0;
    }
    for (int64_t step = 0; step < 2; ++step) {
      Amx::Transpose(words[step]);
      for (int64_t i = 0; i < kTileSide; ++i)
        Amx::StoreWords(to->codes[step] + i * kByteStep, words[step][i]);
    }
  }
}

// A chunk of 4-bit values minus their zero points.
inline void UnpackChunk(Bytes packed, Bytes zeros, Bytes (&to)[2]) {
  const Bytes low = Avx512Vnni::SubBytes(Avx512Vnni::LowNibbles(packed), zeros);
  const Bytes high = Avx512Vnni::SubBytes(Avx512Vnni::HighNibbles(packed), zeros);
  to[0] = Avx512Vnni::Interleave128Low(low, high);
  to[1] = Avx512Vnni::Interleave128High(low, high);
}

}  // namespace
}  // namespace latte::cpu
