// int8 A × int8 or 4-bit B, tiles of 16×16×64, tdpbssd, AMX: the entries of a kernel for any M, a
// kernel for M ≤ 32 ("small M"), and gemm_amx_s8_gemv-inl.h.
//
// Packing   Cᵀ[16×16] = B[16×64] · Aᵀ[64×16]. A is packed once per call (PackBytes). Small M with
//           int8 B: B in place, blocks of 32 rows × 4096 columns. Else blocks of 32 rows × 1024
//           columns of B are packed (32 KiB, in the L1).
// Blocking  2×2 tiles (2×1 with four scale groups per chunk). Integer sums of two chunks are stored
//           and scaled in f32 while the tile unit multiplies the next ones: a store-to-load stall
//           is hidden and vector and tile units overlap.
//           4-bit B becomes s8 as it is packed, minus its zero point.
// Prefetch  While a block is multiplied, the next block, or the first block of the next task. If
//           rows of B are shorter than a page, all blocks of the same rows are prefetched together.
// Epilogue  Scales of A and B per chunk; a 16×16 transpose into C; the bias last.
// Order     that of int8_scales-inl.h.
// Limits    Groups of A are multiples of 128; scale groups of B begin at multiples of 128 (4-bit:
//           32) or span K; M ≤ kMaxAmxM, N ≤ kMaxAmxN per task; scratch 1.2 MiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/amx_block_s8-inl.h"
#include "src/kernels/cpu/gemm/gemm_amx_bf16-inl.h"
#include "src/kernels/cpu/gemm/gemm_amx_s8_gemv-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Integer sums of a chunk of a block, [scale group][tile of B][tile of A][16, 16].
template <int64_t kM, int64_t kN, int64_t kGroups>
inline void MultiplyChunk(const AmxS8Scratch& s, int64_t first, int64_t chunk, int64_t x_tile,
                          int32_t* to) {
  constexpr int64_t kParts = Max(2, kGroups);  // tile products
  constexpr int64_t kPartBytes = kChunkK / kParts;
  for (int64_t part = 0; part < kParts; ++part) {
    const int64_t step = part * kPartBytes / kByteStep;
    const int64_t column = part * kPartBytes % kByteStep;
    if (part == 0 || kGroups > 1) ZeroSums<kM, kN>();
    AddStep<kM, kN, DotBytes>(
        [&](int64_t i) {
          return TileAt{s.a + i * s.a_tile + (2 * chunk + step) * s.a_step + column, s.a_row};
        },
        [&](int64_t j) {
          return TileAt{s.X(x_tile + j, first + chunk).codes[step] + column * kTileSide,
                        kTileRowBytes};
        });
    if (part + 1 < kParts && kGroups == 1) continue;
    StoreSums<kM, kN>([&](int64_t i, int64_t j) { return to + (i * kN + j) * kTileSums; });
    to += kM * kN * kTileSums;
  }
}

template <int64_t kGroups>
constexpr int64_t kBatchChunks = kGroups == 1 ? 2 : 1;

// Integer sums of chunks [chunk, +chunks) of a block that wait to be scaled.
struct Batch {
  int64_t x_tile = 0, chunk = 0, chunks = 0;
  const int32_t* groups = nullptr;
};

// Scales tile (i, j) of a batch and adds it to its sums; lanes are rows of A.
template <bool kOneScale, int64_t kGroups, int64_t kTiles, int64_t kChunks>
inline void AddTile(AmxS8Scratch& s, const BBlock& block, const Batch& batch, int64_t i, int64_t j,
                    const int32_t* groups) {
  const bool first = block.begin == 0 && batch.chunk == 0;
  const bool last = kOneScale && block.end == s.t->k && batch.chunk + kChunks == block.chunks();
  const float* const scale = s.scale + i * kTileSide;
  float* const y = s.Sums(block.output / kTileSide + i, batch.x_tile + j);
  Amx::Vec x[kChunks];
  for (int64_t c = 0; c < kChunks; ++c)
    x[c] = Amx::Load(s.X(batch.x_tile + j, block.begin / kChunkK + batch.chunk + c).scale);
  for (int64_t row = 0; row < kTileSide; ++row) {
    Amx::Vec total = first ? Amx::Zero() : Amx::Load(y + row * kTileSide);
    for (int64_t c = 0; c < kChunks; ++c)
      total = AddScaledChunk<Avx512Vnni, kOneScale, kGroups>(
          [&](int64_t group) {
            return Avx512Vnni::ToFloat(Avx512Vnni::LoadBytes(
                groups + (c * kGroups + group) * kTiles * kTileSums + row * kTileSide));
          },
          [&](int64_t group) {
            return Amx::Set1(scale[((batch.chunk + c) * kGroups + group) * kBPanelN + row]);
          },
          x[c], total);
    if (last) total = Amx::Mul(total, Amx::Set1(scale[row]));
    Amx::Store(y + row * kTileSide, total);
  }
}

