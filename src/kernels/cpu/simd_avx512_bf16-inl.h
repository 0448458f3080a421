// The vocabulary of AVX-512 and AVX512_BF16: that of simd_avx512-inl.h, and dot products of pairs
// of bf16, which multiply twice as many numbers per instruction and add them in f32.
//
// A vector of pairs is 32 bf16; pair i belongs to float i of a sum. The instructions round to
// nearest even and take subnormal operands and results as zero, whatever the control register says.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/simd_avx512-inl.h"

namespace latte::cpu {
namespace {

struct Avx512Bf16 : Avx512 {
  using Pairs = __m512bh;
  static constexpr int64_t kPairElements = 32;

  static Pairs LoadPairs(const BF16* p) { return As(_mm512_loadu_epi16(p)); }
  // The first `count` ≤ 32 elements, zeros behind them; nothing past them is read.
  static Pairs LoadPairsPartial(const BF16* p, int64_t count) {
    const auto first = static_cast<__mmask32>((uint64_t{1} << count) - 1);
    return As(_mm512_maskz_loadu_epi16(first, p));
  }
  static void StorePairs(BF16* p, Pairs v) { _mm512_storeu_epi16(p, Bits(v)); }
  // The pair at p in every place.
  static Pairs SetPair(const BF16* p) {
    int32_t pair;
    __builtin_memcpy(&pair, p, sizeof(pair));
    return As(_mm512_set1_epi32(pair));
  }
  // low and then high, rounded.
  static Pairs RoundPairs(Vec low, Vec high) { return _mm512_cvtne2ps_pbh(high, low); }
  // sum[i] + x[2i]·y[2i] + x[2i+1]·y[2i+1]
  static Vec DotPairs(Vec sum, Pairs x, Pairs y) { return _mm512_dpbf16_ps(sum, x, y); }
  // Pairs with their second numbers replaced by zero.
  static Pairs EvenOfPairs(Pairs v) { return As(_mm512_maskz_mov_epi16(0x55555555u, Bits(v))); }
  // a0 b0 a1 b1 … a15 b15, and the same of the upper halves.
  static Pairs ZipLow(Pairs a, Pairs b) {
    return As(_mm512_permutex2var_epi16(Bits(a), ZipIndex(), Bits(b)));
  }
  static Pairs ZipHigh(Pairs a, Pairs b) {
    const __m512i index = _mm512_add_epi16(ZipIndex(), _mm512_set1_epi16(16));
    return As(_mm512_permutex2var_epi16(Bits(a), index, Bits(b)));
  }

 protected:
  static Pairs As(__m512i bits) { return reinterpret_cast<Pairs>(bits); }
  static __m512i Bits(Pairs v) { return reinterpret_cast<__m512i>(v); }

 private:
  static __m512i ZipIndex() {
    return _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38,
                            6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  }
};

}  // namespace
}  // namespace latte::cpu
