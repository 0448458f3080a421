// C = A·B with 4-bit B (sum over N), micro-kernel M×64×16, vpdpbusd, any M in groups of 4,
// AVX512_VNNI.
//
// Packing   A times the scales of the rows of B becomes fixed point of 22 bits per segment of
//           columns, cut into three signed bytes (digits). Four rows of B interleave bytewise in
//           registers:
//
//             B   rows n … n + 3   │ a b c …     interleaved   │ a(n) a(n+1) a(n+2) a(n+3) │ b(n) …
//                                                A             │ a digit of these rows, the same in
//                                                                all lanes of 32 columns
//
// Blocking  16 rows of B × 64 columns × up to 4 rows of A × 3 digits; s32 sums stay in the L1.
// Used      for the absorbed W_UK of 4-bit models, on machines with AVX512_VNNI.
// Prefetch  B in memory order, then B of the next product of the batch.
// Rounding  A·scale to 2^−22 of the largest product of its segment; the sum of each block
//           is rounded twice to f32.
// Order     Exact within a block of 256 rows of B; blocks in order.
// Limits    columns and segments as kU4Sizes (tables/gemm_t.cc); scratch 75 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/fixed_point-inl.h"
#include "src/kernels/cpu/common/prefetch_weights-inl.h"
#include "src/kernels/cpu/common/scales-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm_t/gemm_t_f32-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kDigits = 3;  // bytes of a fixed-point number
constexpr int kFixedBits = 22;
constexpr int64_t kUnitColumns = 32;      // columns of one scale
constexpr int64_t kUnits = 16;            // of a pass: 512 columns
constexpr int64_t kFixedRows = 256;       // rows of B of a block
constexpr int64_t kInterleavedRows = 16;  // rows of B of a tile
constexpr int64_t kInterleavedColumns = 64;
constexpr int64_t kInterleavedQuads = kInterleavedRows / 4;
constexpr int64_t kW4PrefetchBytes = 16 << 10;  // prefetch distance in bytes of B

constexpr int64_t kNibbles = 2;  // of a byte: even column, odd column
constexpr int64_t kChunkColumns = kNibbles * kInterleavedColumns;
constexpr int64_t kChunkBytes = kChunkColumns / kValuesPer<U4>;
constexpr int64_t kChunkUnits = kChunkColumns / kUnitColumns;

// A row of A times the scales of a block of rows of B, per unit of columns.
struct FixedRow {
  alignas(
      64) int32_t digits[kFixedRows / 4][kDigits][kUnits];  // [four rows][digit, low first][unit]
  alignas(64) int32_t zeros[kDigits][kUnits];               // Σ digit · zero point
  alignas(64) float scale[kUnits];                          // of the low digit
};

// A block of B: rows [n, +rows), columns [column, +columns).
struct WeightBlock {
  int64_t n, rows;
  int64_t column, columns;
};

// Calls f(row of scales, begin, end) for rows of the block that share scales.
template <class F>
void ForEachScaleRow(const ScaleGrid& grid, const WeightBlock& block, const F& f) {
  const int64_t first = grid.row_begin + block.n;
  int64_t row = first / grid.rows;
  int64_t end = (row + 1) * grid.rows - first;
  for (int64_t begin = 0; begin < block.rows; begin = end, end += grid.rows)
    f(row++, begin, Min(end, block.rows));
}

// products[i] = x[i] times the scales of row i, one lane per segment; returns the largest magnitude
// of each lane.
template <class V, class T>
typename V::Vec ScaledInputs(const ScaleGrid& grid, const WeightBlock& block, const T* scale,
                             int64_t segments, const float* x,
                             float (&products)[kFixedRows][kUnits]) {
  const T* const column = scale + (grid.column_begin + block.column) / grid.columns;
  typename V::Vec largest = V::Zero();
  ForEachScaleRow(grid, block, [&](int64_t row, int64_t begin, int64_t end) {
    const typename V::Vec of_row = V::LoadPartial(column + row * grid.stride, segments);
    for (int64_t i = begin; i < end; ++i) {
      const typename V::Vec product = V::Mul(V::Set1(x[i]), of_row);
      largest = V::MaxMagnitude(largest, product);
      V::Store(products[i], product);
    }
  });
  return largest;
}

