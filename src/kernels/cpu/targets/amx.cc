// Kernels with AMX tiles. target.h says which headers may be included here.
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

namespace latte::cpu {
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
