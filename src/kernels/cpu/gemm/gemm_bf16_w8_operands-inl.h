// Operands of gemm_bf16_w8-inl.h: two rows of fp8, int8 or 4-bit B per register as bf16 pairs, read
// in place or from widened scratch.
//
// A source of rows has StartSegment(segment, begin, end); WithOperands<accumulators>(begin, end,
// f), which calls f with an object that loads these columns; and `scale`, one pointer per row of B.
// The object has Load and Partial for one K step, or LoadBoth for two.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/multiply-inl.h"
#include "src/kernels/cpu/common/scales-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/gemm_f32-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Most accumulators that leave registers for the lookup tables of e4m3.
constexpr int64_t kMaxSumsWithTables = 12;
constexpr int64_t kWidenedRowPairs = 2;  // registers of two rows of B in a widened tile
template <class V>
constexpr int64_t kRowStep = V::kPairElements / 2;  // K step
template <class V>
using W8Scales = BlockScales<PairMath<V>>;

// K steps of a block that fit into scratch. Segments that end inside a step need extra ones.
constexpr int64_t kWidenedSteps = 144;
// Elements of a K step of a tile, and of all steps of a tile: an odd number of cache lines.
template <class V>
constexpr int64_t kWidenedStep = kWidenedRowPairs* V::kPairElements;
template <class V>
constexpr int64_t kWidenedRows = kWidenedSteps* kWidenedStep<V> + V::kPairElements;

// Two rows of B in place; positions count values.
template <class V, class T>
struct RowPair {
  const T* first;
  const T* second;

  void SetZero(const uint8_t*, const uint8_t*, int64_t) {}
  typename V::Pairs Load(int64_t at) const { return V::LoadTwo(first + at, second + at); }
  typename V::Pairs Partial(int64_t at, int64_t count) const {
    return V::LoadTwoPartial(first + at, second + at, count);
  }
};
template <class V>
struct RowPair<V, U4> {
  const U4* first;
  const U4* second;
  typename V::U4PairTable table;

  // Zeros of segment i; either pointer may be null.
  void SetZero(const uint8_t* zeros, const uint8_t* more, int64_t i) {
    table = V::TwoTablesOf(zeros == nullptr ? kU4DefaultZero : zeros[i],
                           more == nullptr ? kU4DefaultZero : more[i]);
  }
  typename V::Pairs Load(int64_t at) const {
    return V::LoadTwo(first + at / 2, second + at / 2, table);
  }
  typename V::Pairs Partial(int64_t at, int64_t count) const {
    return V::LoadTwoPartial(first + at / 2, second + at / 2, count, table);
  }
};

// Pairs of e4m3 rows, two K steps at a time, widened by table lookup.
template <class V, int64_t kN, class T>
struct LookupRowPairs {
  const RowPair<V, T> (&w)[kN];
  typename V::ByteTables tables;

  typename V::TwoPairs LoadBoth(int64_t j, int64_t at) const {
    return V::LoadTwoTwice(w[j].first + at, w[j].second + at, tables);
  }
};

// The 2·kN rows of a tile in place. Rows behind the panel repeat its last row.
template <class V, int64_t kN, class T>
struct BInPlace {
  RowPair<V, T> w[kN];
  const float* scale[2 * kN];
  const uint8_t* zero[2 * kN];

  BInPlace(const Panel<T>& panel, const W8Scales<V>& scales, int64_t n, int64_t scales_at) {
    for (int64_t j = 0; j < 2 * kN; ++j) {
      const int64_t row = Min(n + j, panel.rows - 1);
      (j % 2 == 0 ? w[j / 2].first : w[j / 2].second) = panel.w + row * panel.stride;
      scale[j] = scales.Row(scales_at + row);
      zero[j] = scales.zero[scales_at + row];
    }
  }
  void StartSegment(int64_t segment, int64_t, int64_t) {
    for (int64_t j = 0; j < kN; ++j) w[j].SetZero(zero[2 * j], zero[2 * j + 1], segment);
  }
  typename V::Pairs Load(int64_t j, int64_t at) const { return w[j].Load(at); }
  typename V::Pairs Partial(int64_t j, int64_t at, int64_t count) const {
    return w[j].Partial(at, count);
  }
  // Calls f with an object that loads columns [begin, end).
  template <int64_t kSums, class F>
  [[gnu::always_inline]] void WithOperands(int64_t begin, int64_t end, const F& f) const {
    if constexpr (kIsF8<T> && kSums <= kMaxSumsWithTables)
      if ((end - begin) % (2 * kRowStep<V>) == 0)
        return f(LookupRowPairs<V, kN, T>{w, V::ByteTablesOf(w[0].first)});
    f(*this);
  }
};

// Pairs of e4m3 rows whose values are all normal.
template <class V, int64_t kN>
struct NormalRowPairs {
  const RowPair<V, F8> (&w)[kN];
  typename V::NormalBits bits;

  typename V::TwoPairs LoadBoth(int64_t j, int64_t at) const {
    return V::LoadTwoNormals(w[j].first + at, w[j].second + at, bits);
  }
};

// BInPlace that checks each e4m3 segment and widens it faster if all its values are normal.
template <class V, int64_t kN, class T>
struct CheckedBInPlace : BInPlace<V, kN, T> {
  using BInPlace<V, kN, T>::BInPlace;
};
template <class V, int64_t kN>
struct CheckedBInPlace<V, kN, F8> : BInPlace<V, kN, F8> {
  using BInPlace<V, kN, F8>::BInPlace;
  using BInPlace<V, kN, F8>::w;

  template <int64_t kSums, class F>
  [[gnu::always_inline]] void WithOperands(int64_t begin, int64_t end, const F& f) const {
    if (AreNormal(begin, end)) return f(NormalRowPairs<V, kN>{w, V::NormalBitsOfF8()});
    BInPlace<V, kN, F8>::template WithOperands<kSums>(begin, end, f);
  }

 private:
  bool AreNormal(int64_t begin, int64_t end) const {
    constexpr int64_t kNumbers = 64;
    if ((end - begin) % kNumbers != 0) return false;
    typename V::Outliers outliers = V::NoOutliers();
    for (int64_t j = 0; j < kN; ++j)
      for (int64_t at = begin; at < end; at += kNumbers) {
        outliers = V::AddOutliers(outliers, w[j].first + at);
        outliers = V::AddOutliers(outliers, w[j].second + at);
      }
    return !V::AnyOutlier(outliers);
  }
};

// The rows of a tile as PackWidenedRows packs them.
template <class V>
struct BWidened {
  const BF16* next;  // segment
  const BF16* column0 = nullptr;
  const float* const* scale;

  void StartSegment(int64_t, int64_t begin, int64_t end) {
    column0 = next - begin * kStride;
    next += RoundUp(end - begin, kRowStep<V>) * kStride;
  }
  typename V::Pairs Load(int64_t j, int64_t at) const {
    return V::LoadPairs(column0 + at * kStride + j * V::kPairElements);
  }
  typename V::Pairs Partial(int64_t j, int64_t at, int64_t) const { return Load(j, at); }
  template <int64_t kSums, class F>
  [[gnu::always_inline]] void WithOperands(int64_t, int64_t, const F& f) const {
    f(*this);
  }

 private:
  static constexpr int64_t kStride = kWidenedStep<V> / kRowStep<V>;
};

}  // namespace
}  // namespace latte::cpu
