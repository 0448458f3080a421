// Rows of W of a byte or less and rows of x of 8 bits for vectors without dot products of bytes.
//
// Units of 32 bytes of W, of which a chunk of int8 has four and one of 4 bits two, are split into
// two halves, of even values and of odd ones: int8 values as words, 4-bit ones as bytes. x is
// brought into the same order:
//
//   W   w0 w1 w2 w3 …  │ one unit       x   x0 x2 x4 … │ x1 x3 x5 …     two vectors of a unit
//
// A step is a lane of both halves, 4 values of int8 and 8 of 4 bits. int8 products are added to
// 32 bits at once. Those of 4 bits are added in words first, up to four steps of both halves:
// 8 · 2 · 15 · 128 < 2^15.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/s8_dot-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kEight = 8;  // rows of W, or sums, of a vector
constexpr int64_t kHalfBytes = 32;
constexpr int64_t kUnitBytes = 2 * kHalfBytes;  // of x
constexpr int64_t kUnitSteps = 8;

template <class V, class T>
struct ByteHalves;

template <class VType>
struct ByteHalves<VType, I8> {
  using V = VType;
  using T = I8;
  using Ints = typename V::Ints;
  static constexpr int64_t kRowBytes = kByteChunk;
  static constexpr int64_t kUnits = kRowBytes / kHalfBytes;  // of a chunk
  static constexpr int32_t kZero = 0;
  static constexpr int64_t kWordSteps = 0;  // that are added in words

  static Ints Even(Ints unit) { return V::EvenWords(unit); }
  static Ints Odd(Ints unit) { return V::OddWords(unit); }
  static Ints AddDot(Ints sum, Ints w, const int8_t* x) { return V::AddWordDot(sum, w, x); }
  static void AddTwoDots(Ints (&sums)[2], Ints w0, Ints w1, const int8_t* x) {
    V::AddTwoWordDots(sums, w0, w1, x);
  }
  static Ints Finish(Ints sum) { return sum; }
  // Values of x from p on, `count` of the unit's there.
  static void SplitInputs(const int8_t* p, int64_t count, Ints (&halves)[2]) {
    const Ints unit = V::LoadBytesPartial(p, count);
    halves[0] = V::EvenWords(unit);
    halves[1] = V::OddWords(unit);
  }
};

template <class VType>
struct ByteHalves<VType, U4> {
  using V = VType;
  using T = U4;
  using Ints = typename V::Ints;
  static constexpr int64_t kRowBytes = kByteChunk / 2;
  static constexpr int64_t kUnits = kRowBytes / kHalfBytes;
  static constexpr int32_t kZero = 8;
  static constexpr int64_t kWordSteps = 4;

  static Ints Even(Ints unit) { return V::LowNibbles(unit); }
  static Ints Odd(Ints unit) { return V::HighNibbles(unit); }
  static Ints AddDot(Ints sum, Ints w, const int8_t* x) { return V::AddByteDot(sum, w, x); }
  static void AddTwoDots(Ints (&sums)[2], Ints w0, Ints w1, const int8_t* x) {
    V::AddTwoByteDots(sums, w0, w1, x);
  }
  static Ints Finish(Ints sum) { return V::DotWords(sum, V::SetWord(1)); }
  static void SplitInputs(const int8_t* p, int64_t count, Ints (&halves)[2]) {
    const Ints a = V::LoadBytesPartial(p, count);
    const Ints b = count > kHalfBytes ? V::LoadBytesPartial(p + kHalfBytes, count - kHalfBytes)
                                      : V::ZeroInts();
    halves[0] = V::EvenBytes(a, b);
    halves[1] = V::OddBytes(a, b);
  }
};

// Values of a unit.
template <class Order>
constexpr int64_t kUnitValues = kByteChunk / Order::kUnits;
// Bytes of a chunk of x.
template <class Order>
constexpr int64_t kInputBytes = Order::kUnits* kUnitBytes;

