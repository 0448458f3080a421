// Rows of narrow weights as the tiles of gemm_bf16_w8-inl.h take them, in pairs of bf16: two rows
// of W in a register, where they lie or widened in scratch.
//
// A source of rows has: StartSegment(segment, begin, end); WithOperands<sums>(begin, end, f), which
// calls f with what loads these columns beside as many registers of sums; and `scale`, of each row
// of W. What loads columns has Load and Partial for one step, or LoadBoth for two.
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

// Registers of sums that leave some for what e4m3 is looked up in.
constexpr int64_t kSumsBesideTables = 12;
constexpr int64_t kWideTwos = 2;  // registers of two rows of W in a tile in scratch
template <class V>
constexpr int64_t kHalfStep = V::kPairElements / 2;  // columns of a step
template <class V>
using NarrowScales = BlockScales<PairMath<V>>;

// Steps of a block that fit into scratch: those of segments that end with a step, and some that
// do not.
constexpr int64_t kWideSteps = 144;
// Elements of a step of a tile, and of its rows: an odd number of cache lines.
template <class V>
constexpr int64_t kWideStep = kWideTwos* V::kPairElements;
template <class V>
constexpr int64_t kWideRows = kWideSteps* kWideStep<V> + V::kPairElements;

// Two rows of weights where they lie; positions count values.
template <class V, class T>
struct TwoRows {
  const T* first;
  const T* second;

  void SetZero(const uint8_t*, const uint8_t*, int64_t) {}
  typename V::Pairs Load(int64_t at) const { return V::LoadTwo(first + at, second + at); }
  typename V::Pairs Partial(int64_t at, int64_t count) const {
    return V::LoadTwoPartial(first + at, second + at, count);
  }
};
template <class V>
struct TwoRows<V, U4> {
  const U4* first;
  const U4* second;
  typename V::U4PairTable table;

  // Of segment i; either may be null.
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

// Twos of rows of e4m3, two steps at once.
template <class V, int64_t kN, class T>
struct LookedUpRows {
  const TwoRows<V, T> (&w)[kN];
  typename V::ByteTables tables;

  typename V::TwoPairs LoadBoth(int64_t j, int64_t at) const {
    return V::LoadTwoTwice(w[j].first + at, w[j].second + at, tables);
  }
};

// 2·kN rows of a panel where they lie, as a tile takes them; one over the edge repeats the last.
template <class V, int64_t kN, class T>
struct RowsInPlace {
  TwoRows<V, T> w[kN];
  const float* scale[2 * kN];
  const uint8_t* zero[2 * kN];

  RowsInPlace(const Panel<T>& panel, const NarrowScales<V>& scales, int64_t n, int64_t scales_at) {
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
  // Calls f with what loads columns [begin, end).
  template <int64_t kSums, class F>
  [[gnu::always_inline]] void WithOperands(int64_t begin, int64_t end, const F& f) const {
    if constexpr (kIsF8<T> && kSums <= kSumsBesideTables)
      if ((end - begin) % (2 * kHalfStep<V>) == 0)
        return f(LookedUpRows<V, kN, T>{w, V::ByteTablesOf(w[0].first)});
    f(*this);
  }
};

// Twos of rows of e4m3 whose numbers are normal.
template <class V, int64_t kN>
struct NormalRows {
  const TwoRows<V, F8> (&w)[kN];
  typename V::NormalBits bits;

  typename V::TwoPairs LoadBoth(int64_t j, int64_t at) const {
    return V::LoadTwoNormals(w[j].first + at, w[j].second + at, bits);
  }
};

// The same as RowsInPlace, of e4m3 in segments of normal numbers where they are that.
template <class V, int64_t kN, class T>
struct CheckedRows : RowsInPlace<V, kN, T> {
  using RowsInPlace<V, kN, T>::RowsInPlace;
};
template <class V, int64_t kN>
struct CheckedRows<V, kN, F8> : RowsInPlace<V, kN, F8> {
  using RowsInPlace<V, kN, F8>::RowsInPlace;
  using RowsInPlace<V, kN, F8>::w;

  template <int64_t kSums, class F>
  [[gnu::always_inline]] void WithOperands(int64_t begin, int64_t end, const F& f) const {
    if (AreNormal(begin, end)) return f(NormalRows<V, kN>{w, V::NormalBitsOfF8()});
    RowsInPlace<V, kN, F8>::template WithOperands<kSums>(begin, end, f);
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

// The same as WidenRows leaves them.
template <class V>
struct RowsInScratch {
  const BF16* next;  // segment
  const BF16* column0 = nullptr;
  const float* const* scale;

  void StartSegment(int64_t, int64_t begin, int64_t end) {
    column0 = next - begin * kStride;
    next += RoundUp(end - begin, kHalfStep<V>) * kStride;
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
  static constexpr int64_t kStride = kWideStep<V> / kHalfStep<V>;
};

}  // namespace
}  // namespace latte::cpu
