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

int64_t AmxBf16Peak(int64_t rounds, float* sink) {
  RunTileChains(rounds, sink, [] {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 5, 6);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  });
  return rounds * 4 * kTileMacsBf16 * 2;
}

int64_t AmxS8Peak(int64_t rounds, float* sink) {
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
    .gemm = GemmAmxBf16,
    .amx_tiles = true,
    .pack_a = PackABf16Amx,
    .mla_decode = MlaDecodeAmxBf16,
    .decode_rows = kMaxLargeDecodeRows,
    .merge_splits = MergeSplits<Amx>,
    .normalize_split = NormalizeSplit<Amx>,
    .mha = MhaAmxBf16,
    .mha_queries = kMaxAmxQueries,
    .silu_mul = SiluMul<Amx>,
    .peak = AmxBf16Peak,
    .s8_peak = AmxS8Peak,
};

const Target kAmxInt8 = {
    .gemm = GemmAmxS8,
    .amx_tiles = true,
    .pack_a = PackBytes,
    .packed_a_block = {kChunkK, sizeof(ByteColumns)},
    .mla_decode = MlaDecodeAmxS8,
    .decode_rows = kMaxLargeDecodeRows,
    .merge_splits = MergeSplits<Amx>,
    .normalize_split = NormalizeSplit<Amx>,
    .silu_mul = SiluMul<Amx>,
};

}  // namespace latte::cpu
