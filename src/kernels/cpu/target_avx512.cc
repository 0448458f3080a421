// Every kernel, compiled for one instruction set. What may be included here: target.h.
#include "src/kernels/cpu/gemm-inl.h"
#include "src/kernels/cpu/mha-inl.h"
#include "src/kernels/cpu/mla_decode-inl.h"
#include "src/kernels/cpu/peak-inl.h"
#include "src/kernels/cpu/pointwise-inl.h"
#include "src/kernels/cpu/simd_avx512-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {

const Target kAvx512 = {Linear<Avx512>,  LinearT<Avx512>, MlaDecode<Avx512>, Mha<Avx512>,
                        RmsNorm<Avx512>, SiluMul<Avx512>, FmaPeak<Avx512>};

}  // namespace latte::cpu