// The segment of each unit of columns.
inline void UnitSegments(const Segments& s, int32_t (&to)[kUnits]) {
  for (int64_t unit = 0; unit < kUnits; ++unit) {
    const int64_t column = unit * kUnitColumns;
    const int64_t segment = column < s.first ? 0 : 1 + (column - s.first) / s.columns;
    to[unit] = static_cast<int32_t>(Min(segment, s.count - 1));
  }
}

// Zero points of rows [i, +4) of a block: a byte per row, a lane per segment.
template <class V>
typename V::Ints ZerosOf(const ScaleGrid& grid, const WeightBlock& block, int64_t i,
                         int64_t segments) {
  typename V::Ints zeros[4];
  for (int64_t j = 0; j < 4; ++j) {
    const int64_t row = (grid.row_begin + block.n + Min(i + j, block.rows - 1)) / grid.rows;
    zeros[j] = V::WidenBytes(
        grid.zero + row * grid.zero_stride + (grid.column_begin + block.column) / grid.columns,
        segments);
  }
  return V::PackFour(zeros);
}

// Converts x [block.rows] to fixed point; prefetches meanwhile if `ahead` is not null.
template <class V>
[[gnu::noinline]] void SetFixedRow(const GemmTTask& t, const WeightBlock& block, const float* x,
                                   SequentialPrefetch* ahead, FixedRow& to) {
  using Ints = typename V::Ints;
  const Segments segments = SegmentsOf(t.grid, block.column, block.columns);
  alignas(64) float products[kFixedRows][kUnits];
  alignas(64) float largest[kUnits];
  WithType(t.grid.scale, t.grid.type, [&](const auto* scale) {
    V::Store(largest, ScaledInputs<V>(t.grid, block, scale, segments.count, x, products));
  });
  alignas(64) float from_float[kUnits], to_float[kUnits];
  for (int64_t i = 0; i < kUnits; ++i) {
    const FixedPoint point = FixedPointOf<kFixedBits>(largest[i]);
    from_float[i] = point.from_float;
    to_float[i] = point.to_float;
  }
  alignas(64) int32_t index[kUnits];
  UnitSegments(segments, index);
  const Ints unit_segments = V::LoadBytes(index);
  const typename V::Vec by = V::Load(from_float);
  // Adding 128 to each byte and flipping its sign bit yields signed digits with their borrows.
  const Ints carry = V::SetInt(0x808080);
  Ints zero = V::SetByte(static_cast<int8_t>(kU4DefaultZero));
  Ints zeros[kDigits] = {V::ZeroInts(), V::ZeroInts(), V::ZeroInts()};
  const int64_t rows = RoundUp(block.rows, kInterleavedRows);
  SequentialPrefetch::Run lines;
  for (int64_t i = 0; i < rows; i += 4) {
    if (ahead != nullptr && i % kInterleavedRows == 0) lines = ahead->Next();
    for (int64_t j = 0; j < 4; ++j) lines.PrefetchNext();
    Ints digits[4];
    for (int64_t j = 0; j < 4; ++j) {
      const bool inside = i + j < block.rows;
      const Ints fixed = inside ? V::ToInts(V::Mul(V::Load(products[i + j]), by)) : V::ZeroInts();
      digits[j] = V::XorInts(V::AddInts(fixed, carry), carry);
    }
    V::InterleaveFourRows(digits);
    V::TransposeIn128(digits);
    if (t.grid.zero != nullptr) zero = ZerosOf<V>(t.grid, block, i, segments.count);
    for (int64_t digit = 0; digit < kDigits; ++digit) {
      zeros[digit] = V::DotBytes(zeros[digit], zero, digits[digit]);
      V::StoreBytes(to.digits[i / 4][digit], V::PermuteInts(unit_segments, digits[digit]));
    }
  }
  for (int64_t digit = 0; digit < kDigits; ++digit)
    V::StoreBytes(to.zeros[digit], V::PermuteInts(unit_segments, zeros[digit]));
  V::StoreBytes(to.scale, V::PermuteInts(unit_segments, V::LoadBytes(to_float)));
}

// Sums of a chunk of columns: [nibble][row of A][digit][register][lane], columns in the order of
// InterleaveFourRows.
template <int64_t kM>
constexpr int64_t kNibbleSums = kM* kDigits* kInterleavedColumns;

