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

void GemmTVnni(const GemmTTask& t) {
  if (t.w_type == Element::kU4) return GemmTW4Vnni<Avx512Vnni>(t);
  GemmTW8Vnni<Avx512Vnni>(t);
}

}  // namespace

const Target kAvx512Vnni = {
    .gemm = GemmS8Vnni<Avx512Vnni>,
    .gemm_t = GemmTVnni,
    .batch_in_flight = 1,
    .pack_a = PackABcast<Avx512Vnni>,
    .packs_a = PacksABcast,
    .packed_a_block = {kChunkK, sizeof(BcastAChunk)},
    .n_multiple = kBcastPanelN,
    .mla_decode = MlaDecodeS8<Avx512Vnni>,
    .decode_rows = kMaxLargeDecodeRows,
    .merge_splits = MergeSplits<Avx512Vnni>,
    .normalize_split = NormalizeSplit<Avx512Vnni>,
    .silu_mul = SiluMul<Avx512Vnni>,
    .s8_peak = S8Peak<Avx512Vnni>,
};

}  // namespace latte::cpu