// Scales and adds tiles [begin, end) of the kM × kN tiles of a batch.
template <bool kOneScale, int64_t kGroups, int64_t kM, int64_t kN>
inline void AddTiles(AmxS8Scratch& s, const BBlock& block, const Batch& batch, int64_t begin,
                     int64_t end) {
  if (batch.chunks == 0) return;
  WithConstant<kBatchChunks<kGroups>>(batch.chunks, [&](auto chunks) {
    for (int64_t tile = begin; tile < end; ++tile)
      AddTile<kOneScale, kGroups, kM * kN, decltype(chunks)::value>(
          s, block, batch, tile / kN, tile % kN, batch.groups + tile * kTileSums);
  });
}

// Tiles of A that are multiplied at a time.
template <int64_t kGroups>
constexpr int64_t kATiles = kGroups == 1 ? 2 : 1;

// All columns of a block for tiles [begin, end) of A, kN at a time. The vector unit scales a batch
// while the tile unit multiplies the next one.
template <bool kOneScale, int64_t kGroups, int64_t kM, int64_t kN>
inline void MultiplyTiles(AmxS8Scratch& s, const BBlock& block, int64_t begin, int64_t end) {
  constexpr int64_t kTiles = kM * kN;
  constexpr int64_t kBatch = kBatchChunks<kGroups>;  // chunks
  Batch before;
  int32_t* groups = s.groups[0];
  for (int64_t x_tile = begin; x_tile < end; x_tile += kN)
    for (int64_t chunk = 0; chunk < block.chunks(); chunk += kBatch) {
      const int64_t chunks = Min(kBatch, block.chunks() - chunk);
      for (int64_t c = 0; c < chunks; ++c) {
        PrefetchNext(s.ahead);
        MultiplyChunk<kM, kN, kGroups>(s, block.begin / kChunkK, chunk + c, x_tile,
                                       groups + c * kGroups * kTiles * kTileSums);
        AddTiles<kOneScale, kGroups, kM, kN>(s, block, before, c * kTiles / chunks,
                                             (c + 1) * kTiles / chunks);
      }
      before = {x_tile, chunk, chunks, groups};
      groups = groups == s.groups[0] ? s.groups[1] : s.groups[0];
    }
  AddTiles<kOneScale, kGroups, kM, kN>(s, block, before, 0, kTiles);
}

template <bool kOneScale, int64_t kGroups, int64_t kM>
inline void MultiplyPanel(AmxS8Scratch& s, const BBlock& block) {
  constexpr int64_t kN = kATiles<kGroups>;
  Spread(s.ahead, s.prefetch_chunks * ((s.x_tiles + kN - 1) / kN));
  const int64_t even = s.x_tiles / kN * kN;
  if (even > 0) MultiplyTiles<kOneScale, kGroups, kM, kN>(s, block, 0, even);
  if (even < s.x_tiles) MultiplyTiles<kOneScale, kGroups, kM, 1>(s, block, even, s.x_tiles);
}

template <bool kOneScale, int64_t kGroups>
inline void MultiplyBlock(AmxS8Scratch& s, const BBlock& block) {
  const GemmTask& t = *s.t;
  if constexpr (kOneScale) {
    LoadGroupScales<Avx512Vnni, kChunkK, kBPanelN>(t.grid, block.output, block.rows, block.begin, 1,
                                                   s.scale);
  } else {
    LoadGroupScales<Avx512Vnni, kChunkK / kGroups, kBPanelN>(
        t.grid, block.output, block.rows, block.begin, block.end - block.begin, s.scale);
  }
  if (s.in_vectors()) return GemvBlock<kOneScale, kGroups>(s, block);
  PlaceB(s, block);
  if (block.rows > kTileSide)
    MultiplyPanel<kOneScale, kGroups, 2>(s, block);
  else
    MultiplyPanel<kOneScale, kGroups, 1>(s, block);
}

inline BBlocks BlocksOf(const AmxS8Scratch& s, const GemmTask& t) {
  const bool in_place = s.in_vectors() || (s.small_m && t.w_type == Element::kI8);
  return {t.n,
          t.k,
          s.small_m,
          t.w_stride < kPage,
          s.in_vectors() && PrefetchesByRow(t),
          in_place ? kInPlaceBlockK : kPackedBlockK};
}

