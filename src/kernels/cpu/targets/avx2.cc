// Every kernel, compiled for one instruction set. target.h says which headers may be included here.
//
// Flags: -mavx2 -mfma -mf16c
#include "src/kernels/cpu/common/cached_row-inl.h"
#include "src/kernels/cpu/common/merge_splits-inl.h"
#include "src/kernels/cpu/gemm/gemm_f32-inl.h"
#include "src/kernels/cpu/gemm/gemm_s8_avx2-inl.h"
#include "src/kernels/cpu/gemm_t/gemm_t_f32-inl.h"
#include "src/kernels/cpu/indexer/index_scores_f32-inl.h"
#include "src/kernels/cpu/isa/avx2-inl.h"
#include "src/kernels/cpu/isa/avx2_int8-inl.h"
#include "src/kernels/cpu/mha/mha_f32-inl.h"
#include "src/kernels/cpu/mla_decode/mla_decode_f32-inl.h"
#include "src/kernels/cpu/peak/peak-inl.h"
#include "src/kernels/cpu/pointwise/pointwise-inl.h"
#include "src/kernels/cpu/sampling/sampling-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/targets.h"

namespace latte::cpu {

const Target kAvx2Target = {
    .name = "avx2",
    .features = {{"AVX2", 7, 0, CpuFeature::kEbx, 5},
                 {"FMA", 1, 0, CpuFeature::kEcx, 12},
                 {"F16C", 1, 0, CpuFeature::kEcx, 29}},
    .state = 0x6,
    .gather_pages = GatherPages<Avx2>,
    .rms_norm = RmsNorm<Avx2>,
    .rope = Rope<Avx2>,
    .combine = Combine<Avx2>,
    .mix = Mix<Avx2>,
    .add = Add<Avx2>,
    .round = Round<Avx2>,
    .widen = Widen<Avx2>,
    .quantize_row = QuantizeRow<Avx2>,
    .logit_max = SamplingKernels::LogitMax,
    .weight_sum = SamplingKernels::WeightSum,
    .weights = SamplingKernels::AllWeights,
    .weight_histogram = SamplingKernels::WeightHistogram,
    .find_bucket = SamplingKernels::FindBucket,
    .f32_peak = FmaPeak<Avx2>,
};

const GemmKernel kAvx2GemmF32 = {
    .gemm = GemmF32<Avx2>, .tile = {Avx2::kTileRows, kDotNr}, .silu_mul = SiluMul<Avx2>};
const GemmKernel kAvx2GemmF32Streams = {.gemm = GemmF32Streams<Avx2>,
                                        .tile = {0, kDotNr},
                                        .silu_mul = SiluMul<Avx2>,
                                        .max_m = Avx2::kTileRows};
const GemmKernel kAvx2GemmS8Packed64 = {.gemm = GemmS8Packed64Avx2<Avx2Bytes>,
                                        .tile = {kMr4x16, kNr4x16},
                                        .silu_mul = SiluMul<Avx2Bytes>,
                                        .packs_in_task = true};
const GemmKernel kAvx2GemmS8Gemv = {.gemm = GemmS8GemvAvx2<Avx2Bytes>,
                                    .tile = {0, kS32Lanes},
                                    .silu_mul = SiluMul<Avx2Bytes>,
                                    .max_m = kMaxGemvM};

const GemmTKernel kAvx2GemmT = {.gemm_t = GemmTF32<Avx2>,
                                .tile = {Avx2::kTileRows, kOuterVectors* Avx2::kLanes}};
const GemmTKernel kAvx2GemmTSmallM = {.gemm_t = GemmTF32SmallM<Avx2>,
                                      .tile = {0, kSmallMColumns<Avx2>},
                                      .max_m = kMaxSmallM,
                                      .batch_in_flight = kMaxBatchInFlight};

const MlaDecodeKernel kAvx2Decode = {.mla_decode = MlaDecode<Avx2>,
                                     .merge_splits = MergeSplits<Avx2>,
                                     .normalize_split = NormalizeSplit<Avx2>};
const IndexTopKKernel kAvx2IndexTopK = {.scores = IndexScores<Avx2>};
const MhaKernel kAvx2Mha = {.mha = Mha<Avx2>};

}  // namespace latte::cpu
