// The vocabulary of AVX512_VNNI: that of avx512-inl.h, and dot products of bytes added to
// 32-bit integers, exact in any order.
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
  // around it g++ 12 moves accumulators through memory.
  static Ints DotBytes(Ints sum, Ints x, Ints y) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
    return sum;
  }
  // sum[i] + x[2i]·y[2i] + x[2i+1]·y[2i+1], signed words, wrapping.
  static Ints DotWords(Ints sum, Ints x, Ints y) {
    asm("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
    return sum;
  }
  // DotBytes of y in memory.
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
  // Signed bytes as unsigned ones, 128 larger.
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
  // Words of 64 lower and 64 upper bytes: the lower eight of every 16 first, then the upper eight.
  static void JoinBytes(Ints low, Ints high, Ints (&words)[2]) {
    asm("" : "+v"(high));  // or both of what follows would load it
    words[0] = _mm512_unpacklo_epi8(low, high);
    words[1] = _mm512_unpackhi_epi8(low, high);
  }
  // 32 signed bytes as words.
  static Ints WidenSigned(const void* p) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  }
  // Words of both by turns: in every eight the lower four, or the upper four.
  static Ints ZipWordsLow(Ints a, Ints b) { return _mm512_unpacklo_epi16(a, b); }
  static Ints ZipWordsHigh(Ints a, Ints b) { return _mm512_unpackhi_epi16(a, b); }
  static Ints AddWords(Ints a, int16_t b) { return _mm512_add_epi16(a, _mm512_set1_epi16(b)); }
  template <int kBits>
  static Ints ShiftWordsRight(Ints words) {
    return _mm512_srai_epi16(words, kBits);
  }
  static Ints SubBytes(Ints a, Ints b) { return _mm512_sub_epi8(a, b); }
  // Byte i of four in all of quarter i, 16 bytes.
  static Ints QuartersOf(uint32_t four) {
    const __m512i index = _mm512_set_epi32(
        0x03030303, 0x03030303, 0x03030303, 0x03030303, 0x02020202, 0x02020202, 0x02020202,
        0x02020202, 0x01010101, 0x01010101, 0x01010101, 0x01010101, 0, 0, 0, 0);
    return _mm512_shuffle_epi8(_mm512_set1_epi32(static_cast<int32_t>(four)), index);
  }
  // Quarters 0 and 1, or 2 and 3, of both by turns: a0 b0 a1 b1, or a2 b2 a3 b3.
  static Ints ZipQuartersLow(Ints a, Ints b) {
    return _mm512_permutex2var_epi64(a, _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0), b);
  }
  static Ints ZipQuartersHigh(Ints a, Ints b) {
    return _mm512_permutex2var_epi64(a, _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4), b);
  }
  // Of every quarter the lower halves of both, or the upper ones.
  static Ints ZipLongsLow(Ints a, Ints b) { return _mm512_unpacklo_epi64(a, b); }
  static Ints ZipLongsHigh(Ints a, Ints b) { return _mm512_unpackhi_epi64(a, b); }
  // Sums of neighbours: of every quarter the two of a, then the two of b.
  static Ints AddPairs(Ints a, Ints b) {
    const __m512 x = _mm512_castsi512_ps(a), y = _mm512_castsi512_ps(b);
    return _mm512_add_epi32(_mm512_castps_si512(_mm512_shuffle_ps(x, y, 0x88)),
                            _mm512_castps_si512(_mm512_shuffle_ps(x, y, 0xdd)));
  }
  // Lane 13 where AddPairs has sums of a, lane 15 where it has those of b.
  static Ints LastOfEights(Ints v) {
    return _mm512_permutexvar_epi32(
        _mm512_set_epi32(15, 15, 13, 13, 15, 15, 13, 13, 15, 15, 13, 13, 15, 15, 13, 13), v);
  }
  // The eight of a and the eight of b as AddPairs leaves them; behind them anything.
  static void SplitEights(Vec v, Vec& a, Vec& b) {
    a = _mm512_permutexvar_ps(_mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 13, 12, 9, 8, 5, 4, 1, 0),
                              v);
    b = _mm512_permutexvar_ps(_mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 15, 14, 11, 10, 7, 6, 3, 2),
                              v);
  }
  // Minus byte i of four in the lanes of quarter i, its low 16 bits.
  static Ints MinusQuartersOf(uint32_t four) {
    return _mm512_sub_epi32(ZeroInts(), _mm512_srli_epi32(QuartersOf(four), 24));
  }
  // Quarter r of the result: the sums of the lanes of quarter r of each of the four.
  static Ints SumQuads(const Ints (&v)[4]) {
    const Ints a =
        _mm512_add_epi32(_mm512_unpacklo_epi32(v[0], v[1]), _mm512_unpackhi_epi32(v[0], v[1]));
    const Ints b =
        _mm512_add_epi32(_mm512_unpacklo_epi32(v[2], v[3]), _mm512_unpackhi_epi32(v[2], v[3]));
    return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
  }
  // Transposes a 4 × 4 matrix of quarters.
  [[gnu::always_inline]] static void TurnQuarters(Ints (&m)[4]) {
    Vec floats[4];
    for (int64_t i = 0; i < 4; ++i) floats[i] = _mm512_castsi512_ps(m[i]);
    TurnLanes(floats);
    for (int64_t i = 0; i < 4; ++i) m[i] = _mm512_castps_si512(floats[i]);
  }
  // Of each lane's two bf16.
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
  // Of each lane of both, signed bytes.
  static Ints SumBytes(Ints a, Ints b) {
    const Ints ones = _mm512_set1_epi8(1);
    return DotBytes(DotBytes(ZeroInts(), ones, a), ones, b);
  }
  static Ints SumBytes(Ints a) { return DotBytes(ZeroInts(), _mm512_set1_epi8(1), a); }
  static Ints TimesInt(Ints a, int32_t b) { return _mm512_mullo_epi32(a, _mm512_set1_epi32(b)); }
  // a·b, both of 16 bits: of b the upper half, its sign, is not wanted.
  static Ints MulInts(Ints a, Ints b) {
    return _mm512_madd_epi16(a, _mm512_and_si512(b, _mm512_set1_epi32(0xffff)));
  }
  static Ints AddInts(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  static Ints SubInts(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
  static Ints XorInts(Ints a, Ints b) { return _mm512_xor_si512(a, b); }
  // Word i of the result is word index[i] of v.
  static Ints PermuteInts(Ints index, Ints v) { return _mm512_permutexvar_epi32(index, v); }
  // The first `count` ≤ 16 unsigned bytes, zeros behind them.
  static Ints WidenBytes(const uint8_t* p, int64_t count) {
    return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(static_cast<__mmask16>((1u << count) - 1), p));
  }
  static Vec ToFloat(Ints x) { return _mm512_cvtepi32_ps(x); }
  // The four bytes at p in every place.
  static Ints SetFour(const void* p) {
    int32_t four;
    __builtin_memcpy(&four, p, sizeof(four));
    return _mm512_set1_epi32(four);
  }
  // To the nearest integers, ties to even; what does not fit becomes the nearest that does.
  static void StoreSignedBytes(int8_t* p, Vec v) {
    _mm_storeu_si128(At<__m128i>(p), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(v)));
  }
  // Likewise as words.
  static void StoreSignedWords(int16_t* p, Vec v) {
    _mm256_storeu_si256(At<__m256i>(p), _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(v)));
  }

  // The eight bytes at p in every place.
  static Ints SetEight(const void* p) {
    int64_t eight;
    __builtin_memcpy(&eight, p, sizeof(eight));
    return _mm512_set1_epi64(eight);
  }
  // x, of which the compiler does not know where it comes from.
  template <class T>
  static T Opaque(T x) {
    asm("" : "+r"(x));
    return x;
  }
  // Lanes 2i of a, lanes 2i + 1 of b.
  static Ints MixLanes(Ints a, Ints b) { return _mm512_mask_blend_epi32(0xaaaa, a, b); }
  // Lanes 2i and 2i + 1 change places.
  static Ints SwapLanes(Ints v) { return _mm512_shuffle_epi32(v, _MM_PERM_CDAB); }
  static void PrefetchNear(const void* p) {
    _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
  }
  // To the nearest integers, ties to even; what does not fit becomes the least.
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
  // Byte j of word i of the result is word i of bytes[j], which is between 0 and 255.
  static Ints PackFour(const Ints (&bytes)[4]) {
    const Ints low = _mm512_or_si512(bytes[0], _mm512_slli_epi32(bytes[1], 8));
    const Ints high = _mm512_or_si512(bytes[2], _mm512_slli_epi32(bytes[3], 8));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
  }

  // Columns of four rows of 64 bytes, a column's four bytes side by side. Column 16l + 4j + i comes
  // out as word 4l + i of m[j]; TurnLanes undoes that.
  static void ZipFours(Ints (&m)[4]) {
    const Ints low01 = _mm512_unpacklo_epi8(m[0], m[1]);
    const Ints high01 = _mm512_unpackhi_epi8(m[0], m[1]);
    const Ints low23 = _mm512_unpacklo_epi8(m[2], m[3]);
    const Ints high23 = _mm512_unpackhi_epi8(m[2], m[3]);
    m[0] = _mm512_unpacklo_epi16(low01, low23);
    m[1] = _mm512_unpackhi_epi16(low01, low23);
    m[2] = _mm512_unpacklo_epi16(high01, high23);
    m[3] = _mm512_unpackhi_epi16(high01, high23);
  }
  // Transposes the 4×4 matrix of words in every 128 bits.
  static void TurnFours(Ints (&m)[4]) {
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
