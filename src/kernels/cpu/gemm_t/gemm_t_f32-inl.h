// C = A·B (B [N, K] read in place, sum over N), any types, in f32: FMA, AVX2 and AVX-512. Two
// kernels: GemmTF32, any M, and GemmTF32SmallM, M ≤ 4 ("small M").
//
// Packing   None for small M. Else 8- and 4-bit B (and 16-bit B for M > 60) are widened and
//           scaled into scratch, 64 or 256 rows of a run of columns at a time.
// Blocking  Small M, bf16 and int8 B on AVX-512: 16 rows of B × 64 columns, sums in registers, if
//           the scale groups allow it. Else four whole rows of B, sums in C (in the L1); with many
//           DRAM streams up to eight products of a batch side by side. Any M: MR × 4 registers of
//           columns walk down the rows of B.
// Prefetch  B in memory order, then the next product; with several products two lines of each in
//           turn.
// Order     One fused multiply-add per row of B, in order.
// Limits    N > 0; scratch 170 KiB.
#pragma once

#include <cstdint>
#include <type_traits>

#include "src/kernels/cpu/common/multiply-inl.h"
#include "src/kernels/cpu/common/prefetch_weights-inl.h"
#include "src/kernels/cpu/common/scales-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kColumnsRows = 256;  // rows of B of a panel
// The same for widened panels.
constexpr int64_t kScaledRows = 64;
// Largest M for which widening 16-bit B in every tile is faster than widening a panel once.
constexpr int64_t kMinWidenM = 60;
// Largest B that is prefetched as a whole before use; it fits into an L2.
constexpr int64_t kPrefetchAllBytes = 256 << 10;
// Columns of a pass for small M; each may have its own scale.
constexpr int64_t kMaxSmallMK = 1024;

// Rows [row_begin, +rows) and columns [column, +columns) of B.
template <class T>
struct ColumnPanel {
  const T* w;
  int64_t stride;
  int64_t row_begin, rows;
  int64_t column, columns;
};

// Columns [begin, +count) of row m of A, which multiply `count` rows of B.
template <class V>
const float* FloatInput(const GemmTTask& t, int64_t m, int64_t begin, int64_t count,
                        float* scratch) {
  const int64_t at = m * t.x_stride + begin;
  if (t.x_type == Element::kF32) return static_cast<const float*>(t.x) + at;
  WithType(t.x, t.x_type, [&](const auto* x) { WidenRow<V>(x + at, count, scratch); });
  return scratch;
}

// C[:, column:+columns] (+)= A times the panel, kN registers wide. Prefetches once per tile of rows
// of A.
template <class V, int64_t kN, class W>
void OuterPanel(const GemmTTask& t, const ColumnPanel<W>& panel, SequentialPrefetch& ahead) {
  static constexpr float kOnes[] = {1, 1, 1, 1, 1, 1};
  static_assert(sizeof(kOnes) / sizeof(float) >= V::kTileRows);
  constexpr int64_t kStride = ScratchStride(kColumnsRows);
  alignas(64) float scratch[V::kTileRows * kStride];
  ForEachRun<V::kTileRows>(t.m, [&](int64_t m, auto rows) {
    constexpr int64_t kM = decltype(rows)::value;
    ahead.PrefetchNext();
    const float* x = nullptr;
    for (int64_t i = kM; i-- > 0;)
      x = FloatInput<V>(t, m + i, panel.row_begin, panel.rows, scratch + i * kStride);
    OuterTile<V, kM, kN>(Outer<W>{x, t.x_type == Element::kF32 ? t.x_stride : kStride, panel.w,
                                  panel.stride, panel.rows, panel.row_begin == 0 ? nullptr : kOnes,
                                  t.y + m * t.y_stride + panel.column, t.y_stride},
                         panel.columns);
  });
}

