// Every kernel, compiled for one instruction set. What may be included here: target.h.
#include "src/kernels/cpu/common/cached_row-inl.h"
#include "src/kernels/cpu/common/merge_splits-inl.h"
#include "src/kernels/cpu/gemm/gemm_f32-inl.h"
#include "src/kernels/cpu/gemm/gemm_s8_avx2-inl.h"
#include "src/kernels/cpu/gemm_t/gemm_t_f32-inl.h"
#include "src/kernels/cpu/isa/avx2-inl.h"
#include "src/kernels/cpu/isa/avx2_int8-inl.h"
#include "src/kernels/cpu/mha/mha_f32-inl.h"
#include "src/kernels/cpu/mla_decode/mla_decode_f32-inl.h"
#include "src/kernels/cpu/peak/peak-inl.h"
#include "src/kernels/cpu/pointwise/pointwise-inl.h"
#include "src/kernels/cpu/sampling/sampling-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {

const Target kAvx2 = {
    .gemm = GemmF32<Avx2>,
    .gemm_t = GemmTF32<Avx2>,
    .mla_decode = MlaDecode<Avx2>,
    .gather_pages = GatherPages<Avx2>,
    .merge_splits = MergeSplits<Avx2>,
    .normalize_split = NormalizeSplit<Avx2>,
    .mha = Mha<Avx2>,
    .rms_norm = RmsNorm<Avx2>,
    .silu_mul = SiluMul<Avx2>,
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
    .peak = FmaPeak<Avx2>,
};

const Target kAvx2Bytes = {
    .gemm = GemmS8Avx2<Avx2Bytes>,
    .max_in_place_m = kMaxGemvMAvx2,
    .silu_mul = SiluMul<Avx2Bytes>,
};

}  // namespace latte::cpu
