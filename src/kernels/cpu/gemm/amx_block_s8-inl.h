// Blocks of gemm_amx_s8-inl.h: 32 rows of B × up to 4096 columns in place or 1024 columns packed,
// and the scratch of a task.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/amx_int8-inl.h"
#include "src/kernels/cpu/common/amx_tile-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/amx_weight_block-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kPackedBlockK = 1024;  // columns of a panel
constexpr int64_t kBatchTiles = 8;       // 8 KiB of integer sums

// A chunk of a row of A for the GEMV.
struct alignas(64) AVectorChunk {
  int8_t codes[2][kByteStep];  // for 4-bit B: even columns, then odd ones
  int32_t start[kTileSide];    // −128 (4-bit: −8) · lane sum; with zero points the sum
  float scale;
};

constexpr int64_t kMaxAmxS8GemvM = 8;

// Integer sums of a chunk of a row of A × 16 rows of B: [four rows of B][scale group][row].
struct alignas(64) GemvGroupSums {
  int32_t sums[kTileSide / 4][kTileSide];
};

struct AmxS8Scratch {
  alignas(64) float sums[kMaxAmxM * kMaxAmxN];               // [tile of B][tile of A][16, 16]
  alignas(64) int8_t panel[2 * kInPlaceBlockK * kTileSide];  // [tile of B][K step][16, 64]
  alignas(64) int32_t groups[2][kBatchTiles * kTileSums];    // integer sums of two batches
  alignas(64) float scale[kInPlaceBlockK / kMinGroupK * kBPanelN];  // [scale group][row]
  AVectorChunk row[kInPlaceBlockK / kChunkK * kMaxAmxS8GemvM];      // [chunk][row], for the GEMV
  const GemmTask* t;
  int64_t x_tiles, x_rows;  // rows of A per tile: 16, or 1 in the GEMV
  bool small_m;             // M ≤ 32
  int64_t chunks;           // of all of K
  // The block of B, packed or in place; strides of rows, tiles and K steps in bytes.
  const int8_t* a;
  int64_t a_row, a_tile, a_step;
  BurstPrefetch ahead[2];  // weights and scales of the blocks that follow those prefetched together
  int64_t prefetch_chunks;    // chunks that are multiplied meanwhile
  const GemmTask* next_task;  // of the next block; null: none
  BBlock next_block;

  bool in_vectors() const { return x_rows == 1; }
  float* Sums(int64_t w_tile, int64_t x_tile) {
    return sums + (w_tile * x_tiles + x_tile) * kTileSide * x_rows;
  }
  AVectorChunk& Row(int64_t chunk, int64_t x_row) { return row[chunk * t->m + x_row]; }
  const ByteColumns& X(int64_t x_tile, int64_t chunk) const {
    return static_cast<const ByteColumns*>(t->packed)[x_tile * chunks + chunk];
  }
};

// A chunk of row n with `count` valid columns, packed as two tile rows.
template <bool kWhole>
inline void PackBChunk(const GemmTask& t, int64_t n, int64_t k, int64_t count, int8_t* to) {
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
    LoadChunk(reinterpret_cast<const int8_t*>(from), kWhole ? kChunkK : count, chunk);
  }
  Avx512Vnni::StoreBytes(to, chunk[0]);
  Avx512Vnni::StoreBytes(to + kByteTile, chunk[1]);
}

// Packs a block of B; missing rows are zero.
inline void PackBPanel(AmxS8Scratch& s, const BBlock& block) {
  const GemmTask& t = *s.t;
  for (int64_t i = 0; i < kBPanelN; ++i) {
    int8_t* to = s.panel + i / kTileSide * kInPlaceBlockK * kTileSide + i % kTileSide * kByteStep;
    if (i >= block.rows) {
      for (int64_t step = 0; step < 2 * block.chunks(); ++step)
        Avx512Vnni::StoreBytes(to + step * kByteTile, Avx512Vnni::ZeroInts());
      continue;
    }
    int64_t k = block.begin;
    for (; k + kChunkK <= block.end; k += kChunkK, to += 2 * kByteTile)
      PackBChunk<true>(t, block.output + i, k, kChunkK, to);
    if (k < block.end) PackBChunk<false>(t, block.output + i, k, block.end - k, to);
  }
  s.a = s.panel;
  s.a_row = kByteStep;
  s.a_tile = kInPlaceBlockK * kTileSide;
  s.a_step = kByteTile;
}

// Whether tiles can load the block in place: nothing behind the last row may be read.
inline bool StaysInPlace(const AmxS8Scratch& s, const BBlock& block) {
  return s.t->w_type == Element::kI8 && s.small_m && block.rows == kBPanelN &&
         (block.end - block.begin) % kChunkK == 0;
}

inline void PlaceB(AmxS8Scratch& s, const BBlock& block) {
  if (!StaysInPlace(s, block)) return PackBPanel(s, block);
  s.a = reinterpret_cast<const int8_t*>(WeightAt(*s.t, block.output, block.begin));
  s.a_row = s.t->w_stride;
  s.a_tile = kTileSide * s.t->w_stride;
  s.a_step = kByteStep;
}

}  // namespace
}  // namespace latte::cpu
