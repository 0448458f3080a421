// Vector class for AVX512_VNNI: avx512-inl.h plus u8×s8 and s16×s16 dot products in s32 (vpdpbusd,
// vpdpwssd), exact in any order.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/isa/avx512-inl.h"

namespace latte::cpu {
namespace {

struct Avx512Vnni : Avx512 {
  using Ints = __m512i;
  static constexpr int64_t kBytes = 64;

  static Ints ZeroInts() { return _mm512_setzero_si512(); }
  static Ints LoadBytes(const void* p) { return _mm512_loadu_si512(p); }
  static Ints SetByte(int8_t x) { return _mm512_set1_epi8(x); }
  // sum[i] + Σ_{j<4} x[4i+j]·y[4i+j], x unsigned and y signed bytes, wrapping. Not the intrinsic:
  // g++ 12 would spill accumulators.
  static Ints DotBytes(Ints sum, Ints x, Ints y) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
    return sum;
  }
  // sum[i] + x[2i]·y[2i] + x[2i+1]·y[2i+1] of s16, wrapping.
  static Ints DotWords(Ints sum, Ints x, Ints y) {
    asm("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
    return sum;
  }
  // DotBytes with y in memory.
  static Ints DotBytesAt(Ints sum, Ints x, const void* y) {
    struct [[gnu::may_alias]] Line {
      char bytes[kBytes];
    };
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "m"(*static_cast<const Line*>(y)));
    return sum;
  }
  static Ints LoadBytesPartial(const void* p, int64_t count) {
    const auto first = count >= kBytes ? ~__mmask64{0} : (__mmask64{1} << count) - 1;
    return _mm512_maskz_loadu_epi8(first, p);
  }
  static void StoreBytes(void* p, Ints v) { _mm512_storeu_si512(p, v); }
  static Ints SetInt(int32_t x) { return _mm512_set1_epi32(x); }
  // s8 + 128 as u8.
  static Ints FlipSigns(Ints bytes) { return _mm512_xor_si512(bytes, _mm512_set1_epi8(-128)); }
  static Ints LowNibbles(Ints bytes) { return _mm512_and_si512(bytes, _mm512_set1_epi8(15)); }
  static Ints HighNibbles(Ints bytes) { return LowNibbles(_mm512_srli_epi16(bytes, 4)); }
  // Bytes 0, 2, … of two registers, and bytes 1, 3, ….
  static Ints EvenBytes(Ints a, Ints b) {
    return Join(_mm512_cvtepi16_epi8(a), _mm512_cvtepi16_epi8(b));
  }
  static Ints OddBytes(Ints a, Ints b) {
    return EvenBytes(_mm512_srli_epi16(a, 8), _mm512_srli_epi16(b, 8));
  }
  // u16 from 64 low and 64 high bytes: the lower eight of every 16 first, then the upper eight.
  static void JoinBytes(Ints low, Ints high, Ints (&words)[2]) {
    asm("" : "+v"(high));  // both uses would load it again otherwise
    words[0] = _mm512_unpacklo_epi8(low, high);
    words[1] = _mm512_unpackhi_epi8(low, high);
  }
  // 32 s8 as s16.
  static Ints WidenSigned(const void* p) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  }
  // Interleaves s16 of a and b: the lower four, or the upper four, of every eight.
  static Ints InterleaveS16Low(Ints a, Ints b) { return _mm512_unpacklo_epi16(a, b); }
  static Ints InterleaveS16High(Ints a, Ints b) { return _mm512_unpackhi_epi16(a, b); }
  static Ints AddWords(Ints a, int16_t b) { return _mm512_add_epi16(a, _mm512_set1_epi16(b)); }
  template <int kBits>
  static Ints ShiftWordsRight(Ints words) {
    return _mm512_srai_epi16(words, kBits);
  }
  static Ints SubBytes(Ints a, Ints b) { return _mm512_sub_epi8(a, b); }
  // Byte i of `four` in all 16 bytes of 128-bit lane i.
  static Ints QuartersOf(uint32_t four) {
    const __m512i index = _mm512_set_epi32(
        0x03030303, 0x03030303, 0x03030303, 0x03030303, 0x02020202, 0x02020202, 0x02020202,
        0x02020202, 0x01010101, 0x01010101, 0x01010101, 0x01010101, 0, 0, 0, 0);
    return _mm512_shuffle_epi8(_mm512_set1_epi32(static_cast<int32_t>(four)), index);
  }
  // Interleaves 128-bit lanes: a0 b0 a1 b1, or a2 b2 a3 b3.
  static Ints Interleave128Low(Ints a, Ints b) {
    return _mm512_permutex2var_epi64(a, _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0), b);
  }
  static Ints Interleave128High(Ints a, Ints b) {
    return _mm512_permutex2var_epi64(a, _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4), b);
  }
  // Lower (upper) 64 bits of every 128-bit lane of a and b.
  static Ints InterleaveS64Low(Ints a, Ints b) { return _mm512_unpacklo_epi64(a, b); }
  static Ints InterleaveS64High(Ints a, Ints b) { return _mm512_unpackhi_epi64(a, b); }
  // Sums of neighbours: per 128-bit lane two of a, then two of b.
  static Ints AddPairs(Ints a, Ints b) {
    const __m512 x = _mm512_castsi512_ps(a), y = _mm512_castsi512_ps(b);
    return _mm512_add_epi32(_mm512_castps_si512(_mm512_shuffle_ps(x, y, 0x88)),
                            _mm512_castps_si512(_mm512_shuffle_ps(x, y, 0xdd)));
  }
  // Lane 13 in the lanes where AddPairs has sums of a, lane 15 where it has sums of b.
  static Ints LastOfEights(Ints v) {
    return _mm512_permutexvar_epi32(
        _mm512_set_epi32(15, 15, 13, 13, 15, 15, 13, 13, 15, 15, 13, 13, 15, 15, 13, 13), v);
  }
  // The eight sums of a and the eight of b from AddPairs; the upper lanes are unspecified.
  static void SplitEights(Vec v, Vec& a, Vec& b) {
    a = _mm512_permutexvar_ps(_mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 13, 12, 9, 8, 5, 4, 1, 0),
                              v);
    b = _mm512_permutexvar_ps(_mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 15, 14, 11, 10, 7, 6, 3, 2),
                              v);
  }
  // Minus byte i of `four` in the 32-bit lanes of 128-bit lane i; low 16 bits alone.
  static Ints MinusQuartersOf(uint32_t four) {
    return _mm512_sub_epi32(ZeroInts(), _mm512_srli_epi32(QuartersOf(four), 24));
  }
  // 128-bit lane r of the result: lane sums of 128-bit lane r of each of the four.
  static Ints SumQuads(const Ints (&v)[4]) {
    const Ints a =
        _mm512_add_epi32(_mm512_unpacklo_epi32(v[0], v[1]), _mm512_unpackhi_epi32(v[0], v[1]));
    const Ints b =
        _mm512_add_epi32(_mm512_unpacklo_epi32(v[2], v[3]), _mm512_unpackhi_epi32(v[2], v[3]));
    return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
  }
  // Transposes a 4×4 matrix of 128-bit lanes.
  [[gnu::always_inline]] static void TransposeInts128(Ints (&m)[4]) {
    Vec floats[4];
    for (int64_t i = 0; i < 4; ++i) floats[i] = _mm512_castsi512_ps(m[i]);
    Transpose128(floats);
    for (int64_t i = 0; i < 4; ++i) m[i] = _mm512_castps_si512(floats[i]);
  }
  // The first and the second bf16 of each lane as f32.
  static Vec FirstOfPairs(Ints pairs) { return ToFloatBits(ShiftLeft<16>(pairs)); }
  static Vec SecondOfPairs(Ints pairs) {
    return ToFloatBits(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  using Avx512::Transpose;
  [[gnu::always_inline]] static void Transpose(Ints (&rows)[kLanes]) {
    Vec floats[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) floats[i] = _mm512_castsi512_ps(rows[i]);
    Transpose(floats);
    for (int64_t i = 0; i < kLanes; ++i) rows[i] = _mm512_castps_si512(floats[i]);
  }
  // Sums of the four signed bytes of each lane, of both arguments.
  static Ints SumBytes(Ints a, Ints b) {
    const Ints ones = _mm512_set1_epi8(1);
    return DotBytes(DotBytes(ZeroInts(), ones, a), ones, b);
  }
  static Ints SumBytes(Ints a) { return DotBytes(ZeroInts(), _mm512_set1_epi8(1), a); }
  static Ints TimesInt(Ints a, int32_t b) { return _mm512_mullo_epi32(a, _mm512_set1_epi32(b)); }
  // a·b, both s16 in 32-bit lanes; ignores the sign extension of b.
  static Ints MulInts(Ints a, Ints b) {
    return _mm512_madd_epi16(a, _mm512_and_si512(b, _mm512_set1_epi32(0xffff)));
  }
  static Ints AddInts(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  static Ints SubInts(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
  static Ints XorInts(Ints a, Ints b) { return _mm512_xor_si512(a, b); }
  // Lane i of the result is lane index[i] of v.
  static Ints PermuteInts(Ints index, Ints v) { return _mm512_permutexvar_epi32(index, v); }
  // The first `count` ≤ 16 unsigned bytes as u32, then zeros.
  static Ints WidenBytes(const uint8_t* p, int64_t count) {
    return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(static_cast<__mmask16>((1u << count) - 1), p));
  }
  static Vec ToFloat(Ints x) { return _mm512_cvtepi32_ps(x); }
  // Broadcasts the four bytes at p.
  static Ints SetFour(const void* p) {
    int32_t four;
    __builtin_memcpy(&four, p, sizeof(four));
    return _mm512_set1_epi32(four);
  }
  // Rounds to nearest even, saturating.
  static void StoreSignedBytes(int8_t* p, Vec v) {
    _mm_storeu_si128(At<__m128i>(p), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(v)));
  }
  // The same as s16.
  static void StoreSignedWords(int16_t* p, Vec v) {
    _mm256_storeu_si256(At<__m256i>(p), _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(v)));
  }

  // Broadcasts the eight bytes at p.
  static Ints SetEight(const void* p) {
    int64_t eight;
    __builtin_memcpy(&eight, p, sizeof(eight));
    return _mm512_set1_epi64(eight);
  }
  // x, opaque to the compiler.
  template <class T>
  static T Opaque(T x) {
    asm("" : "+r"(x));
    return x;
  }
  // Lanes 2i of a, lanes 2i + 1 of b.
  static Ints MixLanes(Ints a, Ints b) { return _mm512_mask_blend_epi32(0xaaaa, a, b); }
  // Swaps lanes 2i and 2i + 1.
  static Ints SwapLanes(Ints v) { return _mm512_shuffle_epi32(v, _MM_PERM_CDAB); }
  // Rounds to nearest even; values that do not fit become INT32_MIN.
  static Ints ToInts(Vec v) { return _mm512_cvtps_epi32(v); }
  template <int kBits>
  static Ints ShiftLeft(Ints v) {
    return _mm512_slli_epi32(v, kBits);
  }
  template <int kBits>
  static Ints ShiftRight(Ints v) {
    return _mm512_srai_epi32(v, kBits);
  }
  static Ints MaxInts(Ints a, Ints b) { return _mm512_max_epi32(a, b); }
  static int32_t MaxOfInts(Ints v) { return _mm512_reduce_max_epi32(v); }
  static int32_t SumInts(Ints v) { return _mm512_reduce_add_epi32(v); }
  static Vec ToFloatBits(Ints v) { return _mm512_castsi512_ps(v); }
  static Ints ToIntBits(Vec v) { return _mm512_castps_si512(v); }
  static void StoreLowBytes(int8_t* p, Ints v) {
    _mm_storeu_si128(At<__m128i>(p), _mm512_cvtepi32_epi8(v));
  }
  // Of lanes 0–7 and 8–15.
  static void StoreLowWords(int16_t* first, int16_t* second, Ints v) {
    const __m256i words = _mm512_cvtepi32_epi16(v);
    _mm_storeu_si128(At<__m128i>(first), _mm256_castsi256_si128(words));
    _mm_storeu_si128(At<__m128i>(second), _mm256_extracti128_si256(words, 1));
  }
  // Byte j of lane i of the result is lane i of bytes[j], which is between 0 and 255.
  static Ints PackFour(const Ints (&bytes)[4]) {
    const Ints low = _mm512_or_si512(bytes[0], _mm512_slli_epi32(bytes[1], 8));
    const Ints high = _mm512_or_si512(bytes[2], _mm512_slli_epi32(bytes[3], 8));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
  }

  // Interleaves four rows of 64 bytes: lane 4l + i of m[j] holds the four bytes of column 16l + 4j
  // + i. Transpose128 restores the column order.
  static void InterleaveFourRows(Ints (&m)[4]) {
    const Ints low01 = _mm512_unpacklo_epi8(m[0], m[1]);
    const Ints high01 = _mm512_unpackhi_epi8(m[0], m[1]);
    const Ints low23 = _mm512_unpacklo_epi8(m[2], m[3]);
    const Ints high23 = _mm512_unpackhi_epi8(m[2], m[3]);
    m[0] = _mm512_unpacklo_epi16(low01, low23);
    m[1] = _mm512_unpackhi_epi16(low01, low23);
    m[2] = _mm512_unpacklo_epi16(high01, high23);
    m[3] = _mm512_unpackhi_epi16(high01, high23);
  }
  // Transposes the 4×4 matrix of bytes in every 128-bit lane.
  static void TransposeIn128(Ints (&m)[4]) {
    const Ints low01 = _mm512_unpacklo_epi32(m[0], m[1]);
    const Ints high01 = _mm512_unpackhi_epi32(m[0], m[1]);
    const Ints low23 = _mm512_unpacklo_epi32(m[2], m[3]);
    const Ints high23 = _mm512_unpackhi_epi32(m[2], m[3]);
    m[0] = _mm512_unpacklo_epi64(low01, low23);
    m[1] = _mm512_unpackhi_epi64(low01, low23);
    m[2] = _mm512_unpacklo_epi64(high01, high23);
    m[3] = _mm512_unpackhi_epi64(high01, high23);
  }

 private:
  template <class T>
  static T* At(void* p) {
    return static_cast<T*>(p);
  }
  static Ints Join(__m256i low, __m256i high) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }
};

}  // namespace
}  // namespace latte::cpu
