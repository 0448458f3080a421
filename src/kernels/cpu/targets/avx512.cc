// Every kernel, compiled for one instruction set. What may be included here: target.h.
#include "src/kernels/cpu/common/cached_row-inl.h"
#include "src/kernels/cpu/common/merge_splits-inl.h"
#include "src/kernels/cpu/gemm/gemm_f32-inl.h"
#include "src/kernels/cpu/gemm_t/gemm_t_f32-inl.h"
#include "src/kernels/cpu/isa/avx512-inl.h"
#include "src/kernels/cpu/mha/mha_f32-inl.h"
#include "src/kernels/cpu/mla_decode/mla_decode_f32-inl.h"
#include "src/kernels/cpu/peak/peak-inl.h"
#include "src/kernels/cpu/pointwise/pointwise-inl.h"
#include "src/kernels/cpu/sampling/sampling-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {

const Target kAvx512 = {
    .gemm = GemmF32<Avx512>,
    .gemm_t = GemmTF32<Avx512>,
    .mla_decode = MlaDecode<Avx512>,
    .gather_pages = GatherPages<Avx512>,
    .merge_splits = MergeSplits<Avx512>,
    .normalize_split = NormalizeSplit<Avx512>,
    .mha = Mha<Avx512>,
    .rms_norm = RmsNorm<Avx512>,
    .silu_mul = SiluMul<Avx512>,
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
    .peak = FmaPeak<Avx512>,
};

}  // namespace latte::cpu
