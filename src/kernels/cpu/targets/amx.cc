// Kernels on tiles. What may be included here: target.h.
#include "src/kernels/cpu/common/merge_splits-inl.h"
#include "src/kernels/cpu/gemm/gemm_amx_bf16-inl.h"
#include "src/kernels/cpu/gemm/gemm_amx_s8-inl.h"
#include "src/kernels/cpu/isa/amx-inl.h"
#include "src/kernels/cpu/mha/mha_amx_bf16-inl.h"
#include "src/kernels/cpu/mla_decode/mla_decode_amx_bf16-inl.h"
#include "src/kernels/cpu/mla_decode/mla_decode_amx_s8-inl.h"
#include "src/kernels/cpu/pointwise/pointwise-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Four chains of tiles. The operands are zero: with numbers that change products take as many
// cycles, but of a slower clock (docs/kernels/amx.md).
template <class Step>
void RunTileChains(int64_t rounds, float* sink, const Step& step) {
  const TileScope scope{TileShapes{}};
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (int64_t n = 0; n < rounds; ++n) step();
  alignas(64) float sums[kTileBytes / sizeof(float)];
  _tile_stored(0, sums, 64);
  *sink = sums[0];
}

int64_t TilePairPeak(int64_t rounds, float* sink) {
  RunTileChains(rounds, sink, [] {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 5, 6);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  });
  return rounds * 4 * kTileMacsBf16 * 2;
}

int64_t TileBytePeak(int64_t rounds, float* sink) {
  RunTileChains(rounds, sink, [] {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 5, 6);
    _tile_dpbssd(2, 4, 7);
    _tile_dpbssd(3, 5, 7);
  });
  return rounds * 4 * kTileMacsInt8 * 2;
}

}  // namespace

const Target kAmx = {
    .linear = LinearAmx,
    .tiles = true,
    .pack = PackActivations,
    .mla_decode = MlaDecodeAmx,
    .decode_rows = kMaxTileRows,
    .merge_partials = MergePartials<Amx>,
    .finish_partial = FinishPartial<Amx>,
    .mha = MhaAmx,
    .mha_queries = kMaxTileQueries,
    .silu_mul = SiluMul<Amx>,
    .peak = TilePairPeak,
    .byte_peak = TileBytePeak,
};

const Target kAmxInt8 = {
    .linear = LinearAmxInt8,
    .tiles = true,
    .pack = PackBytes,
    .pack_size = {kByteChunk, sizeof(ByteColumns)},
    .mla_decode = MlaDecodeInt8Amx,
    .decode_rows = kMaxTileRows,
    .merge_partials = MergePartials<Amx>,
    .finish_partial = FinishPartial<Amx>,
    .silu_mul = SiluMul<Amx>,
};

}  // namespace latte::cpu
