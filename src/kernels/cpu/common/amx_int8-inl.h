// Operands of products of bytes on tiles: rows of int8 and 4-bit weights as operand A, activations
// of 8 bits as operand B, and the scales of both.
//
// A chunk is 128 values of a row: two tile rows of 64 bytes. 4-bit codes are unpacked, less their
// zeros, and come to lie as [16 even | 16 odd] of every 32 values; activations beside them do too.
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

constexpr int64_t kByteStep = 64;  // values of a tile row
constexpr int64_t kByteTile = kTileSide * kByteStep;

// 128 columns of 16 rows of x: [step][4 columns][row][column] and a scale per row.
struct ByteColumns {
  int8_t codes[2][kByteTile];
  float scale[kTileSide];
};
static_assert(sizeof(ByteColumns) == kBytePackBytes);

// Values [0, count) of a chunk of x, zeros behind them.
inline void LoadChunk(const int8_t* x, int64_t count, Bytes (&to)[2]) {
  for (int64_t i = 0; i < 2; ++i)
    to[i] = Avx512Vnni::LoadBytesPartial(x + i * kByteStep,
                                         Max(0, Min(count - i * kByteStep, kByteStep)));
}

// Puts a chunk of x into the order of unpacked codes.
inline void OrderAsCodes(Bytes (&chunk)[2]) {
  const Bytes even = Avx512Vnni::EvenBytes(chunk[0], chunk[1]);
  const Bytes odd = Avx512Vnni::OddBytes(chunk[0], chunk[1]);
  chunk[0] = Avx512Vnni::ZipQuartersLow(even, odd);
  chunk[1] = Avx512Vnni::ZipQuartersHigh(even, odd);
}

inline void LoadInOrder(const int8_t* x, int64_t count, Element w_type, Bytes (&to)[2]) {
  LoadChunk(x, count, to);
  if (w_type == Element::kU4) OrderAsCodes(to);
}

// Packs 16 rows of activations, fewer: zeros for the rest, as ByteColumns.
inline void PackBytes(const PackTask& t) {
  auto* to = static_cast<ByteColumns*>(t.packed);
  for (int64_t at = 0; at < t.k; at += kByteChunk, ++to) {
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

// A chunk of packed codes less their zeros.
inline void UnpackChunk(Bytes packed, Bytes zeros, Bytes (&to)[2]) {
  const Bytes low = Avx512Vnni::SubBytes(Avx512Vnni::LowNibbles(packed), zeros);
  const Bytes high = Avx512Vnni::SubBytes(Avx512Vnni::HighNibbles(packed), zeros);
  to[0] = Avx512Vnni::ZipQuartersLow(low, high);
  to[1] = Avx512Vnni::ZipQuartersHigh(low, high);
}

}  // namespace
}  // namespace latte::cpu
