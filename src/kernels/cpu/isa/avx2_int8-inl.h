// Vector class for int8 products on AVX2: avx2-inl.h plus vpmaddwd (s16×s16) and vpmaddubsw
// (u8×s8). Neighbouring products are added; 4-bit operands keep vpmaddubsw free of saturation.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/isa/avx2-inl.h"

namespace latte::cpu {
namespace {

struct Avx2Bytes : Avx2 {
  using Ints = __m256i;
  static constexpr int64_t kBytes = 32;

  static Ints ZeroInts() { return _mm256_setzero_si256(); }
  static Ints LoadBytes(const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i_u*>(p));
  }
  // The first `count` ≤ kBytes bytes, then zeros; reads nothing behind them.
  static Ints LoadBytesPartial(const void* p, int64_t count) {
    if (count >= kBytes) return LoadBytes(p);
    alignas(32) uint8_t part[kBytes] = {};
    __builtin_memcpy(part, p, static_cast<uint64_t>(count));
    return LoadBytes(part);
  }
  static void StoreBytes(void* p, Ints v) { _mm256_storeu_si256(static_cast<__m256i_u*>(p), v); }
  static Ints SetInt(int32_t x) { return _mm256_set1_epi32(x); }
  static Ints SetWord(int16_t x) { return _mm256_set1_epi16(x); }
  static Ints SetByte(int8_t x) { return _mm256_set1_epi8(x); }
  static Ints AddInts(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
  // Lane i: a[2i]·b[2i] + a[2i+1]·b[2i+1] of s16; and of bytes, a unsigned and b signed, if the sum
  // fits into s16.
  static Ints DotWords(Ints a, Ints b) { return _mm256_madd_epi16(a, b); }
  static Ints DotBytes(Ints a, Ints b) { return _mm256_maddubs_epi16(a, b); }
  // sums += DotWords(w0, x), DotWords(w1, x) in s32, x the four bytes at p; and the same for
  // DotBytes in s16. Not intrinsics: g++ 12 hoists loads until sums spill.
  static void AddTwoWordDots(Ints (&sums)[2], Ints w0, Ints w1, const void* p) {
    Ints a = sums[0], b = sums[1], x, y;
    asm("vpbroadcastd %6, %2\n\tvpmaddwd %2, %4, %3\n\tvpaddd %3, %0, %0\n\t"
        "vpmaddwd %2, %5, %2\n\tvpaddd %2, %1, %1"
        : "+x"(a), "+x"(b), "=&x"(x), "=&x"(y)
        : "x"(w0), "x"(w1), "m"(*static_cast<const Four*>(p)));
    sums[0] = a;
    sums[1] = b;
  }
  static void AddTwoByteDots(Ints (&sums)[2], Ints w0, Ints w1, const void* p) {
    Ints a = sums[0], b = sums[1], x, y;
    asm("vpbroadcastd %6, %2\n\tvpmaddubsw %2, %4, %3\n\tvpaddw %3, %0, %0\n\t"
        "vpmaddubsw %2, %5, %2\n\tvpaddw %2, %1, %1"
        : "+x"(a), "+x"(b), "=&x"(x), "=&x"(y)
        : "x"(w0), "x"(w1), "m"(*static_cast<const Four*>(p)));
    sums[0] = a;
    sums[1] = b;
  }
  // sum + DotWords(w, x) in s32 and sum + DotBytes(w, x) in s16, x in memory at p; no intrinsics
  // for the same reason.
  static Ints AddWordDot(Ints sum, Ints w, const void* p) {
    Ints y;
    asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
        : "+x"(sum), "=&x"(y)
        : "x"(w), "m"(*static_cast<const Line*>(p)));
    return sum;
  }
  static Ints AddByteDot(Ints sum, Ints w, const void* p) {
    Ints y;
    asm("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0"
        : "+x"(sum), "=&x"(y)
        : "x"(w), "m"(*static_cast<const Line*>(p)));
    return sum;
  }
  // a·b, both s16 in 32-bit lanes; ignores the sign extension of b.
  static Ints MulInts(Ints a, Ints b) {
    return _mm256_madd_epi16(a, _mm256_and_si256(b, _mm256_set1_epi32(0xffff)));
  }
  static Vec ToFloat(Ints x) { return _mm256_cvtepi32_ps(x); }
  // Signed bytes 0, 2, … as s16, and bytes 1, 3, ….
  static Ints EvenWords(Ints bytes) { return OddWords(_mm256_slli_epi16(bytes, 8)); }
  static Ints OddWords(Ints bytes) { return _mm256_srai_epi16(bytes, 8); }
  static Ints LowNibbles(Ints bytes) { return _mm256_and_si256(bytes, SetByte(15)); }
  static Ints HighNibbles(Ints bytes) { return LowNibbles(_mm256_srli_epi16(bytes, 4)); }
  // Bytes 0, 2, … of two registers, and bytes 1, 3, ….
  static Ints EvenBytes(Ints a, Ints b) {
    const __m256i low = SetWord(0xff);
    return Pack(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
  }
  static Ints OddBytes(Ints a, Ints b) {
    return Pack(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
  }
  // Lane 4h + i of the result: the sum of 128-bit lane h of v[i].
  static Ints SumFours(const Ints (&v)[4]) {
    const Ints a = AddInts(_mm256_unpacklo_epi32(v[0], v[1]), _mm256_unpackhi_epi32(v[0], v[1]));
    const Ints b = AddInts(_mm256_unpacklo_epi32(v[2], v[3]), _mm256_unpackhi_epi32(v[2], v[3]));
    return AddInts(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
  }
  // Adds the 128-bit lanes of two such results: lanes 0–3 from the first, 4–7 from the second.
  static Ints AddHalves(Ints a, Ints b) {
    return AddInts(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
  }
  // The first and the second bf16 of each lane as f32.
  static Vec FirstOfPairs(Ints pairs) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)); }
  static Vec SecondOfPairs(Ints pairs) {
    return _mm256_castsi256_ps(
        _mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  using Avx2::Transpose;
  [[gnu::always_inline]] static void Transpose(Ints (&rows)[kLanes]) {
    Vec floats[kLanes] = {AsFloat(rows[0]), AsFloat(rows[1]), AsFloat(rows[2]), AsFloat(rows[3]),
                          AsFloat(rows[4]), AsFloat(rows[5]), AsFloat(rows[6]), AsFloat(rows[7])};
    Transpose(floats);
    rows[0] = _mm256_castps_si256(floats[0]);
    rows[1] = _mm256_castps_si256(floats[1]);
    rows[2] = _mm256_castps_si256(floats[2]);
    rows[3] = _mm256_castps_si256(floats[3]);
    rows[4] = _mm256_castps_si256(floats[4]);
    rows[5] = _mm256_castps_si256(floats[5]);
    rows[6] = _mm256_castps_si256(floats[6]);
    rows[7] = _mm256_castps_si256(floats[7]);
  }

 private:
  static Vec AsFloat(Ints v) { return _mm256_castsi256_ps(v); }
  struct [[gnu::may_alias]] Four {
    char bytes[4];
  };
  struct [[gnu::may_alias]] Line {
    char bytes[kBytes];
  };
  static Ints Pack(Ints a, Ints b) {
    return _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xd8);
  }
};

}  // namespace
}  // namespace latte::cpu
