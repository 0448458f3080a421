// Arithmetic policies ("Math") of the GEMM kernels, so that one kernel serves f32 FMA (one or two
// vectors per K step) and bf16 pairs accumulated in f32 (vdpbf16ps).
//
// A Math defines
//   X         type of A and of widened B
//   Operand   kStep values of X in registers
//   Vec       a register of sums, and Sum, which reduces its lanes
// Every type of B that a Math accepts is widened to X without rounding.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/isa/dtypes-inl.h"

namespace latte::cpu {
namespace {

constexpr int64_t kU4DefaultZero = 8;

// sums[i][j] = sum of v[i][j].
template <class V, int64_t kM>
inline void SumEach(const typename V::Vec (&v)[kM][4], float (&sums)[kM][4]) {
  for (int64_t i = 0; i < kM; ++i) V::StoreSum4(sums[i], v[i][0], v[i][1], v[i][2], v[i][3]);
}

// f32. kTileRows: MR of a tile of NR = 4; kScaledRows: MR with a second accumulator per output.
template <class V>
struct FloatMath {
  using X = float;
  using Lanes = V;
  using Vec = typename V::Vec;
  using Operand = typename V::Vec;
  using U4Table = typename V::U4Table;
  static constexpr int64_t kStep = V::kLanes;
  static constexpr int64_t kTileRows = V::kTileRows;
  static constexpr int64_t kScaledRows = V::kScaledRows;

  template <class T>
  static Operand Load(const T* p) {
    return V::Load(p);
  }
  template <class T>
  static Operand Partial(const T* p, int64_t count) {
    return V::LoadPartial(p, count);
  }
  static Operand Load(const U4* p, U4Table table) { return V::Load(p, table); }
  static Operand Partial(const U4* p, int64_t count, U4Table table) {
    return V::LoadPartial(p, count, table);
  }
  static U4Table TableOf(int64_t zero) { return V::TableOf(zero); }
  static void Store(float* p, Operand x) { V::Store(p, x); }
  static Vec Dot(Vec sum, Operand x, Operand w) { return V::Fma(x, w, sum); }
  template <int64_t kM>
  static void Sum(const Vec (&v)[kM][4], float (&sums)[kM][4]) {
    SumEach<V>(v, sums);
  }
};

// f32, two registers per K step, in the order of two steps of FloatMath: 8- and 4-bit weights widen
// in fewer instructions.
template <class V>
struct TwinMath {
  using X = float;
  using Lanes = V;
  using Vec = typename V::Vec;
  using Operand = typename V::Twin;
  using U4Table = typename V::U4Table;
  static constexpr int64_t kStep = 2 * V::kLanes;
  static constexpr int64_t kTileRows = V::kTileRows;
  static constexpr int64_t kScaledRows = V::kScaledRows;

  template <class T>
  static Operand Load(const T* p) {
    return V::LoadTwin(p);
  }
  template <class T>
  static Operand Partial(const T* p, int64_t count) {
    return {V::LoadPartial(p, FirstOf(count)),
            V::LoadPartial(p + V::kLanes / kValuesPer<T>, SecondOf(count))};
  }
  static Operand Load(const U4* p, U4Table table) {
    return {V::Load(p, table), V::Load(p + V::kLanes / 2, table)};
  }
  static Operand Partial(const U4* p, int64_t count, U4Table table) {
    return {V::LoadPartial(p, FirstOf(count), table),
            V::LoadPartial(p + V::kLanes / 2, SecondOf(count), table)};
  }
  static U4Table TableOf(int64_t zero) { return V::TableOf(zero); }
  static void Store(float* p, Operand x) {
    V::Store(p, x.first);
    V::Store(p + V::kLanes, x.second);
  }
  static Vec Dot(Vec sum, Operand x, Operand w) {
    return V::Fma(x.second, w.second, V::Fma(x.first, w.first, sum));
  }
  template <int64_t kM>
  static void Sum(const Vec (&v)[kM][4], float (&sums)[kM][4]) {
    SumEach<V>(v, sums);
  }

 private:
  static constexpr int64_t FirstOf(int64_t count) { return count < V::kLanes ? count : V::kLanes; }
  static constexpr int64_t SecondOf(int64_t count) { return count - FirstOf(count); }
};

// bf16 pairs.
template <class V>
struct PairMath {
  using X = BF16;
  using Lanes = V;
  using Vec = typename V::Vec;
  using Operand = typename V::Pairs;
  using U4Table = typename V::U4PairTable;
  static constexpr int64_t kStep = V::kPairElements;
  static constexpr int64_t kTileRows = V::kTileRows;
  static constexpr int64_t kScaledRows = V::kTileRows;

  template <class T>
  static Operand Load(const T* p) {
    return V::LoadPairs(p);
  }
  template <class T>
  static Operand Partial(const T* p, int64_t count) {
    return V::LoadPairsPartial(p, count);
  }
  static Operand Load(const U4* p, U4Table table) { return V::LoadPairs(p, table); }
  static Operand Partial(const U4* p, int64_t count, U4Table table) {
    return V::LoadPairsPartial(p, count, table);
  }
  static U4Table TableOf(int64_t zero) { return V::PairTableOf(zero); }
  static void Store(BF16* p, Operand x) { V::StorePairs(p, x); }
  static Vec Dot(Vec sum, Operand x, Operand w) { return V::DotPairs(sum, x, w); }
  // Reduces two rows of A together.
  template <int64_t kM>
  static void Sum(const Vec (&v)[kM][4], float (&sums)[kM][4]) {
    for (int64_t i = 0; i < kM; i += 2) {
      const Vec first = V::SumQuarters(v[i]);
      if (i + 1 < kM)
        V::StoreFourSums(sums[i], sums[i + 1], first, V::SumQuarters(v[i + 1]));
      else
        V::StoreFourSums(sums[i], sums[i], first, first);
    }
  }
};

// A row of B that loads operands; positions count values.
template <class Math, class T>
struct Weights {
  const T* p;

  void SetZero(const uint8_t*, int64_t) {}
  typename Math::Operand Load(int64_t at) const { return Math::Load(p + at / kValuesPer<T>); }
  typename Math::Operand Partial(int64_t at, int64_t count) const {
    return Math::Partial(p + at / kValuesPer<T>, count);
  }
};
template <class Math>
struct Weights<Math, U4> {
  const U4* p;
  typename Math::U4Table table;

  // Zero point of segment i; `zeros` may be null.
  void SetZero(const uint8_t* zeros, int64_t i) {
    table = Math::TableOf(zeros == nullptr ? kU4DefaultZero : zeros[i]);
  }
  typename Math::Operand Load(int64_t at) const { return Math::Load(p + at / 2, table); }
  typename Math::Operand Partial(int64_t at, int64_t count) const {
    return Math::Partial(p + at / 2, count, table);
  }
};

}  // namespace
}  // namespace latte::cpu
