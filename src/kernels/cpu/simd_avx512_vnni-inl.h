// The vocabulary of AVX512_VNNI: that of simd_avx512-inl.h, and dot products of bytes added to
// 32-bit integers, exact in any order.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/simd_avx512-inl.h"

namespace latte::cpu {
namespace {

struct Avx512Vnni : Avx512 {
  using Ints = __m512i;
  static constexpr int64_t kBytes = 64;

  static Ints ZeroInts() { return _mm512_setzero_si512(); }
  static Ints LoadBytes(const void* p) { return _mm512_loadu_si512(p); }
  static Ints SetByte(int8_t x) { return _mm512_set1_epi8(x); }
  // sum[i] + Σ_{j<4} x[4i+j]·y[4i+j], x unsigned and y signed bytes, wrapping. Not the intrinsic:
  // around it g++ 12 moves accumulators through memory.
  static Ints DotBytes(Ints sum, Ints x, Ints y) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
    return sum;
  }
  static Ints AddInts(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  static Vec ToFloat(Ints x) { return _mm512_cvtepi32_ps(x); }
};

}  // namespace
}  // namespace latte::cpu
