// Kernels that multiply bf16. target.h says which headers may be included here.
//
// Flags: -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni
// Flags: -mavx512bf16 -mavx512vbmi -mgfni
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
#include "src/kernels/cpu/targets.h"

namespace latte::cpu {

const Target kAvx512Bf16Target = {.name = "avx512_bf16",
                                  .features = {{"AVX512_BF16", 7, 1, CpuFeature::kEax, 5},
                                               {"AVX512_VBMI", 7, 0, CpuFeature::kEcx, 1},
                                               {"GFNI", 7, 0, CpuFeature::kEcx, 8}},
                                  .state = 0xe6,
                                  .bf16_peak = Bf16Peak<Avx512Bf16>};

const GemmKernel kBf16Gemm = {.gemm = GemmBf16Panels<Avx512Bf16>,
                              .tile = {PairMath<Avx512Bf16>::kTileRows, kDotNr},
                              .silu_mul = SiluMul<Avx512Bf16>,
                              .n_multiple = kPanelN4x6};
const GemmKernel kBf16GemmSmallM = {.gemm = GemmBf16SmallM<Avx512Bf16>,
                                    .tile = {0, 1},
                                    .silu_mul = SiluMul<Avx512Bf16>,
                                    .max_m = Avx512Bf16::kTileRows};
const GemmKernel kBf16Gemm4x6 = {.gemm = GemmBf16InPlace4x6<Avx512Bf16>,
                                 .tile = {kMr4x6, kNr4x6},
                                 .silu_mul = SiluMul<Avx512Bf16>,
                                 .max_m = kMaxM4x6,
                                 .min_n = kNr4x6,
                                 .n_multiple = kPanelN4x6};
const GemmKernel kBf16Gemm3x8 = {.gemm = GemmBf16Packed3x8<Avx512Bf16>,
                                 .tile = {kMr3x8, kNr3x8},
                                 .silu_mul = SiluMul<Avx512Bf16>};
const GemmKernel kBf16GemmW8 = {.gemm = GemmBf16W8<Avx512Bf16>,
                                .tile = {Avx512Bf16::kTileRows, 2 * kRowPairs},
                                .silu_mul = SiluMul<Avx512Bf16>};
const GemmKernel kBf16GemmW8Gemv = {.gemm = GemmBf16W8Gemv<Avx512Bf16>,
                                    .tile = {1, 2 * kGemvRowPairs},
                                    .silu_mul = SiluMul<Avx512Bf16>,
                                    .max_m = 1,
                                    .max_k = kMaxResidentA};
const GemmKernel kBf16GemmW8Streams = {.gemm = GemmBf16W8Streams<Avx512Bf16>,
                                       .tile = {0, 2 * kRowPairs},
                                       .silu_mul = SiluMul<Avx512Bf16>,
                                       .max_m = Avx512Bf16::kTileRows};

const GemmTKernel kBf16GemmTFp8 = {
    .gemm_t = GemmTFp8Bf16<Avx512Bf16>, .tile = {kPairMr, kPairColumns}, .whole_rows = true};

const MlaDecodeKernel kBf16Decode = {.mla_decode = MlaDecodeBf16<Avx512Bf16>,
                                     .merge_splits = MergeSplits<Avx512Bf16>,
                                     .normalize_split = NormalizeSplit<Avx512Bf16>};
const MlaDecodeKernel kBf16DecodeSmallH = {.mla_decode = MlaDecodeSmallH<Avx512Bf16>,
                                           .merge_splits = MergeSplits<Avx512Bf16>,
                                           .normalize_split = NormalizeSplit<Avx512Bf16>};

const MhaKernel kBf16Mha = {.mha = MhaBf16<Avx512Bf16>, .max_queries = kMaxBf16Queries};

}  // namespace latte::cpu
