// Kernels that multiply bytes. target.h says which headers may be included here.
//
// Flags: -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni
#include "src/kernels/cpu/common/merge_splits-inl.h"
#include "src/kernels/cpu/gemm/gemm_s8_vnni-inl.h"
#include "src/kernels/cpu/gemm_t/gemm_t_w4_vnni-inl.h"
#include "src/kernels/cpu/gemm_t/gemm_t_w8_vnni-inl.h"
#include "src/kernels/cpu/isa/avx512_vnni-inl.h"
#include "src/kernels/cpu/mla_decode/mla_decode_s8_vnni-inl.h"
#include "src/kernels/cpu/peak/peak-inl.h"
#include "src/kernels/cpu/pointwise/pointwise-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/targets.h"

namespace latte::cpu {

const Target kAvx512VnniTarget = {.name = "avx512_vnni",
                                  .features = {{"AVX512_VNNI", 7, 0, CpuFeature::kEcx, 11}},
                                  .state = 0xe6,
                                  .s8_peak = S8Peak<Avx512Vnni>};

const GemmKernel kVnniGemmPacked64 = {.gemm = GemmS8Packed64<Avx512Vnni>,
                                      .tile = {kMr6x64, kS8PanelN},
                                      .silu_mul = SiluMul<Avx512Vnni>,
                                      .packs_in_task = true,
                                      .n_multiple = kBcastPanelN};
const GemmKernel kVnniGemmBcast = {
    .gemm = GemmS8Bcast<Avx512Vnni>,
    .tile = {kSumLanes, kInPlaceNr<kMaxBcastM / kSumLanes>, kMaxBcastM, kMaxPackedNr},
    .silu_mul = SiluMul<Avx512Vnni>,
    .pack_a = PackABcast<Avx512Vnni>,
    .packed_block = {kChunkK, sizeof(BcastAChunk)},
    .n_multiple = kBcastPanelN};
const GemmKernel kVnniGemm16xM = {.gemm = GemmS816xM<Avx512Vnni>,
                                  .tile = {0, kSumLanes},
                                  .silu_mul = SiluMul<Avx512Vnni>,
                                  .max_m = kMaxInPlaceM};
const GemmKernel kVnniGemm8x8 = {.gemm = GemmS88x8<Avx512Vnni>,
                                 .tile = {kTile8x8, kTile8x8},
                                 .silu_mul = SiluMul<Avx512Vnni>,
                                 .max_m = kTile8x8,
                                 .max_k = kMaxK8x8,
                                 .min_n = kSumLanes};
const GemmKernel kVnniGemmGemv = {.gemm = GemmS8Gemv<Avx512Vnni>,
                                  .tile = {0, kSumLanes},
                                  .silu_mul = SiluMul<Avx512Vnni>,
                                  .max_m = kMaxGemvM};

const GemmTKernel kVnniGemmTW8 = {
    .gemm_t = GemmTW8Vnni<Avx512Vnni>, .tile = {kPairMr, kPairColumns}, .whole_rows = true};
const GemmTKernel kVnniGemmTW4 = {.gemm_t = GemmTW4Vnni<Avx512Vnni>,
                                  .tile = {kMaxSmallM, kInterleavedColumns},
                                  .whole_rows = true};

const MlaDecodeKernel kVnniDecode = {.mla_decode = MlaDecodeS8<Avx512Vnni>,
                                     .merge_splits = MergeSplits<Avx512Vnni>,
                                     .normalize_split = NormalizeSplit<Avx512Vnni>,
                                     .max_rows = kMaxLargeDecodeRows};

}  // namespace latte::cpu
