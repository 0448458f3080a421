// Kernels that multiply bytes. What may be included here: target.h.
#include "src/kernels/cpu/common/merge_splits-inl.h"
#include "src/kernels/cpu/gemm/gemm_s8_vnni-inl.h"
#include "src/kernels/cpu/gemm_t/gemm_t_w4_vnni-inl.h"
#include "src/kernels/cpu/gemm_t/gemm_t_w8_vnni-inl.h"
#include "src/kernels/cpu/isa/avx512_vnni-inl.h"
#include "src/kernels/cpu/mla_decode/mla_decode_s8_vnni-inl.h"
#include "src/kernels/cpu/peak/peak-inl.h"
#include "src/kernels/cpu/pointwise/pointwise-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

void LinearTInts(const LinearTTask& t) {
  if (t.w_type == Element::kU4) return LinearTInt4<Avx512Vnni>(t);
  LinearTInt8<Avx512Vnni>(t);
}

}  // namespace

const Target kAvx512Vnni = {
    .linear = LinearInt8<Avx512Vnni>,
    .linear_t = LinearTInts,
    .products = 1,
    .pack = PackInputs<Avx512Vnni>,
    .packs = PacksInputs,
    .pack_size = {kByteChunk, sizeof(InputChunk)},
    .some_columns = kInputPanel,
    .mla_decode = MlaDecodeInt8<Avx512Vnni>,
    .decode_rows = kMaxTileRows,
    .merge_partials = MergePartials<Avx512Vnni>,
    .finish_partial = FinishPartial<Avx512Vnni>,
    .silu_mul = SiluMul<Avx512Vnni>,
    .byte_peak = BytePeak<Avx512Vnni>,
};

}  // namespace latte::cpu
