// e4m3 weights for AMX: amx-inl.h plus a column order in which vectors and tiles give the same
// bits.
//
// TDPBF16PS adds, per K step of 16 pairs, one chain of fused multiply-adds over the first values of
// the pairs and one over the second ones (Intel 64 and IA-32 Architectures Software Developer's
// Manual, volume 2). Eight chains of 16 make four K steps. VDPBF16PS adds the second value of a
// pair, then the first; it computes 16 chains if a lane holds the columns of a chain. Of 128
// columns, chain p of K step s takes, in this order:
//
// 32i + 16p + 8h + 2s + (1 − o)   for i < 4, h < 2, o < 2
//
// This is the order in which widening by 64-bit halves leaves 16 contiguous values. Both
// instructions treat subnormal operands and results as zero.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/isa/amx-inl.h"

namespace latte::cpu {
namespace {

constexpr int64_t kF8Block = 128;  // columns that are reordered together
constexpr int64_t kF8Steps = 4;    // K steps of a block

// Column of element w of 32 in K step s.
constexpr int64_t F8ColumnAt(int64_t step, int64_t word) {
  const int64_t t = word / 2;
  return t / 4 * 32 + word % 2 * 16 + t / 2 % 2 * 8 + 2 * step + 1 - t % 2;
}

struct F8Order {
  // Element 16l + 8j + b of half i: the value of element 8l + b of K step 2i + j.
  alignas(64) uint8_t codes[2][64] = {};
  // Element 8s + b of columns 32i to 32i + 31: element 8i + b of K step s.
  alignas(64) uint16_t words[32] = {};
  constexpr F8Order() {
    for (int64_t at = 0; at < 128; ++at)
      codes[at / 64][at % 64] =
          static_cast<uint8_t>(F8ColumnAt(at / 64 * 2 + at / 8 % 2, at % 64 / 16 * 8 + at % 8));
    for (int64_t at = 0; at < 32; ++at)
      words[at] = static_cast<uint16_t>(F8ColumnAt(at / 8, at % 8));
  }
};
constexpr F8Order kF8Order;

struct AmxF8 : Amx {
  using Codes = __m512i;  // 64 e4m3 values

  static Codes LoadCodes(const F8* p) { return _mm512_loadu_si512(p); }
  // 32 of each.
  static Codes LoadCodes(const F8* a, const F8* b) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }
  // to = the first `count` of `size` values of p, then ones, which are normal.
  static void CopyCodes(const F8* p, int64_t count, int64_t size, F8* to) {
    const __m512i ones = _mm512_set1_epi8(0x38);
    for (int64_t at = 0; at < size; at += 64) {
      const int64_t left = count - at;
      const __mmask64 there = left >= 64  ? ~__mmask64{0}
                              : left <= 0 ? 0
                                          : (__mmask64{1} << left) - 1;
      _mm512_storeu_si512(to + at, _mm512_mask_loadu_epi8(ones, there, p + at));
    }
  }
  // K steps 2·half and 2·half + 1 of a block of 128 in two registers, ordered for WidenNormals.
  static Codes InOrder(const Codes (&block)[2], int64_t half) {
    return _mm512_permutex2var_epi8(block[0], _mm512_load_si512(kF8Order.codes[half]), block[1]);
  }

  // Constants of widening, kept in registers over a loop.
  struct Constants {
    __m512i low, high, least, nan;
  };
  static Constants MakeConstants() {
    return {Kept(_mm512_set1_epi64(kLowBits)), Kept(_mm512_set1_epi64(kHighBits)),
            Kept(_mm512_set1_epi8(2 * 8)),
            Kept(_mm512_set1_epi8(static_cast<char>(2 * 0x7f - 2 * 8)))};
  }
  // Two registers of pairs: values 0–7 and 8–15 of every 128-bit lane.
  struct Halves {
    Pairs low, high;
  };
  // Values that are neither zero nor subnormal nor NaN: every bit of the bf16 is a bit of the e4m3
  // or its inverse.
  static Halves WidenNormals(Codes codes, const Constants& c) {
    constexpr char kBias = 0x3c;
    return Zip(_mm512_gf2p8affine_epi64_epi8(codes, c.low, 0),
               _mm512_gf2p8affine_epi64_epi8(codes, c.high, kBias));
  }
  static Halves WidenAny(Codes c) {
    const auto look_up = [c](const uint8_t* table) {
      return _mm512_permutex2var_epi8(_mm512_load_si512(table), c, _mm512_load_si512(table + 64));
    };
    constexpr int kOrAnd = 0xf8;  // a | b & c
    return Zip(look_up(kF8Bytes.low),
               _mm512_ternarylogic_epi32(look_up(kF8Bytes.high), c,
                                         _mm512_set1_epi8(static_cast<char>(0x80)), kOrAnd));
  }
  // Outliers as in avx512_bf16-inl.h.
  static Outliers OutliersOf(Codes codes, const Constants& c) {
    return _mm512_sub_epi8(_mm512_add_epi8(codes, codes), c.least);
  }
  static Outliers Either(Outliers a, Outliers b) { return _mm512_max_epu8(a, b); }
  static bool AnyOutlier(Outliers all, const Constants& c) {
    return _mm512_cmpge_epu8_mask(all, c.nan) != 0;
  }

