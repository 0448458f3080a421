// AMX tiles: avx512_bf16-inl.h plus eight tiles of 16 rows × 64 bytes.
//
// C[16 × 16 f32 or s32] += A[16 × 64 bytes] · B[16 groups × 16 columns × 4 bytes]
//
// A holds rows as stored; row g of B holds the 2 bf16 or 4 bytes g of every column. A thread
// configures its tiles before the first use and releases them after the last one.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/isa/avx512_bf16-inl.h"
#include "src/kernels/cpu/isa/avx512_vnni-inl.h"

namespace latte::cpu {
namespace {

// Rows and bytes per row of each tile, as LDTILECFG reads them. Source: Intel 64 and IA-32
// Architectures Software Developer's Manual, volume 1, chapter 18.
struct alignas(64) TileShapes {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Configures the tiles of the calling thread for its lifetime.
class TileScope {
 public:
  // GCC 12 declares that the intrinsic reads 8 bytes: the other stores may be delayed.
  explicit TileScope(const TileShapes& shapes) {
    static_assert(sizeof(TileShapes) == 64);
    asm volatile("ldtilecfg %0" ::"m"(shapes));
  }
  ~TileScope() { _tile_release(); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

constexpr int64_t kTileBytes = 1024;
constexpr int64_t kTileRowBytes = 64;
constexpr int64_t kTileSide = 16;  // rows of a tile, and columns of one of 32-bit numbers
constexpr int64_t kTileMacsBf16 = 16 * 16 * 32;
constexpr int64_t kTileMacsInt8 = 16 * 16 * 64;

// Tiles are named by constant numbers. The intrinsics of GCC 12 do not declare that they read
// memory, so a store before a tile load could be moved behind it or removed.
struct Amx : Avx512Bf16 {
  using Words = __m512i;

  template <int kTile>
  static void ZeroTile() {
    asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
  }
  // row_bytes: row stride in memory.
  template <int kTile>
  static void LoadTile(const void* p, int64_t row_bytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(row_bytes), "i"(kTile) : "memory");
  }
  template <int kTile>
  static void StoreTile(void* p, int64_t row_bytes) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(p), "r"(row_bytes), "i"(kTile) : "memory");
  }
  // C[i,j] += Σ_g A[i,2g]·B[g,2j] + A[i,2g+1]·B[g,2j+1] of bf16, g < 16.
  template <int kC, int kA, int kB>
  static void DotTiles() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
  }
  // C[i,j] += Σ_g A[i,4g]·B[g,4j] + … + A[i,4g+3]·B[g,4j+3] of s8 in s32, g < 16.
  template <int kC, int kA, int kB>
  static void DotByteTiles() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
  }
  // The same with A unsigned.
  template <int kC, int kA, int kB>
  static void DotUnsignedByteTiles() {
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
  }

  // Interleaves within each 128-bit lane: cheaper than InterleaveLow and InterleaveHigh, but
  // column 8l + i of 32 comes out as pair 4l + i of the first (i < 4) or 4l + i − 4 of the second.
  static Pairs InterleaveLowIn128(Pairs a, Pairs b) {
    return As(_mm512_unpacklo_epi16(Bits(a), Bits(b)));
  }
  static Pairs InterleaveHighIn128(Pairs a, Pairs b) {
    return As(_mm512_unpackhi_epi16(Bits(a), Bits(b)));
  }
  // Restores the order: columns 0–15 and 16–31 from the sums of the two interleaved registers.
  static Vec JoinQuadsLow(Vec low, Vec high) { return JoinQuads(low, high, 0); }
  static Vec JoinQuadsHigh(Vec low, Vec high) { return JoinQuads(low, high, 4); }

  // 32-bit lane i of the result is (a[i], b[i]) rounded to bf16.
  static Words PairWords(Vec a, Vec b) {
    const __m512i index =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(index, Bits(RoundPairs(a, b)));
  }

  // x = 2^x, relative error ≤ 2.4·2^−24 wherever the result is normal; 0 for −∞, NaN stays. With
  // r = x − ⌊x⌋ a polynomial of degree 5 for 2^r that is 1 at 0, of least relative error on [0, 1].
  // Several vectors at a time: a single dependency chain would fill the scheduler.
  template <int kCount>
  static void Exp2(Vec (&x)[kCount]) {
    Vec r[kCount];
    Vec p[kCount];
    for (int i = 0; i < kCount; ++i)
      r[i] = _mm512_reduce_ps(x[i], _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    for (int i = 0; i < kCount; ++i) p[i] = Set1(kExp2[0]);
    for (int k = 1; k < 6; ++k)
      for (int i = 0; i < kCount; ++i) p[i] = Fma(p[i], r[i], Set1(kExp2[k]));
    for (int i = 0; i < kCount; ++i) x[i] = _mm512_scalef_ps(p[i], x[i]);  // p·2^⌊x⌋
  }
  static Vec Exp2(float x) {
    Vec v[1] = {Set1(x)};
    Exp2(v);
    return v[0];
  }
  static bool AllFinite(Pairs v) {
    const __m512i exponent = _mm512_set1_epi16(0x7f80);
    return _mm512_cmpeq_epi16_mask(_mm512_and_si512(Bits(v), exponent), exponent) == 0;
  }

  // rows[i] lane j ↔ rows[j] lane i
  static void Transpose(Words (&rows)[kTileSide]) {
    Words t[kTileSide];
    for (int i = 0; i < kTileSide; i += 2) {
      t[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
      t[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    for (int i = 0; i < kTileSide; i += 4) {
      rows[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
      rows[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
      rows[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
      rows[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int i = 0; i < kTileSide; i += 8)
      for (int j = 0; j < 4; ++j) {
        t[i + j] = _mm512_shuffle_i32x4(rows[i + j], rows[i + j + 4], 0x88);
        t[i + j + 4] = _mm512_shuffle_i32x4(rows[i + j], rows[i + j + 4], 0xdd);
      }
    for (int j = 0; j < 8; ++j) {
      rows[j] = _mm512_shuffle_i32x4(t[j], t[j + 8], 0x88);
      rows[j + 8] = _mm512_shuffle_i32x4(t[j], t[j + 8], 0xdd);
    }
  }
  // Bit i is set if lane i is not 1 or is NaN.
  static uint32_t NotOne(Vec v) { return _mm512_cmp_ps_mask(v, Set1(1.0f), _CMP_NEQ_UQ); }

  // Lane i is lane index[i] of the concatenation of a and b.
  static Vec Pick(Vec a, Vec b, Words index) { return _mm512_permutex2var_ps(a, index, b); }

  static Words WordsOf(Pairs v) { return Bits(v); }
  static Pairs PairsOf(Words v) { return As(v); }
  static Vec Floats(Words v) { return _mm512_castsi512_ps(v); }
  static Words LoadWords(const void* p) { return _mm512_loadu_si512(p); }
  static void StoreWords(void* p, Words v) { _mm512_storeu_si512(p, v); }

 private:
  static constexpr float kExp2[6] = {0x1.e974fap-10f, 0x1.277856p-7f, 0x1.c91ce6p-5f,
                                     0x1.ebdb56p-3f,  0x1.62e4bap-1f, 1.0f};

  static Vec JoinQuads(Vec low, Vec high, int first) {
    const __m512i index =
        _mm512_add_epi64(_mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0), _mm512_set1_epi64(first));
    return _mm512_castpd_ps(
        _mm512_permutex2var_pd(_mm512_castps_pd(low), index, _mm512_castps_pd(high)));
  }
};

}  // namespace
}  // namespace latte::cpu
