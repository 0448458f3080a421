// Vector class for AVX2, FMA and F16C: 8 f32 lanes, the interface of avx512-inl.h.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/isa/unpack-inl.h"

namespace latte::cpu {
namespace {

struct Avx2 {
  using Vec = __m256;
  static constexpr int64_t kLanes = 8;
  // MR for NR = 4 registers: 12 accumulators and 4 operands of 16 registers.
  static constexpr int64_t kTileRows = 3;
  static constexpr bool kTwinLoads = true;  // has LoadTwin
  // MR with a second accumulator per output, kept in memory: used once per segment, that is cheaper
  // than tiles of one row.
  static constexpr int64_t kScaledRows = 3;
  // Tile of MR rows × a packed panel: 12 accumulators and 3 operands.
  static constexpr int64_t kPanelRows = 6;
  static constexpr int64_t kPanelVectors = 2;

  static Vec Zero() { return _mm256_setzero_ps(); }
  static Vec Set1(float x) { return _mm256_set1_ps(x); }
  static Vec Fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }  // a·b + c
  static Vec Add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
  static Vec Sub(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
  static Vec Mul(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
  static Vec Div(Vec a, Vec b) { return _mm256_div_ps(a, b); }
  static Vec Max(Vec a, Vec b) { return _mm256_max_ps(a, b); }

  // Loads widen to f32; any alignment.
  static Vec Load(const float* p) { return _mm256_loadu_ps(p); }
  static Vec Load(const BF16* p) { return Widen(Load8(p)); }
  static Vec Load(const F16* p) { return _mm256_cvtph_ps(Load8(p)); }
  // The first `count` ≤ kLanes elements, then zeros; reads nothing behind them.
  static Vec LoadPartial(const float* p, int64_t count) {
    return _mm256_maskload_ps(p, First(count));
  }
  static Vec LoadPartial(const BF16* p, int64_t count) { return Widen(LoadPartial8(p, count)); }
  static Vec LoadPartial(const F16* p, int64_t count) {
    return _mm256_cvtph_ps(LoadPartial8(p, count));
  }
  static Vec Load(const F8* p) { return Widen(p, LoadEight(p)); }
  static Vec Load(const F8Fnuz* p) { return Widen(p, LoadEight(p)); }
  static Vec Load(const I8* p) { return WidenI8(LoadEight(p)); }
  // Whether one of 64 numbers is NaN.
  static bool AnyNaN(const F8* p) {
    const __m256i all = _mm256_set1_epi8(0x7f);
    const auto* const halves = reinterpret_cast<const __m256i*>(p);
    const auto nans = [&](const __m256i* at) {
      return _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_loadu_si256(at), all), all);
    };
    return _mm256_movemask_epi8(_mm256_or_si256(nans(halves), nans(halves + 1))) != 0;
  }
  // Values that are not NaN, divided by 2⁸: their bits as f16.
  static Vec LoadSmall(const F8* p) {
    const __m128i moved = _mm_slli_epi16(_mm_cvtepi8_epi16(LoadEight(p)), 7);
    return _mm256_cvtph_ps(_mm_and_si128(moved, _mm_set1_epi16(static_cast<int16_t>(0xbfff))));
  }
  static Vec LoadPartial(const F8* p, int64_t count) { return Widen(p, LoadBytes(p, count)); }
  static Vec LoadPartial(const F8Fnuz* p, int64_t count) { return Widen(p, LoadBytes(p, count)); }
  static Vec LoadPartial(const I8* p, int64_t count) { return WidenI8(LoadBytes(p, count)); }
  using U4Table = Vec;  // the zero point
  static U4Table TableOf(int64_t zero) { return Set1(static_cast<float>(zero)); }
  static Vec Load(const U4* p, U4Table zero) { return WidenU4(LoadBytes(p, 4), zero); }
  static Vec LoadPartial(const U4* p, int64_t count, U4Table zero) {
    return WidenU4(LoadBytes(p, (count + 1) / 2), zero);
  }

