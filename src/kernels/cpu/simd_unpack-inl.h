// Packed integers to bytes, for AVX2 and everything above it.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "src/kernels/cpu/element-inl.h"

namespace latte::cpu {
namespace {

// 64 codes of 6 bits, 0 to 63, as integers −32 to 31. Of code i the low four bits are in byte
// i mod 32, the high two in byte 32 + i mod 16 of the 48.
inline void UnpackGroupOf64(const void* group, I8* to) {
  const auto* const bytes = static_cast<const char*>(group);
  const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
  const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 32));
  const __m256i four = _mm256_set1_epi8(15);
  const __m256i two = _mm256_set1_epi8(0x30);
  const __m256i zero = _mm256_set1_epi8(32);
  // Bits 0–1 and 2–3, or 4–5 and 6–7, of `high` brought to bits 4–5 of two halves.
  const __m256i first = _mm256_set_m128i(_mm_slli_epi16(high, 2), _mm_slli_epi16(high, 4));
  const __m256i second = _mm256_set_m128i(_mm_srli_epi16(high, 2), high);
  const __m256i a = _mm256_or_si256(_mm256_and_si256(low, four), _mm256_and_si256(first, two));
  const __m256i b = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(low, 4), four),
                                    _mm256_and_si256(second, two));
  auto* const out = reinterpret_cast<__m256i*>(to);
  _mm256_storeu_si256(out, _mm256_sub_epi8(a, zero));
  _mm256_storeu_si256(out + 1, _mm256_sub_epi8(b, zero));
}

}  // namespace
}  // namespace latte::cpu