  // Activations for the halves of LoadCodes(a, b): 32 for a and 32 for b.
  static Halves HalvesOf(Pairs a, Pairs b) {
    return {As(_mm512_shuffle_i64x2(Bits(a), Bits(b), 0x88)),
            As(_mm512_shuffle_i64x2(Bits(a), Bits(b), 0xdd))};
  }
  // Reorders a block of 128 activations, 32 per register, to four K steps.
  static void PutInOrder(Words (&block)[kF8Steps]) {
    for (Words& words : block)
      words = _mm512_permutexvar_epi16(_mm512_load_si512(kF8Order.words), words);
    Avx512Vnni::TransposeInts128(block);
  }

  // Sums of 128 columns of four rows from their chains, K steps in order: rows 0–3 of the first
  // block, rows 0–3 of the second one; the upper eight lanes are unspecified.
  static Vec SumBlocks(const Vec (&chains)[4]) {
    const StepSums s = SumChains(chains);
    return Gather(Add(Add(Add(s.a, SecondOf(s.a)), s.b), SecondOf(s.b)));
  }
  // Sums of 256 columns of four rows; the upper twelve lanes are unspecified.
  static Vec SumBothBlocks(const Vec (&chains)[4]) {
    const StepSums s = SumChains(chains);
    const Vec a = SecondBlock(s.a);
    const Vec b = SecondBlock(s.b);
    const Vec first = Add(Add(Add(s.a, SecondOf(s.a)), s.b), SecondOf(s.b));
    return Gather(Add(Add(Add(Add(first, a), SecondOf(a)), b), SecondOf(b)));
  }
  // Moves lanes 4–7 to lanes 0–3.
  static Vec SecondRows(Vec sums) { return _mm512_shuffle_f32x4(sums, sums, 1); }
  // Four f32 in lanes 0–3.
  static Vec LoadRows(const float* p) { return _mm512_broadcast_f32x4(_mm_loadu_ps(p)); }
  static void StoreRows(float* p, Vec v) { _mm_storeu_ps(p, _mm512_castps512_ps128(v)); }

 private:
  // Affine bit matrices: byte 7 − i selects the source bit of bit i, one or none.
  static constexpr int64_t kLowBits = 0x01020408;           // mantissa, last bit of the exponent
  static constexpr int64_t kHighBits = 0x1020404040404080;  // others of the exponent, sign

  static Halves Zip(__m512i low, __m512i high) {
    return {As(_mm512_unpacklo_epi8(low, high)), As(_mm512_unpackhi_epi8(low, high))};
  }

  // Both chains of a K step added. Lanes of each 128-bit lane, which is [block][rows 0, 1 or 2, 3]:
  // K step 0 of the first rows and of the others, K step 1 likewise; b: K steps 2 and 3.
  struct StepSums {
    Vec a, b;
  };
  static StepSums SumChains(const Vec (&chains)[4]) {
    const Vec first = SumPair(chains[0], chains[1]);
    const Vec last = SumPair(chains[2], chains[3]);
    return {_mm512_unpacklo_ps(first, last), _mm512_unpackhi_ps(first, last)};
  }
  // Both chains of each K step of rows a and b: lanes [block][row][K step].
  static Vec SumPair(Vec a, Vec b) {
    const __m512i other = _mm512_set_epi64(13, 12, 7, 6, 9, 8, 3, 2);
    const Vec x = _mm512_mask_blend_ps(0xf0f0, a, b);
    const __m512d y = _mm512_permutex2var_pd(_mm512_castps_pd(a), other, _mm512_castps_pd(b));
    return Add(x, _mm512_castpd_ps(y));
  }
  static Vec SecondOf(Vec steps) { return _mm512_permute_ps(steps, 0x4e); }
  static Vec SecondBlock(Vec v) { return _mm512_shuffle_f32x4(v, v, 0x4e); }
  // Rows 0–3 of both blocks from lanes 0 and 1 of every 128-bit lane.
  static Vec Gather(Vec v) {
    const __m512i lanes = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 13, 9, 12, 8, 5, 1, 4, 0);
    return _mm512_permutexvar_ps(lanes, v);
  }
};

// Flushes subnormal operands and results of the calling thread to zero during its lifetime, as bf16
// dot products do. Values cross its ends in memory alone, or the compiler could move sums past
// them.
class FlushScope {
 public:
  FlushScope() {
    asm volatile("stmxcsr %0" : "=m"(before_));
    const uint32_t flush = before_ | 0x8040;  // FTZ and DAZ
    asm volatile("ldmxcsr %0" ::"m"(flush) : "memory");
  }
  ~FlushScope() { asm volatile("ldmxcsr %0" ::"m"(before_) : "memory"); }
  FlushScope(const FlushScope&) = delete;
  FlushScope& operator=(const FlushScope&) = delete;

 private:
  uint32_t before_;
};

}  // namespace
}  // namespace latte::cpu
