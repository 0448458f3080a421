// A block of a product of bytes on tiles: 32 rows of W × up to 4096 columns where they lie, or 1024
// laid out in a panel, and what sums pass through.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/amx_int8-inl.h"
#include "src/kernels/cpu/common/amx_tile-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/amx_weight_block-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kByteBlock = 1024;  // columns of a panel
constexpr int64_t kBatchTiles = 8;    // 8 KiB of integer sums

// 128 columns of one of few rows of x.
struct alignas(64) RowChunk {
  int8_t codes[2][kByteStep];  // beside 4-bit weights the even ones, then the odd ones
  int32_t start[kTileSide];  // −128 or, beside 4 bits, −8 · the sum of a lane; with zeros the sum
  float scale;
};

constexpr int64_t kMaxLaneRows = 8;  // of x

// Integer sums of one row of x and 128 columns of 16 rows of W: [four rows of W][run][row].
struct alignas(64) LaneRuns {
  int32_t sums[kTileSide / 4][kTileSide];
};

struct ByteProduct {
  alignas(64) float sums[kMaxTileActivations * kMaxTileOutputs];  // [tile of W][tile of x][16, 16]
  alignas(64) int8_t panel[2 * kWideByteBlock * kTileSide];       // [tile of W][step][16, 64]
  alignas(64) int32_t runs[2][kBatchTiles * kTileSums];  // sums of a batch and the last one
  alignas(64) float scale[kWideByteBlock / kShortRun * kBytePanelRows];  // [run][row]
  RowChunk row[kWideByteBlock / kByteChunk * kMaxLaneRows];  // [chunk][row], few rows of x
  const LinearTask* t;
  int64_t x_tiles, x_rows;  // rows of x in a tile: 16, or 1 in lanes
  int64_t chunks;           // of all of K
  // The block's operand A, in the panel or in place: bytes from one row, tile and step to the next.
  const int8_t* a;
  int64_t a_row, a_tile, a_step;
  BlockAhead* ahead;

  bool in_lanes() const { return x_rows == 1; }
  float* Sums(int64_t w_tile, int64_t x_tile) {
    return sums + (w_tile * x_tiles + x_tile) * kTileSide * x_rows;
  }
  RowChunk& Row(int64_t chunk, int64_t x_row) { return row[chunk * t->m + x_row]; }
  const ByteColumns& X(int64_t x_tile, int64_t chunk) const {
    return static_cast<const ByteColumns*>(t->packed)[x_tile * chunks + chunk];
  }
};

// A chunk of row n, of which `count` columns are there, laid out as two tile rows.
template <bool kWhole>
inline void FillChunk(const LinearTask& t, int64_t n, int64_t k, int64_t count, int8_t* to) {
  const char* const from = WeightAt(t, n, k);
  Bytes chunk[2];
  if (t.w_type == Element::kU4) {
    const Bytes zeros = t.grid.zero == nullptr
                            ? Avx512Vnni::SetByte(8)
                            : Avx512Vnni::QuartersOf(ChunkZeros(t.grid, n, k, k + count));
    UnpackChunk(kWhole ? Avx512Vnni::LoadBytes(from)
                       : Avx512Vnni::LoadBytesPartial(from, Min((count + 1) / 2, kByteStep)),
                zeros, chunk);
  } else {
    LoadChunk(reinterpret_cast<const int8_t*>(from), kWhole ? kByteChunk : count, chunk);
  }
  Avx512Vnni::StoreBytes(to, chunk[0]);
  Avx512Vnni::StoreBytes(to + kByteTile, chunk[1]);
}

// Lays a block of W out in the panel; rows behind the last are zero.
inline void FillPanel(ByteProduct& s, const ByteBlock& block) {
  const LinearTask& t = *s.t;
  for (int64_t i = 0; i < kBytePanelRows; ++i) {
    int8_t* to = s.panel + i / kTileSide * kWideByteBlock * kTileSide + i % kTileSide * kByteStep;
    if (i >= block.rows) {
      for (int64_t step = 0; step < 2 * block.chunks(); ++step)
        Avx512Vnni::StoreBytes(to + step * kByteTile, Avx512Vnni::ZeroInts());
      continue;
    }
    int64_t k = block.begin;
    for (; k + kByteChunk <= block.end; k += kByteChunk, to += 2 * kByteTile)
      FillChunk<true>(t, block.output + i, k, kByteChunk, to);
    if (k < block.end) FillChunk<false>(t, block.output + i, k, block.end - k, to);
  }
  s.a = s.panel;
  s.a_row = kByteStep;
  s.a_tile = kWideByteBlock * kTileSide;
  s.a_step = kByteTile;
}

// Whether rows can be operand A where they lie: nothing behind the last one's end may be read.
inline bool StaysInPlace(const ByteProduct& s, const ByteBlock& block) {
  return s.t->w_type == Element::kI8 && s.x_tiles <= 2 && block.rows == kBytePanelRows &&
         (block.end - block.begin) % kByteChunk == 0;
}

inline void PlaceWeights(ByteProduct& s, const ByteBlock& block) {
  if (!StaysInPlace(s, block)) return FillPanel(s, block);
  s.a = reinterpret_cast<const int8_t*>(WeightAt(*s.t, block.output, block.begin));
  s.a_row = s.t->w_stride;
  s.a_tile = kTileSide * s.t->w_stride;
  s.a_step = kByteStep;
}

}  // namespace
}  // namespace latte::cpu
