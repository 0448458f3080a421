// Unpacks 5-bit integers to bytes; used by AVX2 and all later instruction sets.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "src/kernels/cpu/isa/dtypes-inl.h"

namespace latte::cpu {
namespace {

// 64 codes of 5 bits, 0 to 31, as integers −16 to 15. Of code i the low four bits are in byte
// i mod 32, the fifth is bit i div 8 of byte 32 + i mod 8 of the 40.
inline void UnpackChunkOf64(const void* chunk, I8* to) {
  const auto* const bytes = static_cast<const char*>(chunk);
  int64_t fifths;
  __builtin_memcpy(&fifths, bytes + 32, sizeof(fifths));
  const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
  const __m256i high = _mm256_set1_epi64x(fifths);
  const __m256i four = _mm256_set1_epi8(15);
  const __m256i zero = _mm256_set1_epi8(16);
  constexpr int64_t kOne = 0x0101010101010101;
  const __m256i first = _mm256_set_epi64x(kOne << 3, kOne << 2, kOne << 1, kOne);
  const __m256i second = _mm256_slli_epi64(first, 4);
  // Subtracts 16 where the fifth bit is clear.
  const auto join = [&](__m256i nibbles, __m256i bit) {
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(high, bit), bit);
    return _mm256_sub_epi8(_mm256_and_si256(nibbles, four), _mm256_andnot_si256(set, zero));
  };
  auto* const out = reinterpret_cast<__m256i*>(to);
  _mm256_storeu_si256(out, join(low, first));
  _mm256_storeu_si256(out + 1, join(_mm256_srli_epi16(low, 4), second));
}

}  // namespace
}  // namespace latte::cpu
