// f32 register tiles that kernels share, and helpers that cut loops into tiles.
//
// DotTile    sums[M, N] = x[M, K] · w[N, K]ᵀ: one vector of partial sums per output in steps of
//            kLanes along K, reduced at the end. N is a multiple of 4.
// OuterTile  y[M, N] = factor·y + x[M, K] · w[K, N]: one accumulator per vector of N, one broadcast
//            of x per row and step of K.
// Order      Every output has one accumulator and adds its terms in one order, so a result does not
//            depend on the tile that computes it.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

template <int64_t kValue>
struct Int {
  static constexpr int64_t value = kValue;
};

constexpr int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }
constexpr int64_t RoundUp(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

// Row stride in floats, for rows of `width`: an odd number of cache lines, so that equal columns of
// neighbouring rows spread over all sets of the L1.
constexpr int64_t ScratchStride(int64_t width) { return ((width + 15) / 16 * 16) | 16; }

// Calls f(Int<count>) for 1 ≤ count ≤ kMax: turns a run-time tile size into a compile-time one, so
// that loops unroll.
template <int64_t kMax, class F>
void WithConstant(int64_t count, const F& f) {
  if constexpr (kMax > 1) {
    if (count < kMax) return WithConstant<kMax - 1>(count, f);
  }
  f(Int<kMax>{});
}

// Divides `count` rows into the fewest ranges of at most kMax rows, of sizes that differ by at most
// one: f(begin, Int<size>).
template <int64_t kMax, class F>
void ForEachRun(int64_t count, const F& f) {
  int64_t begin = 0;
  for (int64_t runs = (count + kMax - 1) / kMax; runs > 0; --runs) {
    const int64_t size = (count - begin + runs - 1) / runs;
    WithConstant<kMax>(size, [&](auto rows) { f(begin, rows); });
    begin += size;
  }
}

// Divides columns into ranges of kWide vectors, then of one vector, the last perhaps partial:
// f(begin, Int<vectors>, columns).
template <class V, int64_t kWide, class F>
void ForEachColumnRun(int64_t columns, const F& f) {
  int64_t begin = 0;
  for (; begin + kWide * V::kLanes <= columns; begin += kWide * V::kLanes)
    f(begin, Int<kWide>{}, kWide * V::kLanes);
  for (; begin < columns; begin += V::kLanes) f(begin, Int<1>{}, Min(V::kLanes, columns - begin));
}

// The next vector of a row with `rest` > 0 elements left.
template <class V, class T>
typename V::Vec LoadNext(const T* p, int64_t rest) {
  return rest >= V::kLanes ? V::Load(p) : V::LoadPartial(p, rest);
}
template <class V>
void StoreNext(float* p, typename V::Vec v, int64_t rest) {
  if (rest >= V::kLanes)
    V::Store(p, v);
  else
    V::StorePartial(p, v, rest);
}

template <class V, class T>
void WidenRow(const T* from, int64_t count, float* to) {
  int64_t i = 0;
  for (; i + V::kLanes <= count; i += V::kLanes) V::Store(to + i, V::Load(from + i));
  if (i < count) V::StorePartial(to + i, V::LoadPartial(from + i, count - i), count - i);
}

// sums[i][j] = x[i,:]·w[j]: one vector of partial sums in steps of kLanes, reduced by the tree of
// StoreSum4.
template <class V, int64_t kM, int64_t kN, class W>
inline void DotTile(const float* x, int64_t x_stride, const W* const (&w)[kN], int64_t k,
                    float (&sums)[kM][kN]) {
  static_assert(kN % 4 == 0);
  typename V::Vec acc[kM][kN];
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) acc[i][j] = V::Zero();

  int64_t at = 0;
  for (; at + V::kLanes <= k; at += V::kLanes) {
    typename V::Vec wide[kN];
    for (int64_t j = 0; j < kN; ++j) wide[j] = V::Load(w[j] + at);
    for (int64_t i = 0; i < kM; ++i) {
      const typename V::Vec xi = V::Load(x + i * x_stride + at);
      for (int64_t j = 0; j < kN; ++j) acc[i][j] = V::Fma(xi, wide[j], acc[i][j]);
    }
  }
  if (at < k) {
    typename V::Vec wide[kN];
    for (int64_t j = 0; j < kN; ++j) wide[j] = V::LoadPartial(w[j] + at, k - at);
    for (int64_t i = 0; i < kM; ++i) {
      const typename V::Vec xi = V::LoadPartial(x + i * x_stride + at, k - at);
      for (int64_t j = 0; j < kN; ++j) acc[i][j] = V::Fma(xi, wide[j], acc[i][j]);
    }
  }
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; j += 4)
      V::StoreSum4(sums[i] + j, acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]);
}

