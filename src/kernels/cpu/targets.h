// The instruction sets of x86 for which kernels are compiled, by rising level, each with its
// kernels. targets/<isa>.cc defines them and the required CPU features; tables/*.cc has the rules
// of selection.
#pragma once

#include "src/kernels/cpu/target.h"
#include "src/kernels/isa.h"

namespace latte::x86 {

inline constexpr Isa kAvx2{IsaFamily::kX86, 0};        // AVX2, FMA and F16C
inline constexpr Isa kAvx512{IsaFamily::kX86, 1};      // AVX-512 F, BW, DQ and VL
inline constexpr Isa kAvx512Vnni{IsaFamily::kX86, 2};  // dot products of bytes
inline constexpr Isa kAvx512Bf16{IsaFamily::kX86, 3};  // dot products of bf16; VBMI and GFNI
inline constexpr Isa kAmx{IsaFamily::kX86, 4};         // tiles of bf16 and int8

}  // namespace latte::x86

namespace latte::cpu {

extern const Target kAvx2Target, kAvx512Target;                        // all functions
extern const Target kAvx512VnniTarget, kAvx512Bf16Target, kAmxTarget;  // peaks

// By level.
inline constexpr const Target* kTargets[] = {&kAvx2Target, &kAvx512Target, &kAvx512VnniTarget,
                                             &kAvx512Bf16Target, &kAmxTarget};

extern const GemmKernel kAvx2GemmF32, kAvx2GemmF32Streams, kAvx2GemmS8Packed64, kAvx2GemmS8Gemv;
extern const GemmKernel kAvx512GemmF32, kAvx512GemmF32Streams;
extern const GemmKernel kVnniGemmPacked64, kVnniGemmBcast, kVnniGemm16xM, kVnniGemm8x8,
    kVnniGemmGemv;
extern const GemmKernel kBf16Gemm, kBf16GemmSmallM, kBf16Gemm4x6, kBf16Gemm3x8;
extern const GemmKernel kBf16GemmW8, kBf16GemmW8Gemv, kBf16GemmW8Streams;
extern const GemmKernel kAmxGemmBf16, kAmxGemmBf16SmallM, kAmxGemmFp8Gemv;
extern const GemmKernel kAmxGemmS8, kAmxGemmS8SmallM, kAmxGemmS8Gemv;

extern const GemmTKernel kAvx2GemmT, kAvx2GemmTSmallM, kAvx512GemmT, kAvx512GemmTSmallM;
extern const GemmTKernel kVnniGemmTW8, kVnniGemmTW4, kBf16GemmTFp8;

extern const MlaDecodeKernel kAvx2Decode, kAvx512Decode, kVnniDecode, kBf16Decode,
    kBf16DecodeSmallH;
extern const MlaDecodeKernel kAmxDecodeBf16, kAmxDecodeS8;

extern const IndexTopKKernel kAvx2IndexTopK, kAvx512IndexTopK;

extern const MhaKernel kAvx2Mha, kAvx512Mha, kBf16Mha, kAmxMha;

}  // namespace latte::cpu
