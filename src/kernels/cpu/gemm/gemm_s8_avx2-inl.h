// int8 A × int8 or 4-bit B, vpmaddwd and vpmaddubsw, AVX2: the entries of two kernels.
//
// Packing   A is packed per task in the order of B (s8_even_odd-inl.h).
// Blocking  K in passes; sums wait in C between passes.
//             gemm_s8_gemv_avx2       M × 8, M ≤ 4, B in place
//             gemm_s8_packed64_avx2   4 × 16, any M, panels of 64 rows of B
// Epilogue  Scales of A and B per chunk (int8_scales-inl.h); the bias after the last pass.
// Order     that of int8_scales-inl.h: the same bits as gemm_s8_vnni-inl.h.
// Limits    Groups of A are multiples of 128; scale groups of B begin at multiples of 128 (4-bit:
//           32) or span K; M ≤ kMaxTaskM per task; scratch 350 KiB.
#pragma once

#include "src/kernels/cpu/gemm/gemm_s8_gemv_avx2-inl.h"
#include "src/kernels/cpu/gemm/gemm_s8_packed64_avx2-inl.h"
#include "src/kernels/cpu/gemm/s8_even_odd-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Requires of both: A is int8, B is int8 or 4-bit; groups as above.
template <class V>
void GemmS8Packed64Avx2(const GemmTask& t) {
  WithS8Kind<S8EvenOddLayout, V>(t, [&]<class Kind>(Kind) {
    GemmS8Avx2Packed64<Kind>(t, static_cast<const typename Kind::T*>(t.w));
  });
}

// Requires: M ≤ kMaxGemvMAvx2.
template <class V>
void GemmS8GemvAvx2(const GemmTask& t) {
  WithS8Kind<S8EvenOddLayout, V>(t, [&]<class Kind>(Kind) {
    GemmS8Avx2Gemv<Kind>(t, static_cast<const typename Kind::T*>(t.w));
  });
}

}  // namespace
}  // namespace latte::cpu
