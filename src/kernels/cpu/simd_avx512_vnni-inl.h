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
  static Ints SetInt(int32_t x) { return _mm512_set1_epi32(x); }
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
  static void StoreUnsignedBytes(uint8_t* p, Vec v) {
    _mm_storeu_si128(At<__m128i>(p), _mm512_cvtusepi32_epi8(_mm512_cvtps_epi32(v)));
  }

  // Bytes [at, at + count) of 16 rows, count ≤ 64, plus 128, zeros behind them: row n of `to` is
  // bytes 4n to 4n+3 of row 0, of row 1 … of row 15.
  static void TurnFours(const char* const* rows, int64_t at, int64_t count, uint8_t* to) {
    Ints m[16];
    for (int64_t i = 0; i < 16; ++i)
      m[i] = _mm512_xor_si512(LoadBytesPartial(rows[i] + at, count), _mm512_set1_epi8(-128));
    // Fours of neighbouring rows, then eights, then 128-bit parts twice.
    Ints n[16];
    for (int64_t i = 0; i < 16; i += 2) {
      n[i] = _mm512_unpacklo_epi32(m[i], m[i + 1]);
      n[i + 1] = _mm512_unpackhi_epi32(m[i], m[i + 1]);
    }
    for (int64_t i = 0; i < 16; i += 4) {
      m[i] = _mm512_unpacklo_epi64(n[i], n[i + 2]);
      m[i + 1] = _mm512_unpackhi_epi64(n[i], n[i + 2]);
      m[i + 2] = _mm512_unpacklo_epi64(n[i + 1], n[i + 3]);
      m[i + 3] = _mm512_unpackhi_epi64(n[i + 1], n[i + 3]);
    }
    for (int64_t i = 0; i < 4; ++i) {
      Ints lanes[4] = {m[i], m[4 + i], m[8 + i], m[12 + i]};
      TurnLanes(lanes);
      for (int64_t lane = 0; lane < 4; ++lane)
        _mm512_storeu_si512(to + (4 * lane + i) * kBytes, lanes[lane]);
    }
  }

  // Bytes [at, at + count) of four rows, count ≤ 64, zeros behind them: column i of all four, then
  // column i+1 …, 16 columns to `to` and the next ones `stride` bytes behind it.
  static void ZipFours(const char* const* rows, int64_t at, int64_t count, int8_t* to,
                       int64_t stride) {
    Ints m[4];
    for (int64_t i = 0; i < 4; ++i) m[i] = LoadBytesPartial(rows[i] + at, count);
    const Ints low01 = _mm512_unpacklo_epi8(m[0], m[1]);
    const Ints high01 = _mm512_unpackhi_epi8(m[0], m[1]);
    const Ints low23 = _mm512_unpacklo_epi8(m[2], m[3]);
    const Ints high23 = _mm512_unpackhi_epi8(m[2], m[3]);
    Ints lanes[4] = {_mm512_unpacklo_epi16(low01, low23), _mm512_unpackhi_epi16(low01, low23),
                     _mm512_unpacklo_epi16(high01, high23), _mm512_unpackhi_epi16(high01, high23)};
    TurnLanes(lanes);
    for (int64_t lane = 0; lane * 16 < count; ++lane)
      _mm512_storeu_si512(to + lane * stride, lanes[lane]);
  }

 private:
  template <class T>
  static T* At(void* p) {
    return static_cast<T*>(p);
  }
  // 64 bytes, zeros behind the first `count`; nothing past them is read.
  static Ints LoadBytesPartial(const void* p, int64_t count) {
    if (count >= kBytes) return LoadBytes(p);
    return _mm512_maskz_loadu_epi8((uint64_t{1} << count) - 1, p);
  }
  // Transposes a 4×4 matrix of 128-bit parts.
  static void TurnLanes(Ints (&m)[4]) {
    const Ints a = _mm512_shuffle_i32x4(m[0], m[1], 0x44);
    const Ints b = _mm512_shuffle_i32x4(m[2], m[3], 0x44);
    const Ints c = _mm512_shuffle_i32x4(m[0], m[1], 0xee);
    const Ints d = _mm512_shuffle_i32x4(m[2], m[3], 0xee);
    m[0] = _mm512_shuffle_i32x4(a, b, 0x88);
    m[1] = _mm512_shuffle_i32x4(a, b, 0xdd);
    m[2] = _mm512_shuffle_i32x4(c, d, 0x88);
    m[3] = _mm512_shuffle_i32x4(c, d, 0xdd);
  }
};

}  // namespace
}  // namespace latte::cpu
