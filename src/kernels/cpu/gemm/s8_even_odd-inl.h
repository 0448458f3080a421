// Operands of the AVX2 int8 kernels: rows of B in units of 32 bytes, split into even and odd
// values; A in the same order. A chunk of int8 has four units, a chunk of 4-bit values two.
//
//   B   w0 w1 w2 w3 …  │ one unit       A   x0 x2 x4 … │ x1 x3 x5 …     two registers per unit
//
// int8 values widen to s16 and accumulate in s32 (vpmaddwd). 4-bit values stay u8 and accumulate in
// s16 (vpmaddubsw) over up to four K steps of both halves: 8 · 2 · 15 · 128 < 2^15. A K step is a
// lane of both registers: 4 values of int8, 8 of 4 bits.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/s8_dot-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kS32Lanes = 8;  // of a register of s32 sums
constexpr int64_t kVectorBytes = 32;
constexpr int64_t kUnitBytes = 2 * kVectorBytes;  // of A
constexpr int64_t kUnitSteps = 8;

template <class V, class T>
struct S8EvenOddLayout;

template <class VType>
struct S8EvenOddLayout<VType, I8> {
  using V = VType;
  using T = I8;
  using Ints = typename V::Ints;
  static constexpr int64_t kRowBytes = kChunkK;
  static constexpr int64_t kUnits = kRowBytes / kVectorBytes;  // of a chunk
  static constexpr int32_t kZero = 0;
  static constexpr int64_t kS16Steps = 0;  // K steps that accumulate in s16

  static Ints Even(Ints unit) { return V::EvenWords(unit); }
  static Ints Odd(Ints unit) { return V::OddWords(unit); }
  static Ints AddDot(Ints sum, Ints w, const int8_t* x) { return V::AddWordDot(sum, w, x); }
  static void AddTwoDots(Ints (&sums)[2], Ints w0, Ints w1, const int8_t* x) {
    V::AddTwoWordDots(sums, w0, w1, x);
  }
  static Ints Finish(Ints sum) { return sum; }
  // Even and odd values of a unit of A at p with `count` valid values.
  static void SplitEvenOdd(const int8_t* p, int64_t count, Ints (&halves)[2]) {
    const Ints unit = V::LoadBytesPartial(p, count);
    halves[0] = V::EvenWords(unit);
    halves[1] = V::OddWords(unit);
  }
};

template <class VType>
struct S8EvenOddLayout<VType, U4> {
  using V = VType;
  using T = U4;
  using Ints = typename V::Ints;
  static constexpr int64_t kRowBytes = kChunkK / 2;
  static constexpr int64_t kUnits = kRowBytes / kVectorBytes;
  static constexpr int32_t kZero = 8;
  static constexpr int64_t kS16Steps = 4;

  static Ints Even(Ints unit) { return V::LowNibbles(unit); }
  static Ints Odd(Ints unit) { return V::HighNibbles(unit); }
  static Ints AddDot(Ints sum, Ints w, const int8_t* x) { return V::AddByteDot(sum, w, x); }
  static void AddTwoDots(Ints (&sums)[2], Ints w0, Ints w1, const int8_t* x) {
    V::AddTwoByteDots(sums, w0, w1, x);
  }
  static Ints Finish(Ints sum) { return V::DotWords(sum, V::SetWord(1)); }
  static void SplitEvenOdd(const int8_t* p, int64_t count, Ints (&halves)[2]) {
    const Ints a = V::LoadBytesPartial(p, count);
    const Ints b = count > kVectorBytes
                       ? V::LoadBytesPartial(p + kVectorBytes, count - kVectorBytes)
                       : V::ZeroInts();
    halves[0] = V::EvenBytes(a, b);
    halves[1] = V::OddBytes(a, b);
  }
};

// Columns of a unit.
template <class Layout>
constexpr int64_t kUnitValues = kChunkK / Layout::kUnits;
// Packed bytes of a chunk of A.
template <class Layout>
constexpr int64_t kAChunkBytes = Layout::kUnits* kUnitBytes;

// Bytes [at, +32) of a row of B that has `values` valid columns.
template <class Layout, bool kWhole>
inline typename Layout::Ints LoadUnit(const typename Layout::T* w, int64_t at, int64_t values) {
  const auto* const p = w + at;
  if constexpr (kWhole) return Layout::V::LoadBytes(p);
  constexpr int64_t kPer = kValuesPer<typename Layout::T>;
  return Layout::V::LoadBytesPartial(p, Max(0, (values + kPer - 1) / kPer - at));
}

constexpr int64_t kMaxEvenOddBytes = 192 << 10;
using EvenOddA = S8A<kMaxEvenOddBytes, kMaxEvenOddBytes / 128>;

// Sums of the values of A per scale group. Lanes 0–3 of unit u belong to group 2u, the others to
// group 2u + 1; with one group per chunk, all of them to it.
template <class Kind>
inline void SumAGroups(const int8_t* codes, int32_t (&sums)[Kind::kGroups]) {
  using Layout = typename Kind::Layout;
  using V = typename Kind::V;
  typename V::Ints units[4] = {V::ZeroInts(), V::ZeroInts(), V::ZeroInts(), V::ZeroInts()};
  for (int64_t u = 0; u < Layout::kUnits; ++u)
    for (int64_t half = 0; half < 2; ++half) {
      const typename V::Ints x = V::LoadBytes(codes + u * kUnitBytes + half * kVectorBytes);
      units[u] = V::AddInts(units[u], V::DotWords(V::DotBytes(V::SetByte(1), x), V::SetWord(1)));
    }
  alignas(32) int32_t fours[8];
  V::StoreBytes(fours, V::SumFours(units));
  if constexpr (Kind::kGroups == 1) {
    sums[0] = fours[0] + fours[1] + fours[4] + fours[5];
  } else {
    for (int64_t group = 0; group < Kind::kGroups; ++group)
      sums[group] = fours[group % 2 * 4 + group / 2];
  }
}

template <class Kind>
void PackEvenOddA(const GemmTask& t, EvenOddA& to) {
  using Layout = typename Kind::Layout;
  using V = typename Kind::V;
  constexpr int32_t kFactor = Kind::kZeros ? 1 : -Layout::kZero;
  for (int64_t i = 0; i < to.rows; ++i) {
    const int8_t* const x = static_cast<const int8_t*>(t.x) + i * t.x_stride + to.begin;
    const float* const scale = t.x_scale + i * t.x_scale_stride;
    for (int64_t chunk = 0; chunk < to.chunks(); ++chunk) {
      const int64_t at = to.At(i, chunk);
      const int64_t k = chunk * kChunkK;
      int8_t* const codes = to.codes + at * kAChunkBytes<Layout>;
      for (int64_t u = 0; u < Layout::kUnits; ++u) {
        const int64_t first = k + u * kUnitValues<Layout>;
        typename V::Ints halves[2];
        Layout::SplitEvenOdd(x + first, Max(0, Min(to.k - first, kUnitValues<Layout>)), halves);
        V::StoreBytes(codes + u * kUnitBytes, halves[0]);
        V::StoreBytes(codes + u * kUnitBytes + kVectorBytes, halves[1]);
      }
      to.scale[at] = scale[(to.begin + k) / t.x_group];
      if constexpr (Layout::kZero != 0) {
        int32_t sums[Kind::kGroups];
        SumAGroups<Kind>(codes, sums);
        for (int64_t group = 0; group < Kind::kGroups; ++group)
          to.start[at * Kind::kGroups + group] = kFactor * sums[group];
      }
    }
  }
}

}  // namespace
}  // namespace latte::cpu
