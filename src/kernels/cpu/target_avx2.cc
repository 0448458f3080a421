// Every kernel, compiled for one instruction set. What may be included here: target.h.
#include "src/kernels/cpu/cached_row-inl.h"
#include "src/kernels/cpu/linear-inl.h"
#include "src/kernels/cpu/linear_halves-inl.h"
#include "src/kernels/cpu/linear_t-inl.h"
#include "src/kernels/cpu/mha-inl.h"
#include "src/kernels/cpu/mla_decode-inl.h"
#include "src/kernels/cpu/partial-inl.h"
#include "src/kernels/cpu/peak-inl.h"
#include "src/kernels/cpu/pointwise-inl.h"
#include "src/kernels/cpu/simd_avx2-inl.h"
#include "src/kernels/cpu/simd_avx2_bytes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {

const Target kAvx2 = {
    .linear = LinearF32<Avx2>,
    .linear_t = LinearT<Avx2>,
    .mla_decode = MlaDecode<Avx2>,
    .gather_pages = GatherPages<Avx2>,
    .merge_partials = MergePartials<Avx2>,
    .finish_partial = FinishPartial<Avx2>,
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
    .peak = FmaPeak<Avx2>,
};

const Target kAvx2Bytes = {
    .linear = LinearHalves<Avx2Bytes>,
    .lane_inputs = kMaxHalvesFew,
    .silu_mul = SiluMul<Avx2Bytes>,
};

}  // namespace latte::cpu
