// Vector class for AVX512_BF16: avx512-inl.h plus dot products of bf16 pairs accumulated in f32
// (vdpbf16ps). A register holds 32 bf16; pair i belongs to f32 lane i. The instruction rounds to
// nearest even and treats subnormal operands and results as zero, whatever MXCSR says.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/isa/avx512-inl.h"

namespace latte::cpu {
namespace {

struct Avx512Bf16 : Avx512 {
  using Pairs = __m512bh;
  static constexpr int64_t kPairElements = 32;

  static Pairs LoadPairs(const BF16* p) { return As(_mm512_loadu_epi16(p)); }
  // The first `count` ≤ 32 elements, then zeros; reads nothing behind them.
  static Pairs LoadPairsPartial(const BF16* p, int64_t count) {
    const auto first = static_cast<__mmask32>((uint64_t{1} << count) - 1);
    return As(_mm512_maskz_loadu_epi16(first, p));
  }
  // 8- and 4-bit weights as bf16, exactly.
  static Pairs LoadPairs(const F8* p) { return F8Pairs(Bytes32(p), kF8Bytes); }
  static Pairs LoadPairs(const F8Fnuz* p) { return F8FnuzPairs(Bytes32(p)); }
  static Pairs LoadPairs(const I8* p) { return RoundPairs(Load(p), Load(p + kLanes)); }
  static Pairs LoadPairsPartial(const F8* p, int64_t count) {
    return F8Pairs(Bytes32(p, count), kF8Bytes);
  }
  static Pairs LoadPairsPartial(const F8Fnuz* p, int64_t count) {
    return F8FnuzPairs(Bytes32(p, count));
  }
  static Pairs LoadPairsPartial(const I8* p, int64_t count) {
    const int64_t low = count < kLanes ? count : kLanes;
    return RoundPairs(LoadPartial(p, low), LoadPartial(p + low, count - low));
  }
  // 16 values of each of two rows, the second row in the upper 256-bit lane.
  template <class T>
  static Pairs LoadTwo(const T* p, const T* q) {
    return Two(p, _mm_loadu_epi8(p), _mm_loadu_epi8(q));
  }
  static Pairs LoadTwo(const BF16* p, const BF16* q) {
    return As(_mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_epi16(p)),
                                 _mm256_loadu_epi16(q), 1));
  }
  // The first `count` ≤ 16 of each, then zeros.
  template <class T>
  static Pairs LoadTwoPartial(const T* p, const T* q, int64_t count) {
    const auto first = static_cast<__mmask16>((1u << count) - 1);
    return Two(p, _mm_maskz_loadu_epi8(first, p), _mm_maskz_loadu_epi8(first, q));
  }
  static Pairs LoadTwoPartial(const BF16* p, const BF16* q, int64_t count) {
    const auto first = static_cast<__mmask16>((1u << count) - 1);
    return As(_mm512_inserti64x4(_mm512_castsi256_si512(_mm256_maskz_loadu_epi16(first, p)),
                                 _mm256_maskz_loadu_epi16(first, q), 1));
  }
  // Constants of WidenPairs, kept in registers over a loop.
  struct Widener {
    __m512i magnitude, nan, exponent, kept, normal, small;
  };
  static Widener WidenerOf(const F8*) { return WidenerOf(0x7f, 0x7f, kF8Moves); }
  static Widener WidenerOf(const F8Fnuz*) { return WidenerOf(0xff, 0x80, kF8FnuzMoves); }
  // 64 8-bit weights as bf16, the first 32 and the rest. e4m3: shifts sign and magnitude into place
  // and adds the difference of the exponent biases or, for subnormal magnitudes below 8, a table
  // entry. NaN takes a slow path.
  template <class T>
  static void WidenPairs(const T* p, const Widener& c, BF16* first, BF16* second) {
    const __m512i magnitude = _mm512_and_si512(_mm512_loadu_si512(p), c.magnitude);
    if (_mm512_cmpeq_epi8_mask(magnitude, c.nan) != 0) [[unlikely]]
      return LookUpPairs(p, first, second);
    StorePairs(first, MovePairs(Bytes32(p), c));
    StorePairs(second, MovePairs(Bytes32(p + 32), c));
  }
  struct ByteWidener {};
  static ByteWidener WidenerOf(const I8*) { return {}; }
  static void WidenPairs(const I8* p, ByteWidener, BF16* first, BF16* second) {
    StorePairs(first, LoadPairs(p));
    StorePairs(second, LoadPairs(p + 32));
  }
  // Constants of MoveNumbers that also multiply by a power of two: added to every exponent except
  // that of zero. No product may be subnormal or infinite.
  static Widener Times(const Widener& c, int exponent) {
    const __m512i more = _mm512_set1_epi16(static_cast<int16_t>(exponent * 128));
    Widener scaled = c;
    scaled.normal = _mm512_add_epi16(c.normal, more);
    scaled.small =
        _mm512_mask_add_epi16(c.small, _mm512_test_epi16_mask(c.small, c.small), c.small, more);
    return scaled;
  }
  // 32 values that are not NaN.
  static Pairs MoveNumbers(const F8* p, const Widener& c) { return MovePairs(Bytes32(p), c); }
  // The same for normal values alone: two instructions fewer.
  using Normals = __m512i;
  static Normals NormalsOf(int exponent) {
    return _mm512_set1_epi16(static_cast<int16_t>(kF8Moves.normal + exponent * 128));
  }
  static Pairs MoveNormals(const F8* p, Normals normals) {
    const __m512i moved = _mm512_slli_epi16(_mm512_cvtepi8_epi16(Bytes32(p)), 4);
    const __m512i kept = _mm512_and_si512(moved, _mm512_set1_epi16(static_cast<int16_t>(0x87f0)));
    return As(_mm512_add_epi16(kept, normals));
  }
  // Every bit of the bf16 of a normal e4m3 is a bit of the e4m3 or its inverse. Affine bit matrices
  // (GFNI): byte 7 − i selects the source bits of bit i.
  struct NormalBits {
    __m512i low, high;
  };
  static NormalBits NormalBitsOfF8() {
    constexpr int64_t kLowBits = 0x01020408;           // mantissa, last bit of the exponent
    constexpr int64_t kHighBits = 0x1020404040404080;  // others of the exponent, sign
    return {Kept(_mm512_set1_epi64(kLowBits)), Kept(_mm512_set1_epi64(kHighBits))};
  }
  // 32 normal values of each of two rows, as LoadTwo of the first 16 of each and of the others.
  struct TwoPairs {
    Pairs first, second;
  };
  static TwoPairs LoadTwoNormals(const F8* p, const F8* q, const NormalBits& bits) {
    const __m512i codes = TwoQuarters(p, q);
    constexpr char kBias = 0x3c;
    const __m512i low = _mm512_gf2p8affine_epi64_epi8(codes, bits.low, 0);
    const __m512i high = _mm512_gf2p8affine_epi64_epi8(codes, bits.high, kBias);
    return {As(_mm512_unpacklo_epi8(low, high)), As(_mm512_unpackhi_epi8(low, high))};
  }
  // Outliers: NaN, subnormal or zero. Twice the magnitude minus twice the least normal one then
  // exceeds that of all normal values.
  using Outliers = __m512i;
  static Outliers NoOutliers() { return _mm512_setzero_si512(); }
  static Outliers AddOutliers(Outliers before, const F8* p) {
    const __m512i bytes = _mm512_loadu_si512(p);
    const __m512i twice = _mm512_add_epi8(bytes, bytes);
    return _mm512_max_epu8(before, _mm512_sub_epi8(twice, _mm512_set1_epi8(2 * 8)));
  }
  static bool AnyOutlier(Outliers all) {
    const __m512i nan = _mm512_set1_epi8(static_cast<char>(2 * 0x7f - 2 * 8));
    return _mm512_cmpge_epu8_mask(all, nan) != 0;
  }
  // Byte lookup tables, kept in registers over a loop.
  struct ByteTables {
    __m512i low, more_low, high, more_high, sign;
  };
  static ByteTables ByteTablesOf(const F8*) { return ByteTablesOf(kF8Bytes); }
  static ByteTables ByteTablesOf(const F8Fnuz*) { return ByteTablesOf(kF8FnuzBytes); }
  struct NoTables {};
  static NoTables ByteTablesOf(const void*) { return {}; }
  // As LoadTwoNormals, for any values.
  template <class T>
  static TwoPairs LoadTwoTwice(const T* p, const T* q, const ByteTables& tables) {
    return LookUp(p, TwoQuarters(p, q), tables);
  }
  // Interleaves 64 values of two rows into bf16 pairs: lane 4l + i of out[j] holds value 16l + 4j +
  // i of both. Transpose128 restores the order of sums.
  template <class T>
  static void InterleaveTwoRows(const T* p, const T* q, const ByteTables& tables, Pairs (&out)[4]) {
    const __m512i first = _mm512_loadu_si512(p);
    const __m512i second = _mm512_loadu_si512(q);
    const __m512i codes[2] = {_mm512_unpacklo_epi8(first, second),
                              _mm512_unpackhi_epi8(first, second)};
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const TwoPairs pairs = LookUp(p, codes[i], tables);
      out[2 * i] = pairs.first;
      out[2 * i + 1] = pairs.second;
    }
  }
  // The 16 values of a U4 with this zero point, twice.
  using U4PairTable = __m512i;
  static U4PairTable PairTableOf(int64_t zero) {
    const void* values = kU4Values.bf16 + kU4Zeros - zero;
    return _mm512_broadcast_i64x4(_mm256_loadu_si256(static_cast<const __m256i*>(values)));
  }
  static Pairs LoadPairs(const U4* p, U4PairTable table) {
    return U4Pairs(_mm_loadu_epi8(p), table);
  }
  // The same for two rows with different zero points.
  static U4PairTable TwoTablesOf(int64_t zero, int64_t second) {
    const void* values = kU4Values.bf16 + kU4Zeros - second;
    return _mm512_inserti64x4(PairTableOf(zero),
                              _mm256_loadu_si256(static_cast<const __m256i*>(values)), 1);
  }
  static Pairs LoadTwo(const U4* p, const U4* q, U4PairTable tables) {
    return TwoU4Pairs(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)),
                      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(q)), tables);
  }
  static Pairs LoadTwoPartial(const U4* p, const U4* q, int64_t count, U4PairTable tables) {
    const auto first = static_cast<__mmask16>((1u << (count + 1) / 2) - 1);
    return TwoU4Pairs(_mm_maskz_loadu_epi8(first, p), _mm_maskz_loadu_epi8(first, q), tables);
  }
  // Elements behind the first `count` are unspecified, finite values.
  static Pairs LoadPairsPartial(const U4* p, int64_t count, U4PairTable table) {
    const auto first = static_cast<__mmask16>((1u << (count + 1) / 2) - 1);
    return U4Pairs(_mm_maskz_loadu_epi8(first, p), table);
  }
  static void StorePairs(BF16* p, Pairs v) { _mm512_storeu_epi16(p, Bits(v)); }
  // Broadcasts the pair at p.
  static Pairs SetPair(const BF16* p) {
    int32_t pair;
    __builtin_memcpy(&pair, p, sizeof(pair));
    return As(_mm512_set1_epi32(pair));
  }
  // 16 elements in both 256-bit lanes.
  static Pairs LoadSame(const BF16* p) { return As(_mm512_broadcast_i64x4(_mm256_loadu_epi16(p))); }
  // The first `count` ≤ 16, then zeros.
  static Pairs LoadSamePartial(const BF16* p, int64_t count) {
    const auto first = static_cast<__mmask16>((1u << count) - 1);
    return As(_mm512_broadcast_i64x4(_mm256_maskz_loadu_epi16(first, p)));
  }
  // 8 elements in every 128-bit lane.
  static Pairs LoadFourTimes(const BF16* p) {
    return As(_mm512_broadcast_i32x4(_mm_loadu_epi16(p)));
  }
  // Lane 4j + i: the sum of 128-bit lane i of vector j, in the order of SumFours.
  static Vec SumInQuarters(Vec a, Vec b, Vec c, Vec d) {
    const __m512i index = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    return _mm512_permutexvar_ps(index, SumFours(a, b, c, d));
  }
  // *a in the lower 256-bit lane, *b in the upper one.
  static Vec SetHalves(const float* a, const float* b) {
    return _mm512_mask_broadcastss_ps(_mm512_set1_ps(*a), 0xff00, _mm_load_ss(b));
  }
  // Sums of the 256-bit lanes of each vector, the lower lane first.
  static void StoreHalfSums(float (&out)[8], const Vec (&v)[4]) {
    const __m256 sums = HalfSums(v[0], v[1], v[2], v[3]);
    const __m128 first = _mm256_castps256_ps128(sums);
    const __m128 second = _mm256_extractf128_ps(sums, 1);
    _mm_storeu_ps(out, _mm_unpacklo_ps(first, second));
    _mm_storeu_ps(out + 4, _mm_unpackhi_ps(first, second));
  }
  static void StoreHalfSums(float (&out)[4], const Vec (&v)[2]) {
    const __m256 sums = HalfSums(v[0], v[1], v[0], v[1]);
    _mm_storeu_ps(out,
                  _mm_unpacklo_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1)));
  }
  // v, kept in a register: g++ 12 may reload it for every use under register pressure.
  static Pairs HoldPairs(Pairs v) { return As(Kept(Bits(v))); }
  // Sums of the 128-bit lanes of a and of b, (0 + 2) + (1 + 3) each.
  static void StoreFourSums(float* of_a, float* of_b, Vec a, Vec b) {
    const Vec twos = Add(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    const Vec sums = Add(twos, _mm512_permute_ps(twos, 0x4e));
    const __m512i order = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 13, 9, 5, 1, 12, 8, 4, 0);
    const __m256 both = _mm512_castps512_ps256(_mm512_permutexvar_ps(order, sums));
    _mm_storeu_ps(of_a, _mm256_castps256_ps128(both));
    _mm_storeu_ps(of_b, _mm256_extractf128_ps(both, 1));
  }
  // 128-bit lanes 0 + 1 and 2 + 3 of a, then of b.
  static Vec AddQuarters(Vec a, Vec b) {
    return Add(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  }
  // 128-bit lane i of the result: the 128-bit lanes of v[i] summed, (0 + 2) + (1 + 3).
  static Vec SumQuarters(const Vec (&v)[4]) {
    const Vec ab = AddHalves(v[0], v[1]);
    const Vec cd = AddHalves(v[2], v[3]);
    return AddQuarters(ab, cd);
  }
  // low and then high, rounded.
  static Pairs RoundPairs(Vec low, Vec high) { return _mm512_cvtne2ps_pbh(high, low); }
  // The first value of every pair, the second one zero.
  static Pairs FirstOfPairs(Pairs v) {
    return As(_mm512_and_si512(Bits(v), _mm512_set1_epi32(0xffff)));
  }
  // Interleaves values of a and b: the first four, or the last four, of every eight.
  static Pairs UnpackLow(Pairs a, Pairs b) { return As(_mm512_unpacklo_epi16(Bits(a), Bits(b))); }
  static Pairs UnpackHigh(Pairs a, Pairs b) { return As(_mm512_unpackhi_epi16(Bits(a), Bits(b))); }
  // The first and the last 16 of 32 sums; `low` has the first four of every eight.
  static Vec PackFirst(Vec low, Vec high) {
    return _mm512_permutex2var_ps(low, FoursInTurn(0), high);
  }
  static Vec PackSecond(Vec low, Vec high) {
    return _mm512_permutex2var_ps(low, FoursInTurn(8), high);
  }
  // Bit casts between pairs and f32.
  static Vec AsFloats(Pairs v) { return reinterpret_cast<Vec>(v); }
  static Pairs AsPairs(Vec v) { return reinterpret_cast<Pairs>(v); }
  // sum[i] + x[2i]·y[2i] + x[2i+1]·y[2i+1]
  static Vec DotPairs(Vec sum, Pairs x, Pairs y) { return _mm512_dpbf16_ps(sum, x, y); }
  // Interleaves both 256-bit lanes: p0 p16 p1 p17 … p15 p31.
  static Pairs Interleave(Pairs p) {
    return As(_mm512_permutexvar_epi16(InterleaveIndex(), Bits(p)));
  }
  // a0 b0 a1 b1 … a15 b15, and the same for the upper 256-bit lanes.
  static Pairs InterleaveLow(Pairs a, Pairs b) {
    return As(_mm512_permutex2var_epi16(Bits(a), InterleaveTwoIndex(), Bits(b)));
  }
  static Pairs InterleaveHigh(Pairs a, Pairs b) {
    const __m512i index = _mm512_add_epi16(InterleaveTwoIndex(), _mm512_set1_epi16(16));
    return As(_mm512_permutex2var_epi16(Bits(a), index, Bits(b)));
  }

 protected:
  static Pairs As(__m512i bits) { return reinterpret_cast<Pairs>(bits); }
  static __m512i Bits(Pairs v) { return reinterpret_cast<__m512i>(v); }
  // The compiler would rebuild the constants for every use.
  static __m512i Kept(__m512i x) {
    asm("" : "+v"(x));
    return x;
  }

 private:
  static __m256i Bytes32(const void* p) { return _mm256_loadu_epi8(p); }
  static __m256i Bytes32(const void* p, int64_t count) {
    const auto first = static_cast<__mmask32>((uint64_t{1} << count) - 1);
    return _mm256_maskz_loadu_epi8(first, p);
  }
  // 128-bit lanes 0 + 2 and 1 + 3 of a, then of b.
  static Vec AddHalves(Vec a, Vec b) {
    return Add(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
  }
  // Sums of the lower 256-bit lanes, then of the upper ones.
  static __m256 HalfSums(Vec a, Vec b, Vec c, Vec d) {
    const Vec fours = SumFours(a, b, c, d);
    const Vec eights = Add(fours, _mm512_shuffle_f32x4(fours, fours, 0xb1));
    return _mm512_castps512_ps256(_mm512_shuffle_f32x4(eights, eights, 0x08));
  }
  static __m256i Both(__m128i a, __m128i b) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
  }
  static Pairs Two(const F8*, __m128i a, __m128i b) { return F8Pairs(Both(a, b), kF8Bytes); }
  static Pairs Two(const F8Fnuz*, __m128i a, __m128i b) { return F8FnuzPairs(Both(a, b)); }
  static Pairs Two(const I8*, __m128i a, __m128i b) {
    return RoundPairs(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(a)),
                      _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(b)));
  }
  // Duplicates every byte: the copies look up the two bytes of the bf16.
  static __m512i Twice(__m256i bytes) {
    return _mm512_permutexvar_epi8(TwiceIndex(), _mm512_castsi256_si512(bytes));
  }
  static __m512i TwiceIndex() {
    const __m512i words = _mm512_cvtepu8_epi16(
        _mm256_set_epi8(31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13,
                        12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
    return _mm512_or_si512(words, _mm512_slli_epi16(words, 8));
  }
  // The lookup uses the low seven bits; the sign is added.
  static Pairs F8Pairs(__m256i bytes, const F8Bytes& table) {
    constexpr __mmask64 kLow = 0x5555555555555555u;
    const __m512i codes = Twice(bytes);
    const __m512i low = _mm512_mask2_permutex2var_epi8(_mm512_load_si512(table.low), codes, kLow,
                                                       _mm512_load_si512(table.low + 64));
    const __m512i both = _mm512_mask2_permutex2var_epi8(_mm512_load_si512(table.high), low, ~kLow,
                                                        _mm512_load_si512(table.high + 64));
    constexpr int kOrAnd = 0xf8;  // a | b & c
    const __m512i sign = _mm512_set1_epi16(static_cast<int16_t>(0x8000));
    return As(_mm512_ternarylogic_epi32(both, codes, sign, kOrAnd));
  }
  static Pairs F8FnuzPairs(__m256i bytes) {
    const __mmask32 nan = _mm256_cmpeq_epi8_mask(bytes, _mm256_set1_epi8(static_cast<char>(0x80)));
    const __m512i values = Bits(F8Pairs(bytes, kF8FnuzBytes));
    return As(_mm512_mask_mov_epi16(values, nan, _mm512_set1_epi16(0x7fc0)));
  }
  static ByteTables ByteTablesOf(const F8Bytes& bytes) {
    return {Kept(_mm512_load_si512(bytes.low)), Kept(_mm512_load_si512(bytes.low + 64)),
            Kept(_mm512_load_si512(bytes.high)), Kept(_mm512_load_si512(bytes.high + 64)),
            Kept(_mm512_set1_epi8(static_cast<char>(0x80)))};
  }
  // 32 values of each of two rows, in the order in which interleaving their low and high bytes per
  // 128-bit lane leaves them contiguous.
  static __m512i TwoQuarters(const void* p, const void* q) {
    constexpr int kMiddleSwapped = 0xd8;
    return _mm512_permutex_epi64(
        _mm512_inserti64x4(_mm512_castsi256_si512(Bytes32(p)), Bytes32(q), 1), kMiddleSwapped);
  }
  // 64 values of type T as bf16: the first eight of every 16, and the others.
  template <class T>
  static TwoPairs LookUp(const T* type, __m512i codes, const ByteTables& tables) {
    constexpr int kOrAnd = 0xf8;  // a | b & c
    __m512i low = _mm512_permutex2var_epi8(tables.low, codes, tables.more_low);
    __m512i high = _mm512_permutex2var_epi8(tables.high, codes, tables.more_high);
    high = _mm512_ternarylogic_epi32(high, codes, tables.sign, kOrAnd);
    SetNans(type, codes, tables, low, high);
    return {As(_mm512_unpacklo_epi8(low, high)), As(_mm512_unpackhi_epi8(low, high))};
  }
  // Bytes of NaN for types whose table lacks it: minus zero of e4m3fnuz.
  static void SetNans(const F8*, __m512i, const ByteTables&, __m512i&, __m512i&) {}
  static void SetNans(const F8Fnuz*, __m512i codes, const ByteTables& tables, __m512i& low,
                      __m512i& high) {
    const __mmask64 nan = _mm512_cmpeq_epi8_mask(codes, tables.sign);
    low = _mm512_mask_mov_epi8(low, nan, _mm512_set1_epi8(static_cast<char>(0xc0)));
    high = _mm512_mask_mov_epi8(high, nan, _mm512_set1_epi8(0x7f));
  }
  // The permutation reads the low five bits of each index; the fifth does not matter.
  static Pairs U4Pairs(__m128i bytes, U4PairTable table) {
    const __m512i wide = _mm512_cvtepu8_epi32(bytes);
    const __m512i codes = _mm512_or_si512(wide, _mm512_slli_epi32(wide, 12));
    return As(_mm512_permutexvar_epi16(codes, table));
  }
  // Here it selects the table of the row.
  static Pairs TwoU4Pairs(__m128i a, __m128i b, U4PairTable tables) {
    const __m512i wide = _mm512_cvtepu8_epi32(_mm_unpacklo_epi64(a, b));
    const __m512i codes = _mm512_or_si512(wide, _mm512_slli_epi32(wide, 12));
    const __m512i row = _mm512_maskz_set1_epi32(0xff00, 0x00100010);
    constexpr int kAndOr = 0xea;  // a & b | c
    const __m512i index =
        _mm512_ternarylogic_epi32(codes, _mm512_set1_epi32(0x000f000f), row, kAndOr);
    return As(_mm512_permutexvar_epi16(index, tables));
  }
  static Widener WidenerOf(int magnitude, int nan, const F8Moves& moves) {
    const auto words = [](int x) { return Kept(_mm512_set1_epi16(static_cast<int16_t>(x))); };
    return {Kept(_mm512_set1_epi8(static_cast<char>(magnitude))),
            Kept(_mm512_set1_epi8(static_cast<char>(nan))),
            words(0x0780),
            words(0x87f0),
            words(moves.normal),
            Kept(_mm512_broadcast_i32x4(
                _mm_load_si128(reinterpret_cast<const __m128i*>(moves.small))))};
  }
  static Pairs MovePairs(__m256i bytes, const Widener& c) {
    const __m512i wide = _mm512_cvtepi8_epi16(bytes);
    const __m512i moved = _mm512_slli_epi16(wide, 4);
    const __mmask32 small = _mm512_testn_epi16_mask(moved, c.exponent);
    const __m512i more = _mm512_mask_permutexvar_epi16(c.normal, small, wide, c.small);
    return As(_mm512_add_epi16(_mm512_and_si512(moved, c.kept), more));
  }
  template <class T>
  [[gnu::cold, gnu::noinline]] static void LookUpPairs(const T* p, BF16* first, BF16* second) {
    StorePairs(first, LoadPairs(p));
    StorePairs(second, LoadPairs(p + 32));
  }
  static __m512i InterleaveIndex() {
    return _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
                            6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  }
  static __m512i FoursInTurn(int first) {
    return _mm512_add_epi32(
        _mm512_set_epi32(23, 22, 21, 20, 7, 6, 5, 4, 19, 18, 17, 16, 3, 2, 1, 0),
        _mm512_set1_epi32(first));
  }
  static __m512i InterleaveTwoIndex() {
    return _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38,
                            6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  }
};

}  // namespace
}  // namespace latte::cpu
