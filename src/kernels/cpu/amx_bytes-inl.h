// Operands of products of bytes on tiles: rows of int8 and 4-bit weights as operand A, activations
// of 8 bits as operand B, and the scales of both.
//
// A chunk is 128 values of a row: two tile rows of 64 bytes. 4-bit codes are unpacked, less their
// zeros, and come to lie as [16 even | 16 odd] of every 32 values; activations beside them do too.
#pragma once

#include <cstdint>
#include <type_traits>

#include "src/kernels/cpu/amx_blocks-inl.h"
#include "src/kernels/cpu/element-inl.h"
#include "src/kernels/cpu/pairs-inl.h"
#include "src/kernels/cpu/scales-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/tiles-inl.h"

namespace latte::cpu {
namespace {

using Bytes = Avx512Vnni::Ints;

constexpr int64_t kByteStep = 64;    // values of a tile row
constexpr int64_t kByteChunk = 128;  // values between two scales of x at least
constexpr int64_t kByteTile = kTileSide * kByteStep;
constexpr int64_t kShortRun = 32;  // values of a 4-bit weight that share a scale, at least
constexpr int64_t kChunkRuns = kByteChunk / kShortRun;

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

// One value of f32 or 16 bits.
template <class T>
inline float WideOf(const T* p) {
  float out;
  Amx::StorePartial(&out, Amx::LoadPartial(p, 1), 1);
  return out;
}

// Column of the grid that holds column k of the task, and its row that holds row n.
inline int64_t GridColumn(const ScaleGrid& g, int64_t k) {
  return (g.column_begin + k) / g.columns;
}
inline int64_t GridRow(const ScaleGrid& g, int64_t n) {
  return g.rows == 1 ? g.row_begin + n : (g.row_begin + n) / g.rows;  // no division per row
}

// scale[run][row] of 32 rows from scales in bf16 side by side, two at a time.
template <class Row>
void TurnScalePairs(const Row& row, int64_t column, int64_t runs, float* scale) {
  constexpr int64_t kRows = 2 * kTileSide;
  for (int64_t first = 0; first < runs; first += 2 * kTileSide)
    for (int64_t i = 0; i < kRows; i += kTileSide) {
      Amx::Words words[kTileSide];
      for (int64_t j = 0; j < kTileSide; ++j)
        words[j] = Amx::WordsOf(LoadPairsOf<Amx>(row(i + j) + column, first, runs));
      Amx::Transpose(words);
      for (int64_t j = 0; j < Min(2 * kTileSide, runs - first); ++j) {
        const Amx::Pairs pairs = Amx::PairsOf(words[j / 2]);
        Amx::Store(scale + (first + j) * kRows + i,
                   j % 2 == 0 ? Amx::EvenOfPairs(pairs) : Amx::OddOfPairs(pairs));
      }
    }
}

// scale[run][row] of rows [row_begin, +rows) of 32 and columns [k_begin, +k) in runs of kRun, of
// which a chunk has 128 / kRun; behind the last column and the last row they are some number.
template <int64_t kRun>
void PrepareTileScales(const ScaleGrid& g, int64_t row_begin, int64_t rows, int64_t k_begin,
                       int64_t k, float* scale) {
  constexpr int64_t kRows = 2 * kTileSide;
  const int64_t runs = (k + kRun - 1) / kRun;
  const int64_t all_runs = (k + kByteChunk - 1) / kByteChunk * (kByteChunk / kRun);
  for (int64_t run = runs; run < all_runs; ++run)
    for (int64_t i = 0; i < kRows; i += kTileSide) Amx::Store(scale + run * kRows + i, Amx::Zero());
  WithType(g.scale, g.type, [&](const auto* stored) {
    const auto row = [&](int64_t i) {
      return stored + GridRow(g, row_begin + Min(i, rows - 1)) * g.stride;
    };
    if (row(0) == row(rows - 1)) {
      for (int64_t run = 0; run < runs; ++run) {
        const Amx::Vec one = Amx::Set1(WideOf(row(0) + GridColumn(g, k_begin + run * kRun)));
        for (int64_t i = 0; i < kRows; i += kTileSide) Amx::Store(scale + run * kRows + i, one);
      }
    } else if (g.columns == kRun) {
      const int64_t column = GridColumn(g, k_begin);
      if constexpr (std::is_same_v<decltype(stored), const BF16*>)
        return TurnScalePairs(row, column, runs, scale);
      for (int64_t first = 0; first < runs; first += kTileSide)
        for (int64_t i = 0; i < kRows; i += kTileSide) {
          Amx::Vec part[kTileSide];
          for (int64_t j = 0; j < kTileSide; ++j)
            part[j] = LoadNext<Amx>(row(i + j) + column + first, runs - first);
          Avx512::Transpose(part);
          for (int64_t j = 0; j < Min(kTileSide, runs - first); ++j)
            Amx::Store(scale + (first + j) * kRows + i, part[j]);
        }
    } else {
      for (int64_t run = 0; run < runs; ++run) {
        const int64_t column = GridColumn(g, k_begin + run * kRun);
        for (int64_t i = 0; i < kRows; ++i) scale[run * kRows + i] = WideOf(row(i) + column);
      }
    }
  });
}

// Zeros of the four runs of a chunk of row n that begins at column k of `end`.
inline uint32_t ChunkZeros(const ScaleGrid& g, int64_t n, int64_t k, int64_t end) {
  const uint8_t* const zero = g.zero + GridRow(g, n) * g.zero_stride;
  uint32_t out = 0;
  for (int64_t i = 0; i < kChunkRuns; ++i)
    out |= static_cast<uint32_t>(zero[GridColumn(g, Min(k + i * kShortRun, end - 1))]) << (8 * i);
  return out;
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