// Bytes [at, +32) of a row of W, `values` of the row there from its beginning on.
template <class Order, bool kWhole>
inline typename Order::Ints LoadUnit(const typename Order::T* w, int64_t at, int64_t values) {
  const auto* const p = w + at;
  if constexpr (kWhole) return Order::V::LoadBytes(p);
  constexpr int64_t kPer = kValuesPer<typename Order::T>;
  return Order::V::LoadBytesPartial(p, Max(0, (values + kPer - 1) / kPer - at));
}

// Columns [begin, +k) of a task's x: chunks, each with a scale and for each run what its integer
// sums start from, with zeros the sum of its values.
constexpr int64_t kMaxHalvesBytes = 192 << 10;
struct HalvesInputs {
  alignas(64) int8_t codes[kMaxHalvesBytes];
  int32_t start[kMaxHalvesBytes / 128 * kChunkRuns];
  float scale[kMaxHalvesBytes / 128];
  int64_t begin, k, rows;
  int64_t row_step, chunk_step;  // chunks

  int64_t chunks() const { return (k + kByteChunk - 1) / kByteChunk; }
  int64_t At(int64_t row, int64_t chunk) const { return row * row_step + chunk * chunk_step; }
};

// Sums of x in units, of the values of a run each: lanes 0 to 3 of unit u are run 2u, the others
// run 2u + 1. Over all of the chunk where it is one run.
template <class Kind>
inline void SumInputs(const int8_t* codes, int32_t (&sums)[Kind::kRuns]) {
  using Order = typename Kind::Order;
  using V = typename Kind::V;
  typename V::Ints units[4] = {V::ZeroInts(), V::ZeroInts(), V::ZeroInts(), V::ZeroInts()};
  for (int64_t u = 0; u < Order::kUnits; ++u)
    for (int64_t half = 0; half < 2; ++half) {
      const typename V::Ints x = V::LoadBytes(codes + u * kUnitBytes + half * kHalfBytes);
      units[u] = V::AddInts(units[u], V::DotWords(V::DotBytes(V::SetByte(1), x), V::SetWord(1)));
    }
  alignas(32) int32_t fours[8];
  V::StoreBytes(fours, V::SumFours(units));
  if constexpr (Kind::kRuns == 1) {
    sums[0] = fours[0] + fours[1] + fours[4] + fours[5];
  } else {
    for (int64_t run = 0; run < Kind::kRuns; ++run) sums[run] = fours[run % 2 * 4 + run / 2];
  }
}

template <class Kind>
void PrepareHalves(const LinearTask& t, HalvesInputs& to) {
  using Order = typename Kind::Order;
  using V = typename Kind::V;
  constexpr int32_t kFactor = Kind::kZeros ? 1 : -Order::kZero;
  for (int64_t i = 0; i < to.rows; ++i) {
    const int8_t* const x = static_cast<const int8_t*>(t.x) + i * t.x_stride + to.begin;
    const float* const scale = t.x_scale + i * t.x_scale_stride;
    for (int64_t chunk = 0; chunk < to.chunks(); ++chunk) {
      const int64_t at = to.At(i, chunk);
      const int64_t k = chunk * kByteChunk;
      int8_t* const codes = to.codes + at * kInputBytes<Order>;
      for (int64_t u = 0; u < Order::kUnits; ++u) {
        const int64_t first = k + u * kUnitValues<Order>;
        typename V::Ints halves[2];
        Order::SplitInputs(x + first, Max(0, Min(to.k - first, kUnitValues<Order>)), halves);
        V::StoreBytes(codes + u * kUnitBytes, halves[0]);
        V::StoreBytes(codes + u * kUnitBytes + kHalfBytes, halves[1]);
      }
      to.scale[at] = scale[(to.begin + k) / t.x_group];
      if constexpr (Order::kZero != 0) {
        int32_t sums[Kind::kRuns];
        SumInputs<Kind>(codes, sums);
        for (int64_t run = 0; run < Kind::kRuns; ++run)
          to.start[at * Kind::kRuns + run] = kFactor * sums[run];
      }
    }
  }
}

}  // namespace
}  // namespace latte::cpu
