// Vector class for AVX-512 (F, BW, DQ, VL): 16 f32 lanes. Kernels use intrinsics only through these
// classes. Internal linkage, as in every -inl.h here: target.h says why.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/isa/unpack-inl.h"

namespace latte::cpu {
namespace {

struct Avx512 {
  using Vec = __m512;
  static constexpr int64_t kLanes = 16;
  // MR for NR = 4 registers: 24 accumulators and 5 operands of 32 registers.
  static constexpr int64_t kTileRows = 6;
  static constexpr bool kTwinLoads = false;
  static constexpr int64_t kScaledRows = 3;  // MR with a second accumulator per output
  // Tile of MR rows × a packed panel.
  static constexpr int64_t kPanelRows = 6;
  static constexpr int64_t kPanelVectors = 4;

  static Vec Zero() { return _mm512_setzero_ps(); }
  static Vec Set1(float x) { return _mm512_set1_ps(x); }
  static Vec Fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }     // a·b + c
  static Vec FmaSub(Vec a, Vec b, Vec c) { return _mm512_fmsub_ps(a, b, c); }  // a·b − c
  static Vec Add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
  static Vec Sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
  static Vec Mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
  static Vec Div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
  static Vec Max(Vec a, Vec b) { return _mm512_max_ps(a, b); }

  static Vec Abs(Vec a) { return _mm512_abs_ps(a); }