  // 32-bit integers, from bytes.
  using Ints = __m256i;
  static Ints LoadU8(const uint8_t* p) { return _mm256_cvtepu8_epi32(LoadEight(p)); }
  static Ints LoadI8(const uint8_t* p) { return _mm256_cvtepi8_epi32(LoadEight(p)); }
  static Ints And(Ints a, int mask) { return _mm256_and_si256(a, _mm256_set1_epi32(mask)); }
  static Ints Or(Ints a, Ints b) { return _mm256_or_si256(a, b); }
  template <int kBits>
  static Ints ShiftLeft(Ints a) {
    return _mm256_slli_epi32(a, kBits);
  }
  template <int kBits>
  static Ints ShiftRight(Ints a) {
    return _mm256_srli_epi32(a, kBits);
  }
  static Vec ToFloat(Ints a) { return _mm256_cvtepi32_ps(a); }
  // to[0:8] = a · the bytes of x; to[8:16] = b · the bytes of y.
  static void StoreScaled(float* to, float a, uint64_t x, float b, uint64_t y) {
    const auto widen = [](uint64_t bytes) {
      return ToFloat(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(bytes))));
    };
    Store(to, Mul(Set1(a), widen(x)));
    Store(to + 8, Mul(Set1(b), widen(y)));
  }
  // An f16, at any address.
  static float FromF16(const uint8_t* p) {
    uint16_t half;
    __builtin_memcpy(&half, p, sizeof(half));
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
  }

  static void Store(float* p, Vec v) { _mm256_storeu_ps(p, v); }
  static void StorePartial(float* p, Vec v, int64_t count) {
    _mm256_maskstore_ps(p, First(count), v);
  }

  // Rounds to nearest even; NaN becomes quiet and keeps its upper bits.
  static void StoreRounded(BF16* p, Vec v, int64_t count) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i high = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i rounded = _mm256_blendv_epi8(_mm256_srli_epi32(up, 16), quiet, nan);
    StoreWords(
        p, _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1)),
        count);
  }
  static void StoreRounded(F16* p, Vec v, int64_t count) {
    StoreWords(p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), count);
  }
  // `count` ≤ 4 values, each duplicated.
  static Vec Twice(const float* p, int64_t count) {
    return _mm256_permutevar8x32_ps(LoadPartial(p, count),
                                    _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
  }
  static Vec SwapNeighbours(Vec v) { return _mm256_permute_ps(v, 0xb1); }
  static Vec NegateEven(Vec v) {
    return _mm256_xor_ps(v, _mm256_setr_ps(-0.0f, 0, -0.0f, 0, -0.0f, 0, -0.0f, 0));
  }
  // a·x + b·y in f64, products and sum rounded.
  static Vec MixWide(double a, Vec x, double b, Vec y) {
    const auto mix = [a, b](__m128 x4, __m128 y4) {
      return _mm256_cvtpd_ps(_mm256_add_pd(_mm256_mul_pd(_mm256_set1_pd(a), _mm256_cvtps_pd(x4)),
                                           _mm256_mul_pd(_mm256_set1_pd(b), _mm256_cvtps_pd(y4))));
    };
    const __m128 low = mix(_mm256_castps256_ps128(x), _mm256_castps256_ps128(y));
    const __m128 high = mix(_mm256_extractf128_ps(x, 1), _mm256_extractf128_ps(y, 1));
    return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
  }

  // max(|a|, |b|); NaN counts as larger than any value.
  static Vec MaxMagnitude(Vec a, Vec b) {
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    return _mm256_castsi256_ps(
        _mm256_max_epi32(_mm256_and_si256(_mm256_castps_si256(a), magnitude),
                         _mm256_and_si256(_mm256_castps_si256(b), magnitude)));
  }
  // The largest lane of magnitudes.
  static float LargestMagnitude(Vec v) {
    const __m256i bits = _mm256_castps_si256(v);
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1));
    return _mm_cvtss_f32(_mm_castsi128_ps(four));
  }
  // The low byte of each of the first `count` lanes.
  static void StoreLowBytes(int8_t* p, Vec v, int64_t count) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m128i pick = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m128i low = _mm_shuffle_epi8(_mm256_castsi256_si128(bits), pick);
    const __m128i high = _mm_shuffle_epi8(_mm256_extracti128_si256(bits, 1), pick);
    const int64_t eight = _mm_cvtsi128_si64(_mm_unpacklo_epi32(low, high));
    __builtin_memcpy(p, &eight, static_cast<uint64_t>(count < kLanes ? count : kLanes));
  }

  // 2 · kLanes values.
  struct Twin {
    Vec first, second;
  };
  template <class T>
  static Twin LoadTwin(const T* p) {
    return {Load(p), Load(p + kLanes / kValuesPer<T>)};
  }
  static Twin LoadTwin(const F8* p) {
    const __m256i words = _mm256_cvtepi8_epi16(Load8(p));
    const __m256i half = _mm256_and_si256(_mm256_slli_epi16(words, 7), SetWords(0xbfff));
    const __m256i negative = _mm256_or_si256(half, SetWords(0x8000));
    const __m256i nan = _mm256_cmpeq_epi16(negative, SetWords(0xbf80));
    return TwinOf(_mm256_or_si256(half, nan));
  }

  // The 64 values of a chunk of 5-bit integers.
  static void UnpackQ6(const void* chunk, I8* to) { UnpackChunkOf64(chunk, to); }

  // out[i] = sum of the lanes of vector i, as a tree: neighbours, then pairs, then the 128-bit
  // lanes.
  static void StoreSum4(float* out, Vec a, Vec b, Vec c, Vec d) {
    const Vec ab = Add(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    const Vec cd = Add(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    const __m256d ab2 = _mm256_castps_pd(ab);
    const __m256d cd2 = _mm256_castps_pd(cd);
    const Vec fours = Add(_mm256_castpd_ps(_mm256_unpacklo_pd(ab2, cd2)),
                          _mm256_castpd_ps(_mm256_unpackhi_pd(ab2, cd2)));
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(fours), _mm256_extractf128_ps(fours, 1)));
  }
  static float Sum(Vec v) {
    float sums[4];
    StoreSum4(sums, v, v, v, v);
    return sums[0];
  }
  static float MaxOf(Vec v) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

  // rows[i] lane j ↔ rows[j] lane i. No loops: g++ 12 would spill the rows.
  [[gnu::always_inline]] static void Transpose(Vec (&rows)[kLanes]) {
    TransposeIn128(rows[0], rows[1], rows[2], rows[3]);
    TransposeIn128(rows[4], rows[5], rows[6], rows[7]);
    SwapHalves(rows[0], rows[4]);
    SwapHalves(rows[1], rows[5]);
    SwapHalves(rows[2], rows[6]);
    SwapHalves(rows[3], rows[7]);
  }

  // e^x: range, error and method as in avx512-inl.h.
  static Vec Exp(Vec x) {
    x = _mm256_min_ps(Set1(89.0f), _mm256_max_ps(Set1(-104.0f), x));
    const Vec n =
        _mm256_round_ps(Mul(x, Set1(kLog2E)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    Vec r = _mm256_fnmadd_ps(n, Set1(kLn2High), x);
    r = _mm256_fnmadd_ps(n, Set1(kLn2Low), r);
    Vec p = Set1(kExpTaylor[0]);
    for (int i = 1; i < 8; ++i) p = Fma(p, r, Set1(kExpTaylor[i]));
    // 2^n as two factors, since n from −150 to 128 exceeds the range of one; only the last rounds.
    const __m256i exponent = _mm256_cvtps_epi32(n);
    const __m256i half = _mm256_srai_epi32(exponent, 1);
    return Mul(Mul(p, PowerOf2(half)), PowerOf2(_mm256_sub_epi32(exponent, half)));
  }

 private:
  // Transposes the 4×4 matrices of both 128-bit lanes.
  static void TransposeIn128(Vec& a, Vec& b, Vec& c, Vec& d) {
    const __m256d low01 = _mm256_castps_pd(_mm256_unpacklo_ps(a, b));
    const __m256d high01 = _mm256_castps_pd(_mm256_unpackhi_ps(a, b));
    const __m256d low23 = _mm256_castps_pd(_mm256_unpacklo_ps(c, d));
    const __m256d high23 = _mm256_castps_pd(_mm256_unpackhi_ps(c, d));
    a = _mm256_castpd_ps(_mm256_unpacklo_pd(low01, low23));
    b = _mm256_castpd_ps(_mm256_unpackhi_pd(low01, low23));
    c = _mm256_castpd_ps(_mm256_unpacklo_pd(high01, high23));
    d = _mm256_castpd_ps(_mm256_unpackhi_pd(high01, high23));
  }
  // Swaps the upper 128-bit lane of a with the lower one of b.
  static void SwapHalves(Vec& a, Vec& b) {
    const Vec low = _mm256_permute2f128_ps(a, b, 0x20);
    b = _mm256_permute2f128_ps(a, b, 0x31);
    a = low;
  }
  template <class T>
  static const T* At(const void* p) {
    return static_cast<const T*>(p);
  }
  static __m128i LoadEight(const void* p) { return LoadBytes(p, 8); }
  static __m128i LoadBytes(const void* p, int64_t count) {
    uint64_t part = 0;
    __builtin_memcpy(&part, p, static_cast<uint64_t>(count));
    return _mm_cvtsi64_si128(static_cast<int64_t>(part));
  }
  static Vec WidenI8(__m128i b) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(b)); }
  // Exponent and mantissa as f16 bits; the bias of f16 is larger by 8 or 7.
  static __m128i AsF16(__m128i words, __m128i nan) {
    const __m128i magnitude = _mm_and_si128(words, _mm_set1_epi16(0x7f));
    const __m128i sign = _mm_and_si128(words, _mm_set1_epi16(0x80));
    const __m128i half = _mm_or_si128(_mm_slli_epi16(magnitude, 7), _mm_slli_epi16(sign, 8));
    return _mm_or_si128(half, _mm_and_si128(nan, _mm_set1_epi16(0x7e00)));
  }
  static Vec Widen(const F8*, __m128i b) {
    const __m128i words = _mm_cvtepu8_epi16(b);
    const __m128i magnitude = _mm_and_si128(words, _mm_set1_epi16(0x7f));
    const __m128i nan = _mm_cmpeq_epi16(magnitude, _mm_set1_epi16(0x7f));
    return Mul(_mm256_cvtph_ps(AsF16(words, nan)), Set1(0x1p8f));
  }
  static Vec Widen(const F8Fnuz*, __m128i b) {
    const __m128i words = _mm_cvtepu8_epi16(b);
    const __m128i nan = _mm_cmpeq_epi16(words, _mm_set1_epi16(0x80));
    return Mul(_mm256_cvtph_ps(AsF16(words, nan)), Set1(0x1p7f));
  }
  static Vec WidenU4(__m128i b, U4Table zero) {
    const __m256i wide = _mm256_cvtepu8_epi64(b);
    const __m256i codes = _mm256_or_si256(wide, _mm256_slli_epi64(wide, 28));
    const __m256i low = _mm256_and_si256(codes, _mm256_set1_epi32(15));
    return Sub(_mm256_cvtepi32_ps(low), zero);
  }
  static __m256i SetWords(int x) { return _mm256_set1_epi16(static_cast<int16_t>(x)); }
  // 16 f16, times 2⁸.
  static Twin TwinOf(__m256i halves) {
    return {Mul(_mm256_cvtph_ps(_mm256_castsi256_si128(halves)), Set1(0x1p8f)),
            Mul(_mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1)), Set1(0x1p8f))};
  }
  static __m256i First(int64_t count) {
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), index);
  }
  static Vec PowerOf2(__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
  }
  // Moves 16-bit element i to the upper 16 bits of lane i: a broadcast load and one shuffle.
  static Vec Widen(__m128i bf16) {
    const __m256i index =
        _mm256_setr_epi8(-1, -1, 0, 1, -1, -1, 2, 3, -1, -1, 4, 5, -1, -1, 6, 7,  //
                         -1, -1, 8, 9, -1, -1, 10, 11, -1, -1, 12, 13, -1, -1, 14, 15);
    return _mm256_castsi256_ps(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bf16), index));
  }
  static __m128i Load8(const void* p) { return _mm_loadu_si128(static_cast<const __m128i_u*>(p)); }
  static void StoreWords(void* p, __m128i words, int64_t count) {
    __builtin_memcpy(p, &words, static_cast<uint64_t>(count) * sizeof(uint16_t));
  }
  // AVX2 has no masked load of 16-bit elements; tails go through the stack.
  static __m128i LoadPartial8(const void* p, int64_t count) {
    alignas(16) uint16_t part[8] = {};
    __builtin_memcpy(part, p, static_cast<uint64_t>(count) * sizeof(uint16_t));
    return Load8(part);
  }
};

}  // namespace
}  // namespace latte::cpu