// to = a row of the panel times its scales, by segments of its columns.
template <class V, class T>
void ScaleRow(const Weights<FloatMath<V>, T>& w, const Segments& segments, const float* scale,
              const uint8_t* zero, float* to) {
  ForEachSegment(segments, [=](int64_t segment, int64_t begin, int64_t end) {
    Weights<FloatMath<V>, T> from = w;
    from.SetZero(zero, segment);
    const typename V::Vec s = V::Set1(scale[segment]);
    int64_t at = begin;
    for (; at + V::kLanes <= end; at += V::kLanes) V::Store(to + at, V::Mul(from.Load(at), s));
    if (at < end) V::StorePartial(to + at, V::Mul(from.Partial(at, end - at), s), end - at);
  });
}

// Requires: panel.rows ≤ kScaledRows.
template <class V, int64_t kN, class T>
void OuterScaledPanel(const GemmTTask& t, const ColumnPanel<T>& panel, SequentialPrefetch& ahead) {
  constexpr int64_t kStride = kN * V::kLanes;
  alignas(64) float wide[kScaledRows * kStride];
  PanelScales<kScaledRows, kStride + V::kLanes> scales;
  static constexpr float kOnes[kStride + 1] = {1};
  const Segments segments = SegmentsOf(t.grid, panel.column, panel.columns);
  const bool scaled = t.grid.scale != nullptr;
  if (scaled)
    LoadScales<V>(t.grid, panel.row_begin, panel.rows, panel.column, segments.count, 0, scales);
  for (int64_t n = 0; n < panel.rows; ++n) {
    Weights<FloatMath<V>, T> w;
    w.p = panel.w + n * panel.stride;
    ScaleRow<V>(w, segments, scaled ? scales.Row(n) : kOnes, scaled ? scales.zero[n] : nullptr,
                wide + n * kStride);
  }
  OuterPanel<V, kN>(
      t,
      ColumnPanel<float>{wide, kStride, panel.row_begin, panel.rows, panel.column, panel.columns},
      ahead);
}

template <int64_t kStride>
struct ColumnsScratch {
  alignas(64) float wide[kColumnsRows * kStride];
};

template <class V, int64_t kN, class T>
[[gnu::noinline]] void OuterWidenedPanel(const GemmTTask& t, const ColumnPanel<T>& panel,
                                         SequentialPrefetch& ahead) {
  constexpr int64_t kStride = kN * V::kLanes;
  float* const wide = ScratchAs<ColumnsScratch<kStride>>(t.scratch).wide;
  for (int64_t n = 0; n < panel.rows; ++n)
    WidenRow<V>(panel.w + n * panel.stride, panel.columns, wide + n * kStride);
  OuterPanel<V, kN>(
      t,
      ColumnPanel<float>{wide, kStride, panel.row_begin, panel.rows, panel.column, panel.columns},
      ahead);
}

template <class V, int64_t kN, class T>
void OuterRows(const GemmTTask& t, const ColumnPanel<T>& panel, SequentialPrefetch& ahead) {
  if constexpr (sizeof(T) == 1)
    OuterScaledPanel<V, kN>(t, panel, ahead);
  else if (sizeof(T) == 2 && t.m > kMinWidenM)
    OuterWidenedPanel<V, kN>(t, panel, ahead);
  else
    OuterPanel<V, kN>(t, panel, ahead);
}

// Registers per run of columns.
constexpr int64_t kOuterVectors = 4;

