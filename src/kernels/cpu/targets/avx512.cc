// Every kernel, compiled for one instruction set. target.h says which headers may be included here.
//
// Flags: -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl
#include "src/kernels/cpu/common/cached_row-inl.h"
#include "src/kernels/cpu/common/merge_splits-inl.h"
#include "src/kernels/cpu/gemm/gemm_f32-inl.h"
#include "src/kernels/cpu/gemm_t/gemm_t_f32-inl.h"
#include "src/kernels/cpu/indexer/index_scores_f32-inl.h"
#include "src/kernels/cpu/isa/avx512-inl.h"
#include "src/kernels/cpu/mha/mha_f32-inl.h"
#include "src/kernels/cpu/mla_decode/mla_decode_f32-inl.h"
#include "src/kernels/cpu/peak/peak-inl.h"
#include "src/kernels/cpu/pointwise/pointwise-inl.h"
#include "src/kernels/cpu/sampling/sampling-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/targets.h"

namespace latte::cpu {

const Target kAvx512Target = {
    .name = "avx512",
    .features = {{"AVX512F", 7, 0, CpuFeature::kEbx, 16},
                 {"AVX512BW", 7, 0, CpuFeature::kEbx, 30},
                 {"AVX512DQ", 7, 0, CpuFeature::kEbx, 17},
                 {"AVX512VL", 7, 0, CpuFeature::kEbx, 31}},
    .state = 0xe6,
    .gather_pages = GatherPages<Avx512>,
    .rms_norm = RmsNorm<Avx512>,
    .rope = Rope<Avx512>,
    .combine = Combine<Avx512>,
    .mix = Mix<Avx512>,
    .add = Add<Avx512>,
    .round = Round<Avx512>,
    .widen = Widen<Avx512>,
    .quantize_row = QuantizeRow<Avx512>,
    .logit_max = SamplingKernels::LogitMax,
    .weight_sum = SamplingKernels::WeightSum,
    .weights = SamplingKernels::AllWeights,
    .weight_histogram = SamplingKernels::WeightHistogram,
    .find_bucket = SamplingKernels::FindBucket,
    .f32_peak = FmaPeak<Avx512>,
};

const GemmKernel kAvx512GemmF32 = {
    .gemm = GemmF32<Avx512>, .tile = {Avx512::kTileRows, kDotNr}, .silu_mul = SiluMul<Avx512>};
const GemmKernel kAvx512GemmF32Streams = {.gemm = GemmF32Streams<Avx512>,
                                          .tile = {0, kDotNr},
                                          .silu_mul = SiluMul<Avx512>,
                                          .max_m = Avx512::kTileRows};

const GemmTKernel kAvx512GemmT = {.gemm_t = GemmTF32<Avx512>,
                                  .tile = {Avx512::kTileRows, kOuterVectors* Avx512::kLanes}};
const GemmTKernel kAvx512GemmTSmallM = {.gemm_t = GemmTF32SmallM<Avx512>,
                                        .tile = {0, kSmallMColumns<Avx512>},
                                        .max_m = kMaxSmallM,
                                        .batch_in_flight = kMaxBatchInFlight};

const MlaDecodeKernel kAvx512Decode = {.mla_decode = MlaDecode<Avx512>,
                                       .merge_splits = MergeSplits<Avx512>,
                                       .normalize_split = NormalizeSplit<Avx512>};
const IndexTopKKernel kAvx512IndexTopK = {.scores = IndexScores<Avx512>};
const MhaKernel kAvx512Mha = {.mha = Mha<Avx512>};

}  // namespace latte::cpu