  // Loads widen to f32; any alignment.
  static Vec Load(const float* p) { return _mm512_loadu_ps(p); }
  static Vec Load(const BF16* p) { return Widen(_mm256_loadu_epi16(p)); }
  static Vec Load(const F16* p) { return _mm512_cvtph_ps(_mm256_loadu_epi16(p)); }
  // The first `count` ≤ kLanes elements, then zeros; reads nothing behind them.
  static Vec LoadPartial(const float* p, int64_t count) {
    return _mm512_maskz_loadu_ps(First(count), p);
  }
  static Vec LoadPartial(const BF16* p, int64_t count) {
    return Widen(_mm256_maskz_loadu_epi16(First(count), p));
  }
  static Vec LoadPartial(const F16* p, int64_t count) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(First(count), p));
  }
  static Vec Load(const F8* p) { return Widen(p, _mm_loadu_epi8(p)); }
  static Vec Load(const F8Fnuz* p) { return Widen(p, _mm_loadu_epi8(p)); }
  static Vec Load(const I8* p) { return WidenI8(_mm_loadu_epi8(p)); }
  static Vec LoadPartial(const F8* p, int64_t count) { return Widen(p, LoadBytes(p, count)); }
  static Vec LoadPartial(const F8Fnuz* p, int64_t count) { return Widen(p, LoadBytes(p, count)); }
  static Vec LoadPartial(const I8* p, int64_t count) { return WidenI8(LoadBytes(p, count)); }
  // Whether one of 64 numbers is NaN.
  static bool AnyNaN(const F8* p) {
    const __m512i all = _mm512_set1_epi8(0x7f);
    return _mm512_cmpeq_epi8_mask(_mm512_and_si512(_mm512_loadu_si512(p), all), all) != 0;
  }
  // Values that are not NaN, divided by 2⁸: their bits as f16.
  static Vec LoadSmall(const F8* p) {
    const __m256i moved = _mm256_slli_epi16(_mm256_cvtepi8_epi16(_mm_loadu_epi8(p)), 7);
    return _mm512_cvtph_ps(
        _mm256_and_si256(moved, _mm256_set1_epi16(static_cast<int16_t>(0xbfff))));
  }
  // The 16 values of a U4 with this zero point.
  using U4Table = Vec;
  static U4Table TableOf(int64_t zero) { return Load(kU4Values.f32 + kU4Zeros - zero); }
  static Vec Load(const U4* p, U4Table table) { return WidenU4(_mm_loadl_epi64(Bytes(p)), table); }
  // Lanes behind the first `count` are unspecified, finite values.
  static Vec LoadPartial(const U4* p, int64_t count, U4Table table) {
    return WidenU4(LoadBytes(p, (count + 1) / 2), table);
  }

  // 32-bit integers, from bytes.
  using Ints = __m512i;
  static Ints LoadU8(const uint8_t* p) { return _mm512_cvtepu8_epi32(_mm_loadu_epi8(p)); }
  static Ints LoadI8(const uint8_t* p) { return _mm512_cvtepi8_epi32(_mm_loadu_epi8(p)); }
  static Ints And(Ints a, int mask) { return _mm512_and_si512(a, _mm512_set1_epi32(mask)); }
  static Ints Or(Ints a, Ints b) { return _mm512_or_si512(a, b); }
  template <int kBits>
  static Ints ShiftLeft(Ints a) {
    return _mm512_slli_epi32(a, kBits);
  }
  template <int kBits>
  static Ints ShiftRight(Ints a) {
    return _mm512_srli_epi32(a, kBits);
  }
  static Vec ToFloat(Ints a) { return _mm512_cvtepi32_ps(a); }
  // to[0:8] = a · the bytes of x; to[8:16] = b · the bytes of y.
  static void StoreScaled(float* to, float a, uint64_t x, float b, uint64_t y) {
    const __m128i bytes = _mm_set_epi64x(static_cast<int64_t>(y), static_cast<int64_t>(x));
    const Vec factors = _mm512_mask_blend_ps(static_cast<__mmask16>(0xff00), Set1(a), Set1(b));
    Store(to, Mul(factors, ToFloat(_mm512_cvtepu8_epi32(bytes))));
  }
  // An f16, at any address.
  static float FromF16(const uint8_t* p) {
    uint16_t half;
    __builtin_memcpy(&half, p, sizeof(half));
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
  }

  static void Store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
  static void StorePartial(float* p, Vec v, int64_t count) {
    _mm512_mask_storeu_ps(p, First(count), v);
  }

  // Rounds the first `count` ≤ kLanes values to nearest even; NaN stays NaN.
  static void StoreRounded(BF16* p, Vec v, int64_t count) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i high = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __m512i rounded =
        _mm512_mask_or_epi32(_mm512_srli_epi32(up, 16), _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q),
                             high, _mm512_set1_epi32(0x40));
    _mm256_mask_storeu_epi16(p, First(count), _mm512_cvtepi32_epi16(rounded));
  }
  static void StoreRounded(F16* p, Vec v, int64_t count) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    _mm256_mask_storeu_epi16(p, First(count), _mm512_cvtps_ph(v, kNearest));
  }
  // `count` ≤ 8 values, each duplicated.
  static Vec Twice(const float* p, int64_t count) {
    const __m512i index = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    return _mm512_permutexvar_ps(index, LoadPartial(p, count));
  }
  static Vec SwapNeighbours(Vec v) { return _mm512_permute_ps(v, 0xb1); }
  static Vec NegateEven(Vec v) {
    const Vec sign = Set1(-0.0f);
    return _mm512_mask_xor_ps(v, 0x5555, v, sign);
  }
  // a·x + b·y in f64, products and sum rounded.
  static Vec MixWide(double a, Vec x, double b, Vec y) {
    const auto mix = [a, b](__m256 x8, __m256 y8) {
      return _mm512_cvtpd_ps(_mm512_add_pd(_mm512_mul_pd(_mm512_set1_pd(a), _mm512_cvtps_pd(x8)),
                                           _mm512_mul_pd(_mm512_set1_pd(b), _mm512_cvtps_pd(y8))));
    };
    const __m256 low = mix(_mm512_castps512_ps256(x), _mm512_castps512_ps256(y));
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), mix(High(x), High(y)), 1);
  }

  // max(|a|, |b|) per lane; NaN counts as larger than infinity.
  static Vec MaxMagnitude(Vec a, Vec b) {
    const __m512i x = _mm512_castps_si512(Abs(a));
    return _mm512_castsi512_ps(_mm512_max_epi32(x, _mm512_castps_si512(Abs(b))));
  }
  // The largest lane of magnitudes.
  static float LargestMagnitude(Vec v) {
    const __m128i largest = _mm_cvtsi32_si128(_mm512_reduce_max_epi32(_mm512_castps_si512(v)));
    return _mm_cvtss_f32(_mm_castsi128_ps(largest));
  }
  // The low byte of each of the first `count` lanes.
  static void StoreLowBytes(int8_t* p, Vec v, int64_t count) {
    _mm512_mask_cvtepi32_storeu_epi8(p, count >= kLanes ? 0xffff : First(count),
                                     _mm512_castps_si512(v));
  }

  // a0 b0 a1 b1 … a7 b7, and the same for the upper 256-bit lanes.
  static Vec InterleaveFloatsLow(Vec a, Vec b) { return _mm512_permutex2var_ps(a, FloatZip(0), b); }
  static Vec InterleaveFloatsHigh(Vec a, Vec b) {
    return _mm512_permutex2var_ps(a, FloatZip(8), b);
  }

  // The 64 values of a chunk of 5-bit integers.
  static void UnpackQ6(const void* chunk, I8* to) { UnpackChunkOf64(chunk, to); }

  // Lane 4i + j: the sum of lanes 4i … 4i+3 of vector j, as (0 + 2) + (1 + 3).
  static Vec SumFours(Vec a, Vec b, Vec c, Vec d) {
    const Vec ab = Add(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    const Vec cd = Add(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    const __m512d ab2 = _mm512_castps_pd(ab);
    const __m512d cd2 = _mm512_castps_pd(cd);
    return Add(_mm512_castpd_ps(_mm512_unpacklo_pd(ab2, cd2)),
               _mm512_castpd_ps(_mm512_unpackhi_pd(ab2, cd2)));
  }
  // out[i] = sum of the lanes of vector i: SumFours, then 128-bit lanes (0 + 2) + (1 + 3).
  static void StoreSum4(float* out, Vec a, Vec b, Vec c, Vec d) {
    const Vec fours = SumFours(a, b, c, d);
    const __m256 eights = _mm256_add_ps(_mm512_castps512_ps256(fours), High(fours));
    _mm_storeu_ps(out,
                  _mm_add_ps(_mm256_castps256_ps128(eights), _mm256_extractf128_ps(eights, 1)));
  }
  static float Sum(Vec v) {
    float sums[4];
    StoreSum4(sums, v, v, v, v);
    return sums[0];
  }
  static float MaxOf(Vec v) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(v), High(v));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

  // Transposes a 4×4 matrix of 128-bit lanes.
  [[gnu::always_inline]] static void Transpose128(Vec (&m)[4]) {
    const Vec a = _mm512_shuffle_f32x4(m[0], m[1], 0x44);
    const Vec b = _mm512_shuffle_f32x4(m[2], m[3], 0x44);
    const Vec c = _mm512_shuffle_f32x4(m[0], m[1], 0xee);
    const Vec d = _mm512_shuffle_f32x4(m[2], m[3], 0xee);
    m[0] = _mm512_shuffle_f32x4(a, b, 0x88);
    m[1] = _mm512_shuffle_f32x4(a, b, 0xdd);
    m[2] = _mm512_shuffle_f32x4(c, d, 0x88);
    m[3] = _mm512_shuffle_f32x4(c, d, 0xdd);
  }
  // rows[i] lane j ↔ rows[j] lane i.
  [[gnu::always_inline]] static void Transpose(Vec (&rows)[kLanes]) {
    __m512d pairs[kLanes];  // rows 4i … 4i+3, column j of every four, two values per f64 lane
    for (int i = 0; i < kLanes; i += 4) {
      const Vec low01 = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
      const Vec high01 = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
      const Vec low23 = _mm512_unpacklo_ps(rows[i + 2], rows[i + 3]);
      const Vec high23 = _mm512_unpackhi_ps(rows[i + 2], rows[i + 3]);
      pairs[i] = _mm512_unpacklo_pd(_mm512_castps_pd(low01), _mm512_castps_pd(low23));
      pairs[i + 1] = _mm512_unpackhi_pd(_mm512_castps_pd(low01), _mm512_castps_pd(low23));
      pairs[i + 2] = _mm512_unpacklo_pd(_mm512_castps_pd(high01), _mm512_castps_pd(high23));
      pairs[i + 3] = _mm512_unpackhi_pd(_mm512_castps_pd(high01), _mm512_castps_pd(high23));
    }
    for (int j = 0; j < 4; ++j) {  // columns j, 4+j, 8+j, 12+j
      const Vec a = _mm512_castpd_ps(pairs[j]);
      const Vec b = _mm512_castpd_ps(pairs[4 + j]);
      const Vec c = _mm512_castpd_ps(pairs[8 + j]);
      const Vec d = _mm512_castpd_ps(pairs[12 + j]);
      const Vec ab_even = _mm512_shuffle_f32x4(a, b, 0x88);
      const Vec ab_odd = _mm512_shuffle_f32x4(a, b, 0xdd);
      const Vec cd_even = _mm512_shuffle_f32x4(c, d, 0x88);
      const Vec cd_odd = _mm512_shuffle_f32x4(c, d, 0xdd);
      rows[j] = _mm512_shuffle_f32x4(ab_even, cd_even, 0x88);
      rows[8 + j] = _mm512_shuffle_f32x4(ab_even, cd_even, 0xdd);
      rows[4 + j] = _mm512_shuffle_f32x4(ab_odd, cd_odd, 0x88);
      rows[12 + j] = _mm512_shuffle_f32x4(ab_odd, cd_odd, 0xdd);
    }
  }
  // x in the lanes with key < limits[lane], `otherwise` in the rest.
  static Vec WhereBelow(int64_t key, const int32_t* limits, Vec x, Vec otherwise) {
    const __m512i limit = _mm512_loadu_si512(limits);
    return _mm512_mask_mov_ps(
        otherwise, _mm512_cmplt_epi32_mask(_mm512_set1_epi32(static_cast<int32_t>(key)), limit), x);
  }

  // e^x, relative error ≤ 2^−23 wherever the result is normal; 0 from −104 down, so that e^−∞ is
  // exactly 0; ∞ from 89 up; NaN stays. x = n·ln2 + r, |r| ≤ ln2/2, and the Taylor series of e^r
  // up to r^7, whose remainder is below 2^−27.
  static Vec Exp(Vec x) {
    // min and max return their second operand when one is NaN.
    x = _mm512_min_ps(Set1(89.0f), _mm512_max_ps(Set1(-104.0f), x));
    const Vec n =
        _mm512_roundscale_ps(Mul(x, Set1(kLog2E)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    Vec r = _mm512_fnmadd_ps(n, Set1(kLn2High), x);
    r = _mm512_fnmadd_ps(n, Set1(kLn2Low), r);
    Vec p = Set1(kExpTaylor[0]);
    for (int i = 1; i < 8; ++i) p = Fma(p, r, Set1(kExpTaylor[i]));
    return _mm512_scalef_ps(p, n);
  }

  // 2^x, relative error 1.7e-7 wherever the result is normal; 0 from −150 down; NaN stays. scalef
  // applies the integer part of x.
  static Vec Exp2(Vec x) {
    const Vec r = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    Vec p = Set1(kExp2MinMax[0]);
    for (int i = 1; i < 6; ++i) p = Fma(p, r, Set1(kExp2MinMax[i]));
    return _mm512_scalef_ps(p, x);
  }

 private:
  template <class T>
  static const T* At(const void* p) {
    return static_cast<const T*>(p);
  }
  static const __m128i* Bytes(const void* p) { return static_cast<const __m128i*>(p); }
  static __m128i LoadBytes(const void* p, int64_t count) {
    return _mm_maskz_loadu_epi8(First(count), p);
  }
  static Vec WidenI8(__m128i b) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(b)); }
  // Exponent and mantissa as f16 bits; the bias of f16 is larger by 8 or 7.
  static __m256i AsF16(__m256i words) {
    const __m256i magnitude = _mm256_and_si256(words, _mm256_set1_epi16(0x7f));
    const __m256i sign = _mm256_and_si256(words, _mm256_set1_epi16(0x80));
    return _mm256_or_si256(_mm256_slli_epi16(magnitude, 7), _mm256_slli_epi16(sign, 8));
  }
  static Vec Widen(const F8*, __m128i b) {
    const __m256i words = _mm256_cvtepu8_epi16(b);
    const __m256i magnitude = _mm256_and_si256(words, _mm256_set1_epi16(0x7f));
    const __mmask16 nan = _mm256_cmpeq_epi16_mask(magnitude, _mm256_set1_epi16(0x7f));
    const __m256i half = _mm256_mask_mov_epi16(AsF16(words), nan, _mm256_set1_epi16(0x7e00));
    return Mul(_mm512_cvtph_ps(half), Set1(0x1p8f));
  }
  static Vec Widen(const F8Fnuz*, __m128i b) {
    const __m256i words = _mm256_cvtepu8_epi16(b);
    const __mmask16 nan = _mm256_cmpeq_epi16_mask(words, _mm256_set1_epi16(0x80));
    const __m256i half = _mm256_mask_mov_epi16(AsF16(words), nan, _mm256_set1_epi16(0x7e00));
    return Mul(_mm512_cvtph_ps(half), Set1(0x1p7f));
  }
  // The permutation reads the low four bits of each index alone.
  static Vec WidenU4(__m128i b, U4Table table) {
    const __m512i wide = _mm512_cvtepu8_epi64(b);
    const __m512i codes = _mm512_or_si512(wide, _mm512_slli_epi64(wide, 28));
    return _mm512_permutexvar_ps(codes, table);
  }
  static __m512i FloatZip(int first) {
    return _mm512_add_epi32(
        _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0),
        _mm512_set1_epi32(first));
  }
  static __mmask16 First(int64_t count) { return static_cast<__mmask16>((1u << count) - 1); }
  // Moves 16-bit element i to the upper 16 bits of lane i.
  static Vec Widen(__m256i bf16) {
    const __m512i index = _mm512_set_epi16(15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10, 10, 9, 9, 8,
                                           8, 7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    return _mm512_castsi512_ps(
        _mm512_maskz_permutexvar_epi16(0xaaaaaaaau, index, _mm512_castsi256_si512(bf16)));
  }
  static __m256 High(Vec v) { return _mm512_extractf32x8_ps(v, 1); }
};

}  // namespace
}  // namespace latte::cpu
