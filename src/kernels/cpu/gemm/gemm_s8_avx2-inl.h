// linear on int8 activations and int8 or 4-bit weights without dot products of bytes (AVX2):
// multiply-adds of words and bytes, exact within a run.
//
// Work      tasks as in gemm_f32-inl.h. Rows of x are brought into the order of W first
//           (s8_even_odd-inl.h). Then, as many rows of x as there are:
//             up to 4: gemm_s8_gemv_avx2-inl.h, rows of W one after the other
//             more: gemm_s8_packed64_avx2-inl.h, 64 rows of W that are laid out for them
//           K is taken in passes of as many columns as fit; sums wait in y. Memory is asked as
//           prefetch_sequential-inl.h says.
// Order     as int8_scales-inl.h says, the bias last: the bits of avx512_vnni. For every tile, task
//           and thread count.
// Limits    groups of x are multiples of 128; scales of W begin at multiples of 128, of 4-bit ones
//           at multiples of 32, or are one along K; up to kMaxTaskRows rows of x; scratch 350 KiB.
#pragma once

#include "src/kernels/cpu/gemm/gemm_s8_gemv_avx2-inl.h"
#include "src/kernels/cpu/gemm/gemm_s8_packed64_avx2-inl.h"
#include "src/kernels/cpu/gemm/s8_even_odd-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Requires: groups as above.
template <class V>
void LinearHalves(const LinearTask& t) {
  WithByteKind<ByteHalves, V>(t, [&]<class Kind>(Kind) {
    const auto* const w = static_cast<const typename Kind::T*>(t.w);
    if (t.m <= kMaxHalvesFew) return MultiplyByHalvesFew<Kind>(t, w);
    MultiplyByHalvesPanels<Kind>(t, w);
  });
}

}  // namespace
}  // namespace latte::cpu