template <class V, class T>
void LargeM(const GemmTTask& t, const T* w) {
  constexpr int64_t kRows = sizeof(T) == 1 ? kScaledRows : kColumnsRows;
  // A run of columns reads a line of each row. Prefetching all of B first keeps memory order.
  const int64_t row_bytes = t.k / kValuesPer<T> * static_cast<int64_t>(sizeof(T));
  for (int64_t n = 0; n < t.n && t.n * row_bytes <= kPrefetchAllBytes; ++n)
    for (int64_t at = 0; at < row_bytes; at += 64)
      Prefetch(w + n * t.w_stride, at, t.tuning->prefetch_level);
  SequentialPrefetch ahead;
  if (t.next_w != nullptr) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    const int64_t runs = (t.k + kOuterVectors * V::kLanes - 1) / (kOuterVectors * V::kLanes) *
                         ((t.n + kRows - 1) / kRows) * ((t.m + V::kTileRows - 1) / V::kTileRows);
    ahead = SequentialPrefetch(t.next_w, t.w_stride * kSize, row_bytes, t.n,
                               t.tuning->prefetch_level, runs);
  }
  ForEachColumnRun<V, kOuterVectors>(t.k, [&](int64_t column, auto vectors, int64_t columns) {
    for (int64_t n = 0; n < t.n; n += kRows)
      OuterRows<V, decltype(vectors)::value>(
          t,
          ColumnPanel<T>{w + n * t.w_stride + column / kValuesPer<T>, t.w_stride, n,
                         Min(kRows, t.n - n), column, columns},
          ahead);
  });
}

// Rows of B per pass over the sums in C.
constexpr int64_t kRowsAtOnce = 4;

// Scales and zero points of a row of B, by segments of its columns.
struct RowScales {
  alignas(64) float scale[kMaxSmallMK];
  const uint8_t* zero;
};

// One product of a task that reads several products in parallel streams.
template <class T>
struct WeightStream {
  // One per row: if the first row shares the scales of the row before it, three more are needed.
  static constexpr int64_t kSlots = sizeof(T) == 1 ? kRowsAtOnce : 1;

  const T* w;  // the next row
  GemmTTask t;
  int64_t scaled_until;  // rows before this one use `slot`
  int64_t slot;
  RowScales* slots;  // [kSlots]
  const RowScales* rows[kRowsAtOnce];
};

template <class T>
constexpr int64_t kTwoLines = 128 * kValuesPer<T> / static_cast<int64_t>(sizeof(T));  // values

// C[i,:] (+)= Σ over kRows rows of B, in order: x[row][i]·w; `first`: C is not read. Calls
// prefetch() before every two lines of a row.
template <class V, int64_t kM, int64_t kRows, class T, class Prefetch>
void AddRows(const WeightStream<T>& s, const Segments& segments, const float (&x)[kRows][kM],
             bool first, const Prefetch& prefetch) {
  Weights<FloatMath<V>, T> w[kRows];
  typename V::Vec xi[kRows][kM];
  for (int64_t row = 0; row < kRows; ++row) {
    w[row].p = s.w + row * s.t.w_stride;
    for (int64_t i = 0; i < kM; ++i) xi[row][i] = V::Set1(x[row][i]);
  }
  ForEachSegment(segments, [&](int64_t segment, int64_t begin, int64_t end) {
    typename V::Vec scale[kRows];
    for (int64_t row = 0; row < kRows; ++row) {
      scale[row] = V::Set1(s.rows[row]->scale[segment]);
      w[row].SetZero(s.rows[row]->zero, segment);
    }
    const auto add = [&](auto wide, int64_t at, auto load, auto store) {
      typename V::Vec sums[kM];
      for (int64_t i = 0; i < kM; ++i)
        sums[i] = first ? V::Zero() : load(s.t.y + i * s.t.y_stride + at);
      for (int64_t row = 0; row < kRows; ++row) {
        typename V::Vec value = wide(w[row]);
        if constexpr (sizeof(T) == 1) value = V::Mul(value, scale[row]);
        for (int64_t i = 0; i < kM; ++i) sums[i] = V::Fma(xi[row][i], value, sums[i]);
      }
      for (int64_t i = 0; i < kM; ++i) store(s.t.y + i * s.t.y_stride + at, sums[i]);
    };
    int64_t at = begin;
    for (; at + V::kLanes <= end; at += V::kLanes) {
      if (at % kTwoLines<T> == 0) prefetch();
      add([at](const auto& row) { return row.Load(at); }, at,
          [](const float* y) { return V::Load(y); },
          [](float* y, typename V::Vec v) { V::Store(y, v); });
    }
    const int64_t rest = end - at;
    if (rest > 0)
      add([at, rest](const auto& row) { return row.Partial(at, rest); }, at,
          [rest](const float* y) { return V::LoadPartial(y, rest); },
          [rest](float* y, typename V::Vec v) { V::StorePartial(y, v, rest); });
  });
}

