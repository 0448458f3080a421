// Few rows of x for gemm_s8_avx2-inl.h: rows of W are multiplied where they lie, one after the
// other, each over all of a pass, while x stays in the L1.
//
// Work      a chunk's products are added in eight lanes; lanes are summed for eight vectors
//           together, and the sums of eight rows of W transposed, so that lanes are rows of W.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch_sequential-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/s8_even_odd-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kMaxHalvesFew = 4;           // rows of x
constexpr int64_t kFewHalvesBytes = 16 << 10;  // of x in a pass
constexpr int64_t kFewHalvesRuns = 512;        // of W in a pass
constexpr int64_t kEightSums = kEight * kEight;

struct HalvesFewScratch {
  HalvesInputs x;
  ByteRunScales<kEight, kFewHalvesRuns> scales;
  // Of groups of eight sums: [row of x][row of W][sum].
  alignas(32) int32_t sums[kFewHalvesRuns / kEight * kEightSums];
};

// Chunks whose sums make one vector, and where in it that of a run is.
template <class Kind>
constexpr int64_t kHalvesGroup = kEight / Kind::kRuns;
template <class Kind>
constexpr int64_t PlaceOf(int64_t chunk, int64_t run) {
  return Kind::kRuns == 1 ? chunk : run % 2 * 4 + chunk * 2 + run / 2;
}

// Sums of the chunks of a group from `first` on, of a row of W and kM rows of x; `values` of it are
// there. Lines ahead are asked for. To `to`, [row of x][8 rows of W][sum].
template <class Kind, int64_t kM, bool kWhole>
inline void MultiplyHalvesGroup(const typename Kind::T* w, const HalvesInputs& x, int64_t first,
                                int64_t values, const TurnAhead& ahead, int32_t* to) {
  using Order = typename Kind::Order;
  using V = typename Kind::V;
  using Ints = typename V::Ints;
  // Vectors of a chunk: one, or one of each unit, which is two runs.
  constexpr int64_t kVectors = Kind::kRuns == 1 ? 1 : Order::kUnits;
  constexpr int64_t kPerVector = Order::kUnits / kVectors;
  constexpr int64_t kCount = kHalvesGroup<Kind> * kVectors;
  Ints fours[kM][kCount / 4];
  const int8_t* const codes = x.codes + x.At(0, first) * kInputBytes<Order>;
  const int64_t x_stride = x.row_step * kInputBytes<Order>;
  // Unrolled, all of a group's lines would be asked for first.
#pragma GCC unroll 1
  for (int64_t four = 0; four < kCount / 4; ++four) {
    Ints lanes[kM][4];
#pragma GCC unroll 4
    for (int64_t j = 0; j < 4; ++j) {
      for (int64_t i = 0; i < kM; ++i) lanes[i][j] = V::ZeroInts();
      const int64_t begin = (four * 4 + j) * kPerVector;  // unit of the group
      if (!kWhole && begin * kUnitValues<Order> >= values) continue;
      for (int64_t at = 0; at < kPerVector * kHalfBytes; at += 64)
        ahead.Ask(w + begin * kHalfBytes + at);
#pragma GCC unroll 4
      for (int64_t u = begin; u < begin + kPerVector; ++u) {
        const Ints unit = LoadUnit<Order, kWhole>(w, u * kHalfBytes, values);
        const Ints even = Order::Even(unit);
        const Ints odd = Order::Odd(unit);
        for (int64_t i = 0; i < kM; ++i) {
          const int8_t* const xi = codes + i * x_stride + u * kUnitBytes;
          lanes[i][j] = Order::AddDot(lanes[i][j], even, xi);
          lanes[i][j] = Order::AddDot(lanes[i][j], odd, xi + kHalfBytes);
        }
      }
      for (int64_t i = 0; i < kM; ++i) lanes[i][j] = Order::Finish(lanes[i][j]);
    }
    for (int64_t i = 0; i < kM; ++i) fours[i][four] = V::SumFours(lanes[i]);
  }
  for (int64_t i = 0; i < kM; ++i)
    V::StoreBytes(to + i * kEightSums, Kind::kRuns == 1
                                           ? V::AddHalves(fours[i][0], fours[i][kCount / 4 - 1])
                                           : fours[i][0]);
}

