// Kernels that multiply bf16. What may be included here: target.h.
#include "src/kernels/cpu/common/merge_splits-inl.h"
#include "src/kernels/cpu/gemm/gemm_bf16_w8-inl.h"
#include "src/kernels/cpu/gemm_t/gemm_t_fp8_bf16-inl.h"
#include "src/kernels/cpu/isa/avx512_bf16-inl.h"
#include "src/kernels/cpu/mha/mha_bf16-inl.h"
#include "src/kernels/cpu/mla_decode/mla_decode_bf16-inl.h"
#include "src/kernels/cpu/mla_decode/mla_decode_small_h-inl.h"
#include "src/kernels/cpu/peak/peak-inl.h"
#include "src/kernels/cpu/pointwise/pointwise-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {

const Target kAvx512Bf16 = {
    .gemm = GemmBf16<Avx512Bf16>,
    .gemm_t = GemmTFp8Bf16<Avx512Bf16>,
    .batch_in_flight = 1,
    .n_multiple = kPanelN4x6,
    .mla_decode = MlaDecodeBf16<Avx512Bf16>,
    .merge_splits = MergeSplits<Avx512Bf16>,
    .normalize_split = NormalizeSplit<Avx512Bf16>,
    .mha = MhaBf16<Avx512Bf16>,
    .mha_queries = kMaxBf16Queries,
    .silu_mul = SiluMul<Avx512Bf16>,
    .peak = Bf16Peak<Avx512Bf16>,
};

const Target kAvx512SmallH = {
    .mla_decode = MlaDecodeSmallH<Avx512Bf16>,
    .merge_splits = MergeSplits<Avx512Bf16>,
    .normalize_split = NormalizeSplit<Avx512Bf16>,
};

}  // namespace latte::cpu