// Loads the scales of row n, row i of the pass, unless they equal the scales of the row before.
template <class V, class T>
void LoadRowScales(WeightStream<T>& s, int64_t n, int64_t i, int64_t segments) {
  const ScaleGrid& grid = s.t.grid;
  if (grid.scale != nullptr && n >= s.scaled_until) {
    const int64_t row = (grid.row_begin + n) / grid.rows;
    const int64_t column = grid.column_begin / grid.columns;
    s.scaled_until = (row + 1) * grid.rows - grid.row_begin;
    s.slot = (s.slot + 1) % WeightStream<T>::kSlots;
    WithType(grid.scale, grid.type, [&](const auto* scale) {
      WidenRow<V>(scale + row * grid.stride + column, segments, s.slots[s.slot].scale);
    });
    s.slots[s.slot].zero =
        grid.zero == nullptr ? nullptr : grid.zero + row * grid.zero_stride + column;
  }
  s.rows[i] = &s.slots[s.slot];
}

template <int64_t kM, class T>
struct SmallMScratch {
  static constexpr int64_t kStride = ScratchStride(kColumnsRows);
  RowScales slots[kMaxBatchInFlight][WeightStream<T>::kSlots];
  alignas(64) float x[kMaxBatchInFlight * kM * kStride];
};

// Requires: t.k ≤ kMaxSmallMK.
template <class V, int64_t kM, class T>
[[gnu::noinline]] void SmallMMultiStream(const GemmTTask& t, const T* w) {
  auto& scratch = ScratchAs<SmallMScratch<kM, T>>(t.scratch);
  WeightStream<T> streams[kMaxBatchInFlight];
  for (int64_t b = 0; b < t.batches; ++b) {
    WeightStream<T>& s = streams[b];
    s.t = t;
    s.t.y += b * t.y_batch;
    s.t.grid.row_begin += b * t.grid_batch;
    s.w = reinterpret_cast<const T*>(reinterpret_cast<const char*>(w) + b * t.w_batch);
    s.scaled_until = 0;
    s.slot = 0;
    s.slots = scratch.slots[b];
    s.slots[0].scale[0] = 1;
    s.slots[0].zero = nullptr;
  }
  constexpr int64_t kStride = SmallMScratch<kM, T>::kStride;
  const float* x[kMaxBatchInFlight][kM];
  const Segments segments = SegmentsOf(t.grid, 0, t.k);
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  // One product: the rows behind the first ones, in memory order.
  SequentialPrefetch in_order(
      w + kRowsAtOnce * t.w_stride, t.w_stride * kSize, t.k / kValuesPer<T> * kSize,
      Max(t.n - kRowsAtOnce, 0), t.tuning->prefetch_level,
      (t.n + kRowsAtOnce - 1) / kRowsAtOnce * ((t.k + kTwoLines<T> - 1) / kTwoLines<T>));
  const auto add = [&](int64_t n, auto rows) {
    constexpr int64_t kRows = decltype(rows)::value;
    const int64_t in_block = n % kColumnsRows;
    for (int64_t b = 0; b < t.batches && in_block == 0; ++b)
      for (int64_t i = 0; i < kM; ++i)
        x[b][i] = FloatInput<V>(t, i, b * t.x_batch + n, Min(kColumnsRows, t.n - n),
                                scratch.x + (b * kM + i) * kStride);
    BurstPrefetch in_turn{.row = reinterpret_cast<const char*>(streams[0].w + kRows * t.w_stride),
                          .stride = t.w_batch,
                          .bytes = ((kRows - 1) * t.w_stride + segments.k / kValuesPer<T>)*kSize,
                          .rows = t.batches,
                          .per_step = 2 * kRows};
    const auto prefetch = [&] {
      if (t.batches == 1)
        in_order.PrefetchNext();
      else
        in_turn.PrefetchNext();
    };
    for (int64_t b = 0; b < t.batches; ++b) {
      WeightStream<T>& s = streams[b];
      for (int64_t row = 0; row < kRows; ++row) LoadRowScales<V>(s, n + row, row, segments.count);
      float xn[kRows][kM];
      for (int64_t row = 0; row < kRows; ++row)
        for (int64_t i = 0; i < kM; ++i) xn[row][i] = x[b][i][in_block + row];
      AddRows<V, kM, kRows>(s, segments, xn, n == 0, prefetch);
      s.w += kRows * t.w_stride;
    }
  };
  ForEachRun<kRowsAtOnce>(t.n, add);
}