// total + a group's sums of eight rows of W and row i of x.
template <class Kind>
typename Kind::V::Vec AddHalvesGroup(const HalvesInputs& x, int64_t i, int64_t first,
                                     const HalvesFewScratch& s, const int32_t* sums,
                                     typename Kind::V::Vec total) {
  using V = typename Kind::V;
  constexpr int64_t kGroup = kHalvesGroup<Kind>;
  typename V::Ints runs[kEight];
#pragma GCC unroll 8
  for (int64_t row = 0; row < kEight; ++row) runs[row] = V::LoadBytes(sums + row * kEight);
  V::Transpose(runs);
  const int64_t count = Min(kGroup, x.chunks() - first);
#pragma GCC unroll 8
  for (int64_t c = 0; c < kGroup; ++c) {
    if (c == count) break;
    const int64_t at = x.At(i, first + c);
    const int64_t row = (first + c) * Kind::kRuns * kEight;
    total = AddChunk<Kind, kEight>(
        [&](int64_t run) { return runs[PlaceOf<Kind>(c, run)]; }, x.start + at * Kind::kRuns,
        x.scale[at], s.scales.scale + (Kind::kOneScale ? 0 : row), s.scales.zero + row, total);
  }
  return total;
}

// Rows [n, +rows) of W, eight at most, and kM rows of x, all there are. Lines of the next ones'
// scales are asked for.
template <class Kind, int64_t kM>
void MultiplyHalvesFew(const LinearTask& t, const typename Kind::T* w, const HalvesInputs& x,
                       int64_t n, int64_t rows, LinesInOrder& scale_lines, HalvesFewScratch& s) {
  using V = typename Kind::V;
  using T = typename Kind::T;
  using Order = typename Kind::Order;
  constexpr int64_t kGroup = kHalvesGroup<Kind>;
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  const auto sums_of = [&s](int64_t group) { return s.sums + group / kGroup * kM * kEightSums; };
  const bool whole = x.begin == 0 && x.k == t.k;
  for (int64_t row = 0; row < rows; ++row) {
    scale_lines.Ask();
    const T* const from = w + (n + row) * t.w_stride + x.begin / kValuesPer<T>;
    for (int64_t span = 0; span < x.chunks(); span += kEight) {
      const TurnAhead ahead = whole ? TurnAheadOf<T>(t, n + row, span * kByteChunk)
                                    : TurnAhead{t.w_stride * kSize, t.ask_into};
      for (int64_t group = span; group < Min(span + kEight, x.chunks()); group += kGroup) {
        const T* const w_group = from + group * Order::kRowBytes;
        const int64_t values = x.k - group * kByteChunk;
        int32_t* const to = sums_of(group) + row * kEight;
        if (values >= kGroup * kByteChunk)
          MultiplyHalvesGroup<Kind, kM, true>(w_group, x, group, values, ahead, to);
        else
          MultiplyHalvesGroup<Kind, kM, false>(w_group, x, group, values, ahead, to);
      }
    }
  }
  const bool last = x.begin + x.k == t.k;
  for (int64_t i = 0; i < kM; ++i) {
    float* const y = t.y + i * t.y_stride + n;
    typename V::Vec total = FirstTotal<V>(x.begin == 0, y, rows);
    for (int64_t group = 0; group < x.chunks(); group += kGroup)
      total = AddHalvesGroup<Kind>(x, i, group, s, sums_of(group) + i * kEightSums, total);
    StoreTotal<Kind>(t, last, s.scales.scale, n, rows, total, y);
  }
}

template <class Kind>
[[gnu::noinline]] void MultiplyByHalvesFew(const LinearTask& t, const typename Kind::T* w) {
  auto& s = InScratch<HalvesFewScratch>(t.scratch);
  HalvesInputs& x = s.x;
  x.rows = t.m;
  x.chunk_step = 1;
  constexpr int64_t kLongest = kFewHalvesRuns / Kind::kRuns;
  const int64_t columns =
      Min(kFewHalvesBytes / kInputBytes<typename Kind::Order> / t.m, kLongest) * kByteChunk;
  for (x.begin = 0; x.begin < t.k; x.begin += x.k) {
    x.k = Min(columns, t.k - x.begin);
    x.row_step = x.chunks();
    PrepareHalves<Kind>(t, x);
    for (int64_t n = 0; n < t.n; n += kEight) {
      const int64_t rows = Min(kEight, t.n - n);
      PrepareScales<Kind>(t, n, rows, x.begin, x.k, s.scales);
      LinesInOrder scale_lines = ScaleLines(t, n + rows, kEight, x.begin, x.k, rows);
      WithConstant<kMaxHalvesFew>(t.m, [&](auto count) {
        MultiplyHalvesFew<Kind, decltype(count)::value>(t, w, x, n, rows, scale_lines, s);
      });
    }
  }
}

}  // namespace
}  // namespace latte::cpu
