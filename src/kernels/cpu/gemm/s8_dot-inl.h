// What products of rows of W of a byte or less with rows of x of 8 bits share, whatever their
// vectors: which product it is, scales of W, and how the integer sum of a run becomes part of a
// result.
//
// An Order says how values lie in vectors: V, T, what is added to each weight so that it becomes an
// operand (kZero, beside no zeros of its own), and kRowBytes, bytes of a chunk of a row of W. What
// it adds to an integer sum, kZero or the zero times the sum of x, is taken off by its `start`.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/int8_scales-inl.h"
#include "src/kernels/cpu/common/prefetch_sequential-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Which product: the weights, the runs of a chunk, whether rows of W have one scale each, and
// whether runs have zeros of their own.
template <class OrderType, int64_t kRunCount, bool kOne, bool kWithZeros>
struct ByteKind {
  using Order = OrderType;
  using V = typename Order::V;
  using T = typename Order::T;
  static constexpr int64_t kRuns = kRunCount;
  static constexpr int64_t kRun = kByteChunk / kRuns;
  static constexpr bool kOneScale = kOne;
  static constexpr bool kZeros = kWithZeros;
};

// Calls f with the kind of a task: x is i8, W is i8 or u4 with scales.
template <class Order, class F>
void WithRuns(const LinearTask& t, const F& f) {
  constexpr bool kLong = kValuesPer<typename Order::T> == 1;
  const auto with = [&](auto zeros) {
    constexpr bool kZeros = decltype(zeros)::value != 0;
    if (HasOneScale(t)) return f(ByteKind<Order, 1, true, kZeros>{});
    if constexpr (!kLong)
      if (!HasLongRuns(t.grid)) return f(ByteKind<Order, kChunkRuns, false, kZeros>{});
    f(ByteKind<Order, 1, false, kZeros>{});
  };
  if constexpr (!kLong)
    if (t.grid.zero != nullptr) return with(Int<1>{});
  with(Int<0>{});
}
template <template <class, class> class Order, class V, class F>
void WithByteKind(const LinearTask& t, const F& f) {
  if (t.w_type == Element::kI8) return WithRuns<Order<V, I8>>(t, f);
  WithRuns<Order<V, U4>>(t, f);
}

// Rows of W whose scales and zeros are prepared together: [run][row].
template <int64_t kRows, int64_t kMaxRuns>
struct ByteRunScales {
  alignas(64) float scale[kMaxRuns * kRows];
  alignas(64) int32_t zero[kMaxRuns * kRows];  // less than 0
};

template <class Kind, int64_t kRows, int64_t kMaxRuns>
void PrepareScales(const LinearTask& t, int64_t n, int64_t rows, int64_t k_begin, int64_t k,
                   ByteRunScales<kRows, kMaxRuns>& to) {
  PrepareRunScales<typename Kind::V, Kind::kRun, kRows>(t.grid, n, rows, k_begin,
                                                        Kind::kOneScale ? 1 : k, to.scale);
  if constexpr (Kind::kZeros) {
    const ScaleGrid& g = t.grid;
    for (int64_t row = 0; row < kRows; ++row) {
      const uint8_t* const zero = g.zero + GridRow(g, n + Min(row, rows - 1)) * g.zero_stride;
      for (int64_t at = 0; at < k; at += Kind::kRun)
        to.zero[at / Kind::kRun * kRows + row] = -zero[GridColumn(g, k_begin + at)];
    }
  }
}

// total + a chunk: sum(run) of a vector of rows of W and one row of x, whose `start` and `x` these
// are; scale and zero: of the chunk's runs, kRows from one to the next.
template <class Kind, int64_t kRows, class Sum>
inline typename Kind::V::Vec AddChunk(const Sum& sum, const int32_t* start, float x,
                                      const float* scale, const int32_t* zero,
                                      typename Kind::V::Vec total) {
  using V = typename Kind::V;
  return AddChunkOf<V, Kind::kOneScale, Kind::kRuns>(
      [&](int64_t run) {
        if constexpr (Kind::Order::kZero == 0) return V::ToFloat(sum(run));
        typename V::Ints from = V::SetInt(start[run]);
        if constexpr (Kind::kZeros) from = V::MulInts(from, V::LoadBytes(zero + run * kRows));
        return V::ToFloat(V::AddInts(sum(run), from));
      },
      [&](int64_t run) { return V::Load(scale + run * kRows); }, V::Set1(x), total);
}

// Of a vector of rows of W from n on, `rows` of them there, and one row of x: sums where a pass
// over K begins, and what it ends with.
template <class V>
inline typename V::Vec FirstTotal(bool first, const float* y, int64_t rows) {
  return first ? V::Zero() : LoadNext<V>(y, rows);
}
template <class Kind>
inline void StoreTotal(const LinearTask& t, bool last, const float* scale, int64_t n, int64_t rows,
                       typename Kind::V::Vec total, float* y) {
  using V = typename Kind::V;
  if (last && Kind::kOneScale) total = V::Mul(total, V::Load(scale));
  if (last && t.bias != nullptr) total = V::Add(total, LoadNext<V>(t.bias + n, rows));
  StoreNext<V>(y, total, rows);
}

// The scales of rows [n, +rows) and columns [k, +columns) of W, or of the next task's first rows:
// with one for 32 weights they are a fifth of what is read.
inline LinesInOrder ScaleLines(const LinearTask& task, int64_t n, int64_t rows, int64_t k,
                               int64_t columns, int64_t steps) {
  const LinearTask* const t = n < task.n ? &task : task.next;
  if (t == nullptr || t->grid.scale == nullptr || t->grid.rows != 1) return {};
  const ScaleGrid& g = t->grid;
  const int64_t size = g.type == Element::kF32 ? 4 : 2;
  const int64_t row = n < task.n ? n : 0;
  const int64_t begin = (g.column_begin + k) / g.columns;
  const int64_t end = (g.column_begin + Min(k + columns, t->k) - 1) / g.columns + 1;
  return LinesInOrder(
      static_cast<const char*>(g.scale) + ((g.row_begin + row) * g.stride + begin) * size,
      g.stride * size, (end - begin) * size, Min(rows, t->n - row), task.ask_into, steps);
}

}  // namespace
}  // namespace latte::cpu
