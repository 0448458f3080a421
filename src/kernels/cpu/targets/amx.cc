// Kernels with AMX tiles. target.h says which headers may be included here.
//
// Flags: -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni
// Flags: -mavx512bf16 -mavx512vbmi -mgfni -mamx-tile -mamx-bf16 -mamx-int8
#include "src/kernels/cpu/common/merge_splits-inl.h"
#include "src/kernels/cpu/gemm/gemm_amx_bf16-inl.h"
#include "src/kernels/cpu/gemm/gemm_amx_s8-inl.h"
#include "src/kernels/cpu/isa/amx-inl.h"
#include "src/kernels/cpu/mha/mha_amx_bf16-inl.h"
#include "src/kernels/cpu/mla_decode/mla_decode_amx_bf16-inl.h"
#include "src/kernels/cpu/mla_decode/mla_decode_amx_s8-inl.h"
#include "src/kernels/cpu/peak/peak_amx-inl.h"
#include "src/kernels/cpu/pointwise/pointwise-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/targets.h"

namespace latte::cpu {

const Target kAmxTarget = {.name = "amx",
                           .features = {{"AMX_TILE", 7, 0, CpuFeature::kEdx, 24},
                                        {"AMX_BF16", 7, 0, CpuFeature::kEdx, 22},
                                        {"AMX_INT8", 7, 0, CpuFeature::kEdx, 25}},
                           .state = 0x600e6,
                           .requested_state = 18,  // XFEATURE_XTILEDATA
                           .bf16_peak = AmxBf16Peak,
                           .s8_peak = AmxS8Peak};

const GemmKernel kAmxGemmBf16 = {.gemm = GemmAmxBf16<false>,
                                 .tile = {kTileSide, kAmxPanelN},
                                 .silu_mul = SiluMul<Amx>,
                                 .pack_a = PackABf16Amx,
                                 .packed_block = {kPackedBf16K, 16 * kPackedBf16K * 2},
                                 .packs_a = PacksAmxA,
                                 .amx_tiles = true};
const GemmKernel kAmxGemmBf16SmallM = {.gemm = GemmAmxBf16<true>,
                                       .tile = {kMaxSmallAmxM, kSmallMPanelTiles* kTileSide},
                                       .silu_mul = SiluMul<Amx>,
                                       .max_m = kMaxSmallAmxM,
                                       .pack_a = PackABf16Amx,
                                       .packed_block = {kPackedBf16K, 16 * kPackedBf16K * 2},
                                       .packs_a = PacksAmxA,
                                       .amx_tiles = true};
const GemmKernel kAmxGemmFp8Gemv = {.gemm = GemmAmxBf16Fp8Gemv,
                                    .tile = {0, kFp8Nr},
                                    .silu_mul = SiluMul<Amx>,
                                    .max_m = kMaxFp8GemvM,
                                    .amx_tiles = true};
const GemmKernel kAmxGemmS8 = {.gemm = GemmAmxS8<AmxS8::kTiles>,
                               .tile = {kATiles<1> * kTileSide, kBPanelN},
                               .silu_mul = SiluMul<Amx>,
                               .pack_a = PackBytes,
                               .packed_block = {kChunkK, sizeof(ByteColumns)},
                               .amx_tiles = true};
const GemmKernel kAmxGemmS8SmallM = {.gemm = GemmAmxS8<AmxS8::kSmallMTiles>,
                                     .tile = {kATiles<1> * kTileSide, kBPanelN},
                                     .silu_mul = SiluMul<Amx>,
                                     .max_m = kMaxSmallAmxM,
                                     .pack_a = PackBytes,
                                     .packed_block = {kChunkK, sizeof(ByteColumns)},
                                     .amx_tiles = true};
const GemmKernel kAmxGemmS8Gemv = {.gemm = GemmAmxS8<AmxS8::kGemv>,
                                   .tile = {0, kTileSide},
                                   .silu_mul = SiluMul<Amx>,
                                   .max_m = kMaxAmxS8GemvM,
                                   .amx_tiles = true};

const MlaDecodeKernel kAmxDecodeBf16 = {.mla_decode = MlaDecodeAmxBf16,
                                        .merge_splits = MergeSplits<Amx>,
                                        .normalize_split = NormalizeSplit<Amx>,
                                        .max_rows = kMaxLargeDecodeRows};
const MlaDecodeKernel kAmxDecodeS8 = {.mla_decode = MlaDecodeAmxS8,
                                      .merge_splits = MergeSplits<Amx>,
                                      .normalize_split = NormalizeSplit<Amx>,
                                      .max_rows = kMaxLargeDecodeRows};

const MhaKernel kAmxMha = {.mha = MhaAmxBf16, .max_queries = kMaxAmxQueries};

}  // namespace latte::cpu
