// Every kernel, compiled for one instruction set. What may be included here: target.h.
#include "src/kernels/cpu/gemm-inl.h"
#include "src/kernels/cpu/mha-inl.h"
#include "src/kernels/cpu/mla_decode-inl.h"
#include "src/kernels/cpu/peak-inl.h"
#include "src/kernels/cpu/pointwise-inl.h"
#include "src/kernels/cpu/simd_avx2-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {

const Target kAvx2 = {Linear<Avx2>,  LinearT<Avx2>, MlaDecode<Avx2>, Mha<Avx2>,
                      RmsNorm<Avx2>, SiluMul<Avx2>, FmaPeak<Avx2>};

}  // namespace latte::cpu