// Rows and columns (four registers) of B of a tile whose sums stay in registers.
constexpr int64_t kRegisterRows = 16;
constexpr int64_t kRegisterVectors = 4;
template <class V>
constexpr int64_t kRegisterColumns = kRegisterVectors* V::kLanes;
constexpr int64_t kPrefetchBytes = 16 << 10;  // prefetch distance in bytes of B

// C[i,:] (+)= Σ over `rows` rows of B, in order: x[row][i]·(w·scale of row); `first`: C is not
// read. Not inlined: g++ 12 would keep addresses in vector registers.
template <class V, int64_t kM, class T>
[[gnu::noinline]] void AddRowsInRegisters(const T* w, int64_t stride, int64_t rows,
                                          const float* scale, int64_t scale_stride, const float* x,
                                          bool first, SequentialPrefetch::Run ahead, float* y,
                                          int64_t y_stride) {
  SequentialPrefetch::Run lines = ahead;
  typename V::Vec sums[kM][kRegisterVectors];
#pragma GCC unroll 4
  for (int64_t i = 0; i < kM; ++i)
#pragma GCC unroll 4
    for (int64_t j = 0; j < kRegisterVectors; ++j)
      sums[i][j] = first ? V::Zero() : V::Load(y + i * y_stride + j * V::kLanes);
  for (int64_t row = 0; row < rows; ++row, w += stride, scale += scale_stride, x += kM) {
#pragma GCC unroll 4
    for (uint64_t line = 0; line < sizeof(T); ++line) lines.PrefetchNext();
    typename V::Vec value[kRegisterVectors];
#pragma GCC unroll 4
    for (int64_t j = 0; j < kRegisterVectors; ++j) {
      value[j] = V::Load(w + j * V::kLanes);
      if constexpr (sizeof(T) == 1) value[j] = V::Mul(value[j], V::Set1(*scale));
    }
#pragma GCC unroll 4
    for (int64_t i = 0; i < kM; ++i) {
      const typename V::Vec xi = V::Set1(x[i]);
#pragma GCC unroll 4
      for (int64_t j = 0; j < kRegisterVectors; ++j) sums[i][j] = V::Fma(xi, value[j], sums[i][j]);
    }
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < kM; ++i)
#pragma GCC unroll 4
    for (int64_t j = 0; j < kRegisterVectors; ++j)
      V::Store(y + i * y_stride + j * V::kLanes, sums[i][j]);
}

// Scales of rows [n, +rows), [row][segment].
template <class V>
void LoadRowScalesOf(const ScaleGrid& grid, int64_t n, int64_t rows, int64_t segments, float* to) {
  const int64_t column = grid.column_begin / grid.columns;
  const int64_t first = grid.row_begin + n;
  WithType(grid.scale, grid.type, [&](const auto* scale) {
    if (grid.rows == 1 && grid.stride == segments)  // contiguous
      return WidenRow<V>(scale + first * grid.stride + column, rows * segments, to);
    for (int64_t i = 0; i < rows; ++i)
      WidenRow<V>(scale + (first + i) / grid.rows * grid.stride + column, segments,
                  to + i * segments);
  });
}

