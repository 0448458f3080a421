// Rows of W of a byte or less and rows of x of 8 bits, cut into chunks of 128 values, as products
// of bytes take them.
//
// One operand of an instruction is unsigned: int8 weights become w + 128 (one exclusive or), 4-bit
// ones are codes as they are. What that adds to an integer sum, 128 or the zero times the sum of x,
// is taken off by its `start`.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/s8_dot-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kMaxPreparedChunks = 1536;  // of rows of x: 192 KiB
constexpr int64_t kSumLanes = 16;             // of a vector of integer sums

// What distinguishes the weights: how a chunk of a row becomes two vectors of unsigned bytes, and
// of x two of signed ones. 4-bit codes come out as even values and odd ones: lane l of both has
// values 8l … 8l + 7, so that a run of 32 has four lanes.
template <class V, class T>
struct ByteOrder;

template <class VType>
struct ByteOrder<VType, I8> {
  using V = VType;
  using T = I8;
  static constexpr int64_t kRowBytes = kByteChunk;  // of a chunk
  static constexpr int32_t kZero = 128;
  // Half of a chunk, of which `count` values are there, behind them anything.
  template <int64_t kHalf>
  static typename V::Ints Load(const I8* w) {
    return V::FlipSigns(V::LoadBytes(w + 64 * kHalf));
  }
  template <int64_t kHalf>
  static typename V::Ints Load(const I8* w, int64_t count) {
    return V::FlipSigns(V::LoadBytesPartial(w + 64 * kHalf, Max(0, Min(count - 64 * kHalf, 64))));
  }
  static void Order(typename V::Ints (&)[2]) {}
  static void TurnRuns(typename V::Ints (&)[2]) {}
  // Lane `lane` of half `half`: where its four values lie in a chunk whose runs follow each other.
  static int64_t StepOf(int64_t half, int64_t lane) { return half * kSumLanes + lane; }
};

template <class VType>
struct ByteOrder<VType, U4> {
  using V = VType;
  using T = U4;
  static constexpr int64_t kRowBytes = kByteChunk / 2;
  static constexpr int32_t kZero = 8;
  template <int64_t kHalf>
  static typename V::Ints Load(const U4* w) {
    return Nibbles<kHalf>(V::LoadBytes(w));
  }
  template <int64_t kHalf>
  static typename V::Ints Load(const U4* w, int64_t count) {
    return Nibbles<kHalf>(V::LoadBytesPartial(w, (count + 1) / 2));
  }
  static void Order(typename V::Ints (&x)[2]) {
    const typename V::Ints even = V::EvenBytes(x[0], x[1]);
    x[1] = V::OddBytes(x[0], x[1]);
    x[0] = even;
  }
  static void TurnRuns(typename V::Ints (&x)[2]) {
    const typename V::Ints even = x[0];
    x[0] = V::ZipQuartersLow(even, x[1]);
    x[1] = V::ZipQuartersHigh(even, x[1]);
  }
  static int64_t StepOf(int64_t half, int64_t lane) { return lane / 4 * 8 + half * 4 + lane % 4; }

 private:
  template <int64_t kHalf>
  static typename V::Ints Nibbles(typename V::Ints codes) {
    if constexpr (kHalf == 0) return V::LowNibbles(codes);
    return V::HighNibbles(codes);
  }
};

// Columns [begin, +k) of a task's x: chunks of `codes`, each with a scale and
// for each run what its integer sums start from, with zeros the sum of its values.
struct ByteInputs {
  alignas(64) int8_t codes[kMaxPreparedChunks * kByteChunk];
  int32_t start[kMaxPreparedChunks * kChunkRuns];
  float scale[kMaxPreparedChunks];
  int64_t begin, k, rows;
  int64_t row_step, chunk_step;  // chunks

  int64_t chunks() const { return (k + kByteChunk - 1) / kByteChunk; }
  int64_t At(int64_t row, int64_t chunk) const { return row * row_step + chunk * chunk_step; }
};

// The sums of 16 / kRuns chunks' runs in the order [run][chunk], from sums of lanes of four chunks
// each.
template <class V, int64_t kRuns>
inline typename V::Ints SumOfRuns(typename V::Ints (&quads)[4 / kRuns]) {
  if constexpr (kRuns == 1) {
    V::TurnQuarters(quads);
    return V::AddInts(V::AddInts(quads[0], quads[1]), V::AddInts(quads[2], quads[3]));
  } else {
    return quads[0];
  }
}

// 128 values of which `count` are there, zeros behind them.
template <class V>
inline void LoadValues(const int8_t* x, int64_t count, typename V::Ints (&to)[2]) {
  for (int64_t half = 0; half < 2; ++half)
    to[half] = count >= kByteChunk
                   ? V::LoadBytes(x + 64 * half)
                   : V::LoadBytesPartial(x + 64 * half, Max(0, Min(count - 64 * half, 64)));
}

// Prepares columns [begin, +k) of x. kRunsInTurn: the values of a run lie side
// by side; else as ByteOrder has them.
template <class Kind, bool kRunsInTurn>
void PrepareInputs(const LinearTask& t, ByteInputs& to) {
  using V = typename Kind::V;
  constexpr int64_t kRuns = Kind::kRuns;
  constexpr int64_t kBatch = kSumLanes / kRuns;
  constexpr int32_t kFactor = Kind::kZeros ? 1 : -Kind::Order::kZero;
  for (int64_t i = 0; i < to.rows; ++i) {
    const int8_t* const x = static_cast<const int8_t*>(t.x) + i * t.x_stride + to.begin;
    const float* const scale = t.x_scale + i * t.x_scale_stride;
    for (int64_t first = 0; first < to.chunks(); first += kBatch) {
      const int64_t count = Min(kBatch, to.chunks() - first);
      typename V::Ints lanes[4 / kRuns][4];
      for (int64_t c = 0; c < kBatch; ++c) {
        lanes[c / 4][c % 4] = V::ZeroInts();
        if (c >= count) continue;
        const int64_t k = (first + c) * kByteChunk;
        typename V::Ints bytes[2];
        LoadValues<V>(x + k, to.k - k, bytes);
        Kind::Order::Order(bytes);
        lanes[c / 4][c % 4] = V::SumBytes(bytes[0], bytes[1]);
        if constexpr (kRunsInTurn) Kind::Order::TurnRuns(bytes);
        const int64_t at = to.At(i, first + c);
        V::StoreBytes(to.codes + at * kByteChunk, bytes[0]);
        V::StoreBytes(to.codes + at * kByteChunk + 64, bytes[1]);
        to.scale[at] = scale[t.x_group == kByteChunk ? to.begin / kByteChunk + first + c
                                                     : (to.begin + k) / t.x_group];
      }
      typename V::Ints quads[4 / kRuns];
      for (int64_t j = 0; j < 4 / kRuns; ++j) quads[j] = V::SumQuads(lanes[j]);
      alignas(64) int32_t sums[kSumLanes];
      V::StoreBytes(sums, SumOfRuns<V, kRuns>(quads));
      for (int64_t c = 0; c < count; ++c)
        for (int64_t run = 0; run < kRuns; ++run)
          to.start[to.At(i, first + c) * kRuns + run] = kFactor * sums[run * kBatch + c];
    }
  }
}

}  // namespace
}  // namespace latte::cpu
