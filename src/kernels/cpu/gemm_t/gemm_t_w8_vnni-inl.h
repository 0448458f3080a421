// C = A·B with int8 B, one scale per row (sum over N), vpdpwssd, any M, AVX512_VNNI.
//
// Packing   A times the scales of the rows of B becomes fixed point of 15 bits below the largest
//           product of the block. Loops and interleaved rows: gemm_t_pairs-inl.h.
// Rounding  A·scale to 2^−14 of the power of two not above the largest; the sum of each block
//           is rounded twice to f32.
// Order     Exact within a block of 128 rows of B; blocks in order.
// Limits    columns and scales as kI8Sizes (tables/gemm_t.cc); stack 80 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/fixed_point-inl.h"
#include "src/kernels/cpu/gemm_t/gemm_t_pairs-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"

namespace latte::cpu {
namespace {

template <class V>
struct S16Dot {
  using Weight = I8;
  using Value = int16_t;
  using Sum = typename V::Ints;
  using SumValue = int32_t;
  using Pairs = typename V::Ints;

  static constexpr int kBits = 15;

  struct Scales {
    alignas(64) float scale[kPairBlockRows];  // of the rows of the block
  };
  // A row of A times the scales, in fixed point, and the value of one unit.
  struct Row {
    alignas(64) int16_t x[kPairBlockRows];
    float unit;
  };

  // Of every 32 columns the lower four of each eight come first, then the upper four.
  // ColumnsInOrder restores the column order of the sums.
  struct Widener {
    explicit Widener(const I8* /*w*/) {}
    [[gnu::always_inline]] void operator()(const I8* p, const I8* q,
                                           Pairs (&to)[kPairVectors]) const {
#pragma GCC unroll 2
      for (int64_t i = 0; i < 2; ++i) {
        const Pairs first = V::WidenSigned(p + 32 * i);
        const Pairs second = V::WidenSigned(q + 32 * i);
        to[2 * i] = V::InterleaveS16Low(first, second);
        to[2 * i + 1] = V::InterleaveS16High(first, second);
      }
    }
  };
  [[gnu::always_inline]] static void ColumnsInOrder(Sum (&sums)[kPairVectors]) {
#pragma GCC unroll 2
    for (int64_t i = 0; i < kPairVectors; i += 2) {
      const Sum low = V::Interleave128Low(sums[i], sums[i + 1]);
      sums[i + 1] = V::Interleave128High(sums[i], sums[i + 1]);
      sums[i] = low;
    }
  }

  // As many products fit into s32.
  static int64_t BlockRows(const GemmTTask& /*t*/, int64_t /*n*/) { return kPairBlockRows; }

  static void SetScales(const GemmTTask& t, const PairBlock<I8>& block, Scales& to) {
    LoadRowScalesOf<V>(t.grid, block.n, block.rows, 1, to.scale);
  }

  static void SetRow(const GemmTTask& t, int64_t m, const PairBlock<I8>& block,
                     const Scales& scales, Row& to) {
    alignas(64) float scratch[kPairBlockRows];
    const float* const x = FloatInput<V>(t, m, block.n, block.rows, scratch);
    alignas(64) float products[kPairBlockRows];
    typename V::Vec largest = V::Zero();
    for (int64_t i = 0; i < block.rows; i += V::kLanes) {
      const int64_t rest = block.rows - i;
      const typename V::Vec product =
          V::Mul(LoadNext<V>(x + i, rest), LoadNext<V>(scales.scale + i, rest));
      largest = V::MaxMagnitude(largest, product);
      V::Store(products + i, product);
    }
    const FixedPoint point = FixedPointOf<kBits>(V::LargestMagnitude(largest));
    const typename V::Vec by = V::Set1(point.from_float);
    for (int64_t i = 0; i < block.rows; i += V::kLanes)
      V::StoreSignedWords(to.x + i, V::Mul(V::Load(products + i), by));
    to.unit = point.to_float;
  }

  static Sum Zero() { return V::ZeroInts(); }
  static Sum LoadSum(const int32_t* p) { return V::LoadBytes(p); }
  static void StoreSum(int32_t* p, Sum sum) { V::StoreBytes(p, sum); }
  static Pairs LoadPairs(const int16_t* p) { return V::LoadBytes(p); }
  static void StorePairs(int16_t* p, Pairs pairs) { V::StoreBytes(p, pairs); }
  static Pairs Broadcast(const int16_t* x) { return V::SetFour(x); }
  static Sum Add(Sum sum, Pairs w, Pairs x) { return V::DotWords(sum, w, x); }

  static void Store(Sum (&sums)[kPairVectors], const Row& row, const Scales& /*scales*/,
                    int64_t /*column*/, bool first, float* y) {
    ColumnsInOrder(sums);
    for (int64_t i = 0; i < kPairVectors; ++i, y += V::kLanes) {
      const typename V::Vec value = V::Mul(V::ToFloat(sums[i]), V::Set1(row.unit));
      V::Store(y, first ? value : V::Add(V::Load(y), value));
    }
  }
};

// Requires: t.w is I8 with one scale per row; t.batches is 1.
template <class V>
void GemmTW8Vnni(const GemmTTask& t) {
  GemmTPairs<V, S16Dot<V>>(t);
}

}  // namespace
}  // namespace latte::cpu