// Sets the prefetch to a block of a task.
inline void PrefetchBlock(AmxS8Scratch& s, const GemmTask& t, const BBlock& block, bool by_row) {
  s.ahead[0] = by_row ? BurstPrefetch{} : WeightBursts(t, block);
  s.ahead[1] = ScaleBursts(t, block);
}

// All blocks of the task. The first of the blocks that are prefetched together starts the prefetch
// of what follows them, perhaps of the next task.
template <bool kOneScale, int64_t kGroups>
inline void MultiplyBlocks(AmxS8Scratch& s) {
  const GemmTask& t = *s.t;
  const BBlocks blocks = BlocksOf(s, t);
  PrefetchBlock(s, t, blocks.Together(0), blocks.by_row);
  Spread(s.ahead, 1);
  PrefetchNext(s.ahead);
  for (int64_t i = 0; i < blocks.count(); ++i) {
    if (i % blocks.together() == 0) {
      s.prefetch_chunks = blocks.Together(i).chunks();
      const int64_t next = i + blocks.together();
      if (next < blocks.count())
        PrefetchBlock(s, t, blocks.Together(next), blocks.by_row);
      else if (t.next != nullptr)
        PrefetchBlock(s, *t.next, BlocksOf(s, *t.next).Together(0), blocks.by_row);
      else
        s.ahead[0] = s.ahead[1] = {};
    }
    const bool last = i + 1 == blocks.count();
    s.next_task = last ? t.next : &t;
    if (!last)
      s.next_block = blocks.At(i + 1);
    else if (t.next != nullptr)
      s.next_block = BlocksOf(s, *t.next).At(0);
    MultiplyBlock<kOneScale, kGroups>(s, blocks.At(i));
  }
}

// Tile shapes for `bytes` of each row of B.
inline TileShapes S8TileShapes(int64_t bytes) {
  TileShapes out;
  for (int i = 4; i < 6; ++i) out.row_bytes[i] = static_cast<uint16_t>(bytes);
  for (int i = 6; i < 8; ++i) {
    out.rows[i] = static_cast<uint8_t>(bytes / 4);
  }
  return out;
}

inline void StoreOutputs(AmxS8Scratch& s, int64_t output) {
  const GemmTask& t = *s.t;
  if (!s.in_vectors()) {
    for (int64_t row = 0; row < t.m; row += kTileSide)
      StoreTransposed(t, BRows<I8>{nullptr, 0, t.n, 0, 1},
                      s.Sums(output / kTileSide, row / kTileSide), output / kTileSide, row);
    return;
  }
  const int64_t rest = t.n - output;
  for (int64_t row = 0; row < t.m; ++row) {
    const Amx::Vec sum = GemvSums(s, output, row);
    StoreNext<Amx>(t.y + row * t.y_stride + output,
                   t.bias == nullptr ? sum : Amx::Add(sum, LoadNext<Amx>(t.bias + output, rest)),
                   rest);
  }
}

// groups: scale groups of a chunk, 1 or 4.
inline void MultiplyWithGroups(AmxS8Scratch& s, bool one_scale, int64_t groups) {
  if (one_scale)
    MultiplyBlocks<true, 1>(s);
  else if (groups == 1)
    MultiplyBlocks<false, 1>(s);
  else
    MultiplyBlocks<false, kChunkGroups>(s);
}

// Requires: A is int8; B is int8 or 4-bit with scales, groups as above. kTiles: t.packed.
// kSmallMTiles: M ≤ kMaxSmallAmxM, t.packed. kGemv: M ≤ kMaxAmxS8GemvM.
enum class AmxS8 { kTiles, kSmallMTiles, kGemv };
template <AmxS8 kKernel>
inline void GemmAmxS8(const GemmTask& t) {
  auto& s = ScratchAs<AmxS8Scratch>(t.scratch);
  s.t = &t;
  s.small_m = kKernel != AmxS8::kTiles;
  s.x_rows = kKernel == AmxS8::kGemv ? 1 : kTileSide;
  s.x_tiles = (t.m + s.x_rows - 1) / s.x_rows;
  s.chunks = (t.k + kChunkK - 1) / kChunkK;

  const bool one_scale = HasOneScale(t);
  const int64_t groups = one_scale || HasChunkGroups(t.grid) ? 1 : kChunkGroups;
  if (s.in_vectors()) {
    MultiplyWithGroups(s, one_scale, groups);
  } else {
    const TileScope scope{S8TileShapes(groups == 1 ? kByteStep : kMinGroupK)};
    MultiplyWithGroups(s, one_scale, groups);
  }
  for (int64_t output = 0; output < t.n; output += kTileSide) StoreOutputs(s, output);
}

}  // namespace
}  // namespace latte::cpu