// One product with sums in registers. Requires: FitsInRegisters, t.k ≤ kMaxSmallMK.
template <class V, int64_t kM, class T>
void SmallMInRegisters(const GemmTTask& t, const T* w) {
  const Segments segments = SegmentsOf(t.grid, 0, t.k);
  alignas(64) float scale[kMaxSmallMK / kRegisterColumns<V> * kRegisterRows];
  const int64_t steps = (t.n + kRegisterRows - 1) / kRegisterRows * (t.k / kRegisterColumns<V>);
  SequentialPrefetch weights =
      ProductPrefetchOf(t, w, 0, t.k, RowsAhead<T>(t, t.k, kPrefetchBytes, kRegisterRows), steps);
  SequentialPrefetch next_scales = ProductScalePrefetchOf(t, 0, t.k, steps);
  for (int64_t n = 0; n < t.n; n += kRegisterRows) {
    const int64_t rows = Min(kRegisterRows, t.n - n);
    float x[kRegisterRows * kM];
    for (int64_t i = 0; i < kM; ++i) {
      alignas(64) float scratch[kRegisterRows];
      const float* const xi = FloatInput<V>(t, i, n, rows, scratch);
      for (int64_t row = 0; row < rows; ++row) x[row * kM + i] = xi[row];
    }
    if constexpr (sizeof(T) == 1) LoadRowScalesOf<V>(t.grid, n, rows, segments.count, scale);
    ForEachSegment(segments, [&](int64_t segment, int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at += kRegisterColumns<V>) {
        next_scales.PrefetchNext();
        AddRowsInRegisters<V, kM>(w + n * t.w_stride + at, t.w_stride, rows, scale + segment,
                                  segments.count, x, n == 0, weights.Next(), t.y + at, t.y_stride);
      }
    });
  }
}

// Whether an instruction set has enough registers to keep the sums of small M in them.
template <class V>
constexpr bool kKeepsSums = V::kLanes >= 16;
// Columns of a tile of small M.
template <class V>
constexpr int64_t kSmallMColumns = kKeepsSums<V> ? kRegisterColumns<V> : V::kLanes;

// Whether the sums of a task can stay in registers over 16 rows of B.
template <class V, class T>
bool FitsInRegisters(const GemmTTask& t) {
  if (t.batches > 1 || (t.grid.scale == nullptr) != (sizeof(T) > 1)) return false;
  const Segments s = SegmentsOf(t.grid, 0, t.k);
  return t.k % kRegisterColumns<V> == 0 && s.first % kRegisterColumns<V> == 0 &&
         (s.count == 1 || s.columns % kRegisterColumns<V> == 0);
}

template <class V, class T>
void SmallM(const GemmTTask& task, const T* w) {
  GemmTTask t = task;
  for (int64_t begin = 0; begin < task.k; begin += kMaxSmallMK) {
    t.k = Min(kMaxSmallMK, task.k - begin);
    t.y = task.y + begin;
    t.grid.column_begin = task.grid.column_begin + begin;
    if (task.next_w != nullptr)
      t.next_w = static_cast<const T*>(task.next_w) + begin / kValuesPer<T>;
    const T* const from = w + begin / kValuesPer<T>;
    WithConstant<kMaxSmallM>(task.m, [&](auto rows) {
      constexpr int64_t kM = decltype(rows)::value;
      if constexpr ((std::is_same_v<T, I8> || std::is_same_v<T, BF16>)&&kKeepsSums<V>)
        if (FitsInRegisters<V, T>(t)) return SmallMInRegisters<V, kM>(t, from);
      SmallMMultiStream<V, kM>(t, from);
    });
  }
}

// Requires: t.batches is 1.
template <class V>
void GemmTF32(const GemmTTask& t) {
  WithWeightType(t.w, t.w_type, [&](const auto* w) { LargeM<V>(t, w); });
}

// Requires: M ≤ kMaxSmallM.
template <class V>
void GemmTF32SmallM(const GemmTTask& t) {
  WithWeightType(t.w, t.w_type, [&](const auto* w) { SmallM<V>(t, w); });
}

}  // namespace
}  // namespace latte::cpu
