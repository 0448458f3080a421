// bf16 C = A·B with e4m3 B (sum over N), vdpbf16ps, any M, AVX512_BF16 + VBMI.
//
// Packing   Two rows of B interleave bytewise, and a table lookup widens them to bf16 pairs. Loops:
//           gemm_t_pairs-inl.h.
// Epilogue  Sums over a block of rows that share scales are scaled once, at its end.
// Order     Per block of rows: pairs of rows in order; blocks in order.
// Limits    columns and segments as kFp8Sizes (tables/gemm_t.cc); stack 64 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/scales-inl.h"
#include "src/kernels/cpu/gemm_t/gemm_t_pairs-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"

namespace latte::cpu {
namespace {

template <class V, class T>
struct Fp8Dot {
  using Weight = T;
  using Value = BF16;
  using Sum = typename V::Vec;
  using SumValue = float;
  using Pairs = typename V::Pairs;

  static constexpr int64_t kUnit = kPairColumns / kPairVectors;  // columns of one scale

  struct Scales {
    float scale[kPairMaxK / kUnit];
  };
  struct Row {
    alignas(64) BF16 x[kPairBlockRows];
  };

  struct Widener {
    typename V::ByteTables tables;

    explicit Widener(const T* w) : tables(V::ByteTablesOf(w)) {}
    [[gnu::always_inline]] void operator()(const T* p, const T* q,
                                           Pairs (&to)[kPairVectors]) const {
      V::InterleaveTwoRows(p, q, tables, to);
    }
  };

  // The rows that share scales.
  static int64_t BlockRows(const GemmTTask& t, int64_t n) {
    if (t.grid.scale == nullptr) return kPairBlockRows;
    return Min(kPairBlockRows, t.grid.rows - (t.grid.row_begin + n) % t.grid.rows);
  }

  static void SetScales(const GemmTTask& t, const PairBlock<T>& block, Scales& to) {
    const int64_t units = t.k / kUnit;
    if (t.grid.scale == nullptr) {
      for (int64_t i = 0; i < units; ++i) to.scale[i] = 1;
      return;
    }
    const Segments segments = SegmentsOf(t.grid, 0, t.k);
    float of_segments[kPairMaxK / kUnit];
    const int64_t at = (t.grid.row_begin + block.n) / t.grid.rows * t.grid.stride +
                       t.grid.column_begin / t.grid.columns;
    WithType(t.grid.scale, t.grid.type,
             [&](const auto* scale) { WidenRow<V>(scale + at, segments.count, of_segments); });
    ForEachSegment(segments, [&](int64_t segment, int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; c += kUnit) to.scale[c / kUnit] = of_segments[segment];
    });
  }

  static void SetRow(const GemmTTask& t, int64_t m, const PairBlock<T>& block,
                     const Scales& /*scales*/, Row& to) {
    const BF16* const from = static_cast<const BF16*>(t.x) + m * t.x_stride + block.n;
    __builtin_memcpy(to.x, from, static_cast<uint64_t>(block.rows) * sizeof(BF16));
    if (block.rows % 2 != 0) to.x[block.rows] = BF16{0};
  }

  static Sum Zero() { return V::Zero(); }
  static Sum LoadSum(const float* p) { return V::Load(p); }
  static void StoreSum(float* p, Sum sum) { V::Store(p, sum); }
  static Pairs LoadPairs(const BF16* p) { return V::LoadPairs(p); }
  static void StorePairs(BF16* p, Pairs pairs) { V::StorePairs(p, pairs); }
  static Pairs Broadcast(const BF16* x) { return V::SetPair(x); }
  static Sum Add(Sum sum, Pairs w, Pairs x) { return V::DotPairs(sum, x, w); }

  // The sums have the column order of InterleaveTwoRows.
  static void Store(Sum (&sums)[kPairVectors], const Row& /*row*/, const Scales& scales,
                    int64_t column, bool first, float* y) {
    V::Transpose128(sums);
    const float* const scale = scales.scale + column / kUnit;
    for (int64_t i = 0; i < kPairVectors; ++i, y += V::kLanes) {
      const Sum by = V::Set1(scale[i]);
      V::Store(y, first ? V::Mul(sums[i], by) : V::Fma(sums[i], by, V::Load(y)));
    }
  }
};

// Requires: t.x is bf16, t.w e4m3; t.batches is 1.
template <class V>
void GemmTFp8Bf16(const GemmTTask& t) {
  if (t.w_type == Element::kF8E4M3) return GemmTPairs<V, Fp8Dot<V, F8>>(t);
  GemmTPairs<V, Fp8Dot<V, F8Fnuz>>(t);
}

}  // namespace
}  // namespace latte::cpu