// The 64 even or odd columns of 128 as bytes.
template <class V>
typename V::Ints NibblesOf(const char* p, int64_t nibble) {
  const typename V::Ints bytes = V::LoadBytes(p);
  return nibble == 0 ? V::LowNibbles(bytes) : V::HighNibbles(bytes);
}

// sums (+)= 16 rows of B from `w` times the digits of kM rows of A. units: unit of each lane. Not
// inlined: the interleaved rows need all registers.
template <class V, int64_t kM>
[[gnu::noinline]] void AddInterleaved(const char* w, int64_t stride, const FixedRow* x,
                                      int64_t four, const int32_t* units, bool first,
                                      SequentialPrefetch::Run ahead, int32_t* sums) {
  SequentialPrefetch::Run lines = ahead;
  using Ints = typename V::Ints;
  const Ints unit_of_lane = V::LoadBytes(units);
  for (int64_t nibble = 0; nibble < kNibbles; ++nibble) {
    Ints interleaved[kInterleavedQuads][4];
    const char* row = w;
#pragma GCC unroll 4
    for (int64_t i = 0; i < kInterleavedQuads; ++i) {
#pragma GCC unroll 4
      for (int64_t j = 0; j < 4; ++j, row += stride) {
        if (j % kNibbles == nibble) lines.PrefetchNext();
        interleaved[i][j] = NibblesOf<V>(row, nibble);
      }
      V::InterleaveFourRows(interleaved[i]);
    }
    for (int64_t m = 0; m < kM; ++m)
      for (int64_t digit = 0; digit < kDigits; ++digit, sums += kInterleavedColumns) {
        Ints sum[4];
#pragma GCC unroll 4
        for (int64_t j = 0; j < 4; ++j)
          sum[j] = first ? V::ZeroInts() : V::LoadBytes(sums + j * V::kLanes);
#pragma GCC unroll 4
        for (int64_t i = 0; i < kInterleavedQuads; ++i) {
          const Ints xi = V::PermuteInts(unit_of_lane, V::LoadBytes(x[m].digits[four + i][digit]));
#pragma GCC unroll 4
          for (int64_t j = 0; j < 4; ++j) sum[j] = V::DotBytes(sum[j], interleaved[i][j], xi);
        }
#pragma GCC unroll 4
        for (int64_t j = 0; j < 4; ++j) V::StoreBytes(sums + j * V::kLanes, sum[j]);
      }
  }
}

// The floats that sums of a half mean, in the order of columns.
template <class V>
void FloatsOf(const int32_t* sums, const FixedRow& x, typename V::Ints unit_of_lane,
              typename V::Vec (&to)[4]) {
  const auto of_units = [&](const void* units) {
    return V::PermuteInts(unit_of_lane, V::LoadBytes(units));
  };
  const typename V::Vec scale = V::ToFloatBits(of_units(x.scale));
  for (int64_t j = 0; j < 4; ++j) {
    typename V::Vec digits[kDigits];
    for (int64_t digit = 0; digit < kDigits; ++digit)
      digits[digit] =
          V::ToFloat(V::SubInts(V::LoadBytes(sums + digit * kInterleavedColumns + j * V::kLanes),
                                of_units(x.zeros[digit])));
    const typename V::Vec byte = V::Set1(256);
    to[j] = V::Mul(V::Fma(V::Fma(digits[2], byte, digits[1]), byte, digits[0]), scale);
  }
  V::Transpose128(to);
}

// y (+)= the sums of a chunk for row m of x.
template <class V, int64_t kM>
void StoreChunk(const int32_t* sums, const FixedRow& x, typename V::Ints unit_of_lane, int64_t m,
                bool first, float* y) {
  const auto store = [first](float* to, typename V::Vec v) {
    V::Store(to, first ? v : V::Add(V::Load(to), v));
  };
  typename V::Vec floats[kNibbles][4];
  for (int64_t nibble = 0; nibble < kNibbles; ++nibble)
    FloatsOf<V>(sums + nibble * kNibbleSums<kM> + m * kDigits * kInterleavedColumns, x,
                unit_of_lane, floats[nibble]);
  for (int64_t j = 0; j < 4; ++j) {
    store(y + 2 * j * V::kLanes, V::InterleaveFloatsLow(floats[0][j], floats[1][j]));
    store(y + (2 * j + 1) * V::kLanes, V::InterleaveFloatsHigh(floats[0][j], floats[1][j]));
  }
}