// y (+)= sums, then the bias. The first of several blocks of K does not read y. The tests stay
// outside of the loops: with one inside, g++ 12 emits masked loads from a null bias, and a
// suppressed fault costs hundreds of cycles.
inline void StoreDots(const float* sums, const float* bias, int64_t count, bool first, float* y) {
  if (first)
    for (int64_t j = 0; j < count; ++j) y[j] = sums[j];
  else
    for (int64_t j = 0; j < count; ++j) y[j] += sums[j];
  if (bias != nullptr)
    for (int64_t j = 0; j < count; ++j) y[j] += bias[j];
}

// The same for up to four sums. Four is the common case and becomes vector code.
inline void StoreFour(const float (&sums)[4], const float* bias, int64_t count, bool first,
                      float* y) {
  if (count == 4)
    StoreDots(sums, bias, 4, first, y);
  else
    StoreDots(sums, bias, count, first, y);
}

constexpr int64_t kMaxResidentBlocks = 16;

// Reads the rows of B one after the other, each from end to end: one sequential stream per core
// reads DRAM faster than several. total(n, b, to) computes the vectors of sums of row n of B with
// all kM rows of A in K block b; finish(n, count, b, i, totals) gets the vectors of row i of A for
// rows [n, n + count) of B, count ≤ 4.
template <class V, int64_t kM, class Total, class Finish>
inline void ForEachRowSequential(int64_t rows, int64_t blocks, const Total& total,
                                 const Finish& finish) {
  alignas(64) float totals[kMaxResidentBlocks][kM][4][V::kLanes] = {};
  for (int64_t n = 0; n < rows; n += 4) {
    const int64_t count = Min(4, rows - n);
    for (int64_t j = 0; j < count; ++j)
      for (int64_t b = 0; b < blocks; ++b) {
        typename V::Vec sums[kM];
        total(n + j, b, sums);
        for (int64_t i = 0; i < kM; ++i) V::Store(totals[b][i][j], sums[i]);
      }
    for (int64_t b = 0; b < blocks; ++b)
      for (int64_t i = 0; i < kM; ++i) {
        typename V::Vec four[4];
        for (int64_t j = 0; j < 4; ++j) four[j] = V::Load(totals[b][i][j]);
        finish(n, count, b, i, four);
      }
  }
}

// y[i,:] = factor[i]·y[i,:] + Σ_n x[i,n]·w[n,:]
template <class W>
struct Outer {
  const float* x;
  int64_t x_stride;
  const W* w;
  int64_t w_stride;
  int64_t n;
  const float* factor;  // null: y starts from zero and is not read
  float* y;
  int64_t y_stride;

  // The part that starts at `row` and `column`.
  Outer At(int64_t row, int64_t column) const {
    Outer part = *this;
    part.x += row * x_stride;
    part.w += column;
    if (factor != nullptr) part.factor += row;
    part.y += row * y_stride + column;
    return part;
  }
};

// kM rows of y, kN vectors wide; a tile of one vector may be partial. One fused multiply-add per
// row of w, in index order.
template <class V, int64_t kM, int64_t kN, class W>
inline void OuterTile(const Outer<W>& o, int64_t columns) {
  const auto load = [columns](const auto* p) {
    if constexpr (kN == 1) return V::LoadPartial(p, columns);
    return V::Load(p);
  };
  typename V::Vec acc[kM][kN];
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j)
      acc[i][j] = o.factor == nullptr
                      ? V::Zero()
                      : V::Mul(load(o.y + i * o.y_stride + j * V::kLanes), V::Set1(o.factor[i]));

  const float* x = o.x;
  const W* w = o.w;
  for (int64_t n = 0; n < o.n; ++n, ++x, w += o.w_stride) {
    typename V::Vec wide[kN];
    for (int64_t j = 0; j < kN; ++j) wide[j] = load(w + j * V::kLanes);
    for (int64_t i = 0; i < kM; ++i) {
      const typename V::Vec xi = V::Set1(x[i * o.x_stride]);
      for (int64_t j = 0; j < kN; ++j) acc[i][j] = V::Fma(xi, wide[j], acc[i][j]);
    }
  }
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) {
      float* y = o.y + i * o.y_stride + j * V::kLanes;
      if constexpr (kN == 1)
        V::StorePartial(y, acc[i][j], columns);
      else
        V::Store(y, acc[i][j]);
    }
}

}  // namespace
}  // namespace latte::cpu
