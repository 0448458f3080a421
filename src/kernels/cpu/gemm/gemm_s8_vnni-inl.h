// int8 A × int8 or 4-bit B, vpdpbusd, AVX512_VNNI: the entries of five kernels.
//
// Packing   A is packed in chunks of 128 columns, per task (s8_chunk-inl.h) or once per call
//           (PackABcast).
// Blocking  K in passes; sums wait in C between passes. Rows of A × rows of B of the micro-kernels:
//             gemm_s8_gemv_vnni      M × 16   M ≤ 4
//             gemm_s8_8x8c8_vnni     8 × 8    M ≤ 8; int8 B with one scale per row
//             gemm_s8_16xm_vnni      M × 16   M ≤ 12
//             gemm_s8_bcast_vnni     16–64 × 3–12   int8 B
//             gemm_s8_packed64_vnni  6 × 64   any M
// Epilogue  Scales of A and B per chunk (int8_scales-inl.h); the bias after the last pass.
// Order     that of int8_scales-inl.h; the same bits from all five.
// Limits    Groups of A are multiples of 128; scale groups of B begin at multiples of 128 (4-bit:
//           32) or span K; M ≤ kMaxTaskM per task; scratch 350 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch_weights-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/gemm_s8_16xm_vnni-inl.h"
#include "src/kernels/cpu/gemm/gemm_s8_8x8c8_vnni-inl.h"
#include "src/kernels/cpu/gemm/gemm_s8_bcast_vnni-inl.h"
#include "src/kernels/cpu/gemm/gemm_s8_gemv_vnni-inl.h"
#include "src/kernels/cpu/gemm/gemm_s8_packed64_vnni-inl.h"
#include "src/kernels/cpu/gemm/s8_chunk-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

template <class T>
struct WithAChunks {
  AChunks x;
  T rest;
};

template <class Kind>
[[gnu::noinline]] void GemmS8Vnni16xM(const GemmTask& t, const typename Kind::T* w) {
  auto& scratch = ScratchAs<WithAChunks<Scratch16xM>>(t.scratch);
  AChunks& x = scratch.x;
  Scratch16xM& s = scratch.rest;
  x.rows = t.m;
  x.row_step = 1;
  x.chunk_step = t.m;
  const int64_t columns = Min(kMaxAChunks / t.m * kChunkK, kPassK16xM);
  for (x.begin = 0; x.begin < t.k; x.begin += x.k) {
    x.k = Min(columns, t.k - x.begin);
    PackAChunks<Kind, false>(t, x);
    for (int64_t n = 0; n < t.n; n += kSumLanes) {
      const int64_t rows = Min(kSumLanes, t.n - n);
      PrepareScales<Kind>(t, n, rows, x.begin, x.k, s.scales);
      TileS8Vnni16xM<Kind>(t, w, x, n, rows, s);
    }
  }
}

// Requires of all: A is int8, B is int8 or 4-bit; groups as above.

// Requires: M ≤ kMaxGemvM.
template <class V>
void GemmS8Gemv(const GemmTask& t) {
  WithS8Kind<S8Layout, V>(t, [&]<class Kind>(Kind) { GemmS8GemvOf<GemvVnni<Kind>>(t); });
}

// Requires: M ≤ kMaxInPlaceM.
template <class V>
void GemmS816xM(const GemmTask& t) {
  WithS8Kind<S8Layout, V>(t, [&]<class Kind>(Kind) {
    GemmS8Vnni16xM<Kind>(t, static_cast<const typename Kind::T*>(t.w));
  });
}

template <class V>
void GemmS8Packed64(const GemmTask& t) {
  WithS8Kind<S8Layout, V>(t, [&]<class Kind>(Kind) { GemmS8Packed64Of<Packed64Vnni<Kind>>(t); });
}

// Requires: B is int8 with one scale per row; M ≤ kTile8x8; K ≤ kMaxK8x8, a multiple of kChunkK.
template <class V>
void GemmS88x8(const GemmTask& t) {
  using Kind = S8Kind<S8Layout<V, I8>, 1, true, false>;
  if (t.n < kSumLanes)  // the last columns of C
    return GemmS8Vnni16xM<Kind>(t, static_cast<const I8*>(t.w));
  t.m < kTile8x8 ? GemmS8Vnni8x8<Kind, true>(t) : GemmS8Vnni8x8<Kind, false>(t);
}

// Requires: B is int8; t.packed.
template <class V>
void GemmS8Bcast(const GemmTask& t) {
  WithGroups<S8Layout<V, I8>>(t, [&]<class Kind>(Kind) { GemmS8VnniBcast<Kind>(t); });
}

}  // namespace
}  // namespace latte::cpu