template <int64_t kM>
struct FixedScratch {
  FixedRow x[kM];
  alignas(64) int32_t sums[kUnits * kUnitColumns * kM * kDigits];
};

// Rows [m, m + kM) of A times a block of B.
template <class V, int64_t kM>
[[gnu::noinline]] void MultiplyBlock(const GemmTTask& t, const U4* w, int64_t m,
                                     const WeightBlock& block, SequentialPrefetch& weights,
                                     SequentialPrefetch& next_scales) {
  constexpr int64_t kChunkSums = kNibbles * kNibbleSums<kM>;
  auto& s = ScratchAs<FixedScratch<kM>>(t.scratch);
  FixedRow* const x = s.x;
  int32_t* const sums = s.sums;
  alignas(64) float scratch[kFixedRows];
  for (int64_t i = 0; i < kM; ++i)
    SetFixedRow<V>(t, block, FloatInput<V>(t, m + i, block.n, block.rows, scratch),
                   m + i == 0 ? &weights : nullptr, x[i]);

  const int64_t chunks = block.columns / kChunkColumns;
  alignas(64) int32_t units[kUnits / kChunkUnits][kUnits];
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    for (int64_t lane = 0; lane < kUnits; ++lane)
      units[chunk][lane] = static_cast<int32_t>(chunk * kChunkUnits + lane * kChunkUnits / kUnits);

  const auto* const first =
      reinterpret_cast<const char*>(w + block.n * t.w_stride + block.column / kValuesPer<U4>);
  for (int64_t n = 0; n < block.rows; n += kInterleavedRows) {
    const char* rows = first + n * t.w_stride;
    int64_t rows_stride = t.w_stride;
    alignas(64) char padded[kInterleavedRows * kUnits * kUnitColumns / kValuesPer<U4>];
    if (const int64_t left = block.rows - n; left < kInterleavedRows) {
      rows_stride = chunks * kChunkBytes;
      for (int64_t i = 0; i < kInterleavedRows; ++i)
        __builtin_memcpy(padded + i * rows_stride, rows + Min(i, left - 1) * t.w_stride,
                         static_cast<uint64_t>(rows_stride));
      rows = padded;
    }
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      SequentialPrefetch::Run lines;
      if (m == 0) {
        next_scales.PrefetchNext();
        lines = weights.Next();
      }
      AddInterleaved<V, kM>(rows + chunk * kChunkBytes, rows_stride, x, n / 4, units[chunk], n == 0,
                            lines, sums + chunk * kChunkSums);
    }
  }
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    for (int64_t i = 0; i < kM; ++i)
      StoreChunk<V, kM>(sums + chunk * kChunkSums, x[i], V::LoadBytes(units[chunk]), i,
                        block.n == 0,
                        t.y + (m + i) * t.y_stride + block.column + chunk * kChunkColumns);
}

// Requires: t.w is U4 with scales; t.batches is 1.
template <class V>
void GemmTW4Vnni(const GemmTTask& t) {
  const auto* const w = static_cast<const U4*>(t.w);
  for (int64_t column = 0; column < t.k; column += kUnits * kUnitColumns) {
    const int64_t columns = Min(kUnits * kUnitColumns, t.k - column);
    const int64_t tiles = (t.n + kInterleavedRows - 1) / kInterleavedRows;
    const int64_t chunks = columns / kChunkColumns;
    SequentialPrefetch weights = ProductPrefetchOf(
        t, w, column, columns, RowsAhead<U4>(t, columns, kW4PrefetchBytes, kInterleavedRows),
        tiles * (chunks + 1));  // SetFixedRow prefetches too
    SequentialPrefetch next_scales = ProductScalePrefetchOf(t, column, columns, tiles * chunks);
    for (int64_t n = 0; n < t.n; n += kFixedRows) {
      const WeightBlock block{n, Min(kFixedRows, t.n - n), column, columns};
      ForEachRun<kMaxSmallM>(t.m, [&](int64_t m, auto count) {
        MultiplyBlock<V, decltype(count)::value>(t, w, m, block, weights, next_scales);
      });
    }
  }
}

}  // namespace
}  // namespace latte::cpu
