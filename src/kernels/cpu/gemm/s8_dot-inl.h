// Parts of the int8 GEMM that all instruction sets share: the kind of a task (weight type, scale
// groups per chunk, zero points), scales of B, and the step from integer sums to f32 totals.
//
// A Layout has V, T, kRowBytes (bytes of a chunk of a row of B) and kZero, the offset that turns a
// weight into an operand. `start` compensates kZero, or the zero point times the sum of A.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/int8_scales-inl.h"
#include "src/kernels/cpu/common/prefetch_weights-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Kind of a task: the layout of B, scale groups per chunk, whether each row of B has one scale, and
// whether scale groups have zero points.
template <class LayoutType, int64_t kGroupCount, bool kOne, bool kWithZeros>
struct S8Kind {
  using Layout = LayoutType;
  using V = typename Layout::V;
  using T = typename Layout::T;
  static constexpr int64_t kGroups = kGroupCount;
  static constexpr int64_t kGroup = kChunkK / kGroups;
  static constexpr bool kOneScale = kOne;
  static constexpr bool kZeros = kWithZeros;
};

// Calls f with the kind of a task. Requires: A is int8, B is int8 or 4-bit with scales.
template <class Layout, class F>
void WithGroups(const GemmTask& t, const F& f) {
  constexpr bool kLong = kValuesPer<typename Layout::T> == 1;
  const auto with = [&](auto zeros) {
    constexpr bool kZeros = decltype(zeros)::value != 0;
    if (HasOneScale(t)) return f(S8Kind<Layout, 1, true, kZeros>{});
    if constexpr (!kLong)
      if (!HasChunkGroups(t.grid)) return f(S8Kind<Layout, kChunkGroups, false, kZeros>{});
    f(S8Kind<Layout, 1, false, kZeros>{});
  };
  if constexpr (!kLong)
    if (t.grid.zero != nullptr) return with(Int<1>{});
  with(Int<0>{});
}
template <template <class, class> class Layout, class V, class F>
void WithS8Kind(const GemmTask& t, const F& f) {
  if (t.w_type == Element::kI8) return WithGroups<Layout<V, I8>>(t, f);
  WithGroups<Layout<V, U4>>(t, f);
}

// Columns [begin, +k) of A in chunks, at most kBytes of codes in kChunks chunks, each with a scale
// and, per scale group, the initial integer sum (with zero points: the sum of its values).
template <int64_t kBytes, int64_t kChunks>
struct S8A {
  alignas(64) int8_t codes[kBytes];
  int32_t start[kChunks * kChunkGroups];
  float scale[kChunks];
  int64_t begin, k, rows;
  int64_t row_step, chunk_step;  // chunks

  int64_t chunks() const { return (k + kChunkK - 1) / kChunkK; }
  int64_t At(int64_t row, int64_t chunk) const { return row * row_step + chunk * chunk_step; }
};

// Scales and negated zero points of kRows rows of B, [scale group][row].
template <int64_t kRows, int64_t kMaxGroups>
struct GroupScales {
  alignas(64) float scale[kMaxGroups * kRows];
  alignas(64) int32_t zero[kMaxGroups * kRows];  // less than 0
};

template <class Kind, int64_t kRows, int64_t kMaxGroups>
void PrepareScales(const GemmTask& t, int64_t n, int64_t rows, int64_t k_begin, int64_t k,
                   GroupScales<kRows, kMaxGroups>& to) {
  LoadGroupScales<typename Kind::V, Kind::kGroup, kRows>(t.grid, n, rows, k_begin,
                                                         Kind::kOneScale ? 1 : k, to.scale);
  if constexpr (Kind::kZeros) {
    const ScaleGrid& g = t.grid;
    for (int64_t row = 0; row < kRows; ++row) {
      const uint8_t* const zero = g.zero + GridRow(g, n + Min(row, rows - 1)) * g.zero_stride;
      for (int64_t at = 0; at < k; at += Kind::kGroup)
        to.zero[at / Kind::kGroup * kRows + row] = -zero[GridColumn(g, k_begin + at)];
    }
  }
}

// total + a chunk of a register of rows of B and one row of A. sum(group): its integer sums; start
// and x: initial sums and scale of A; scale and zero: of B, kRows from group to group.
template <class Kind, int64_t kRows, class Sum>
inline typename Kind::V::Vec AddChunk(const Sum& sum, const int32_t* start, float x,
                                      const float* scale, const int32_t* zero,
                                      typename Kind::V::Vec total) {
  using V = typename Kind::V;
  return AddScaledChunk<V, Kind::kOneScale, Kind::kGroups>(
      [&](int64_t group) {
        if constexpr (Kind::Layout::kZero == 0) return V::ToFloat(sum(group));
        typename V::Ints from = V::SetInt(start[group]);
        if constexpr (Kind::kZeros) from = V::MulInts(from, V::LoadBytes(zero + group * kRows));
        return V::ToFloat(V::AddInts(sum(group), from));
      },
      [&](int64_t group) { return V::Load(scale + group * kRows); }, V::Set1(x), total);
}

// Totals of a register of rows of B from n, `rows` of them valid, and one row of A: at the start of
// a pass over K, and the store at its end.
template <class V>
inline typename V::Vec InitialTotal(bool first, const float* y, int64_t rows) {
  return first ? V::Zero() : LoadNext<V>(y, rows);
}
template <class Kind>
inline void StoreTotal(const GemmTask& t, bool last, const float* scale, int64_t n, int64_t rows,
                       typename Kind::V::Vec total, float* y) {
  using V = typename Kind::V;
  if (last && Kind::kOneScale) total = V::Mul(total, V::Load(scale));
  if (last && t.bias != nullptr) total = V::Add(total, LoadNext<V>(t.bias + n, rows));
  StoreNext<V>(y, total, rows);
}

}  // namespace
}  // namespace latte::cpu
