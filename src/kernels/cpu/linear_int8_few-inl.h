// Up to 8 rows of x for linear_int8-inl.h: rows of W are multiplied where they lie.
//
// Work      dot products of chunks, whose lanes are summed for 16 chunks (of four runs: four)
//           together; those of 16 rows of W are transposed, so that lanes are rows of W, and added.
//           Rows of x that stay in the L1 take rows of W one after the other, each over all of K,
//           and lines a page ahead are asked for; more go through K beside 16 rows of W, and lines
//           of the next 16 rows are.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/byte_rows-inl.h"
#include "src/kernels/cpu/rows_in_order-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/tiles-inl.h"

namespace latte::cpu {
namespace {

constexpr int64_t kFewTile = 4;  // rows of x beside four chunks of a row of W
constexpr int64_t kMaxFewRows = 2 * kFewTile;
constexpr int64_t kFewColumns = 1 << 14;  // of a pass
// Values of x with which rows of W pass one after the other.
constexpr int64_t kTurnValues = 16 << 10;
constexpr int64_t kMaxFewRuns = kFewColumns / kShortRun;
constexpr int64_t kGroupSums = kSumLanes * kSumLanes;  // of 16 rows of W and one of x

// Chunks whose sums make one vector.
template <class Kind>
constexpr int64_t kGroupChunks = kSumLanes / Kind::kRuns;

using FewScales = ByteRunScales<kSumLanes, kMaxFewRuns>;

struct FewScratch {
  FewScales scales;
  // Of groups: [row of x][row of W][run][chunk].
  alignas(64) int32_t sums[kMaxFewRuns / kSumLanes * kGroupSums];
};

// Sums of the chunks of a group from `first` on, of a row of W and rows [m, +kM) of x; `values` of
// it are there. With every four chunks kLines lines from `ahead` on are asked for, which moves on.
// To `to`, [row of x][16 rows of W][run][chunk].
template <class Kind, int64_t kM, int64_t kLines, bool kWhole>
inline void MultiplyGroup(const typename Kind::T* w, const ByteInputs& x, int64_t m, int64_t first,
                          int64_t values, const char*& ahead, int32_t* to) {
  using V = typename Kind::V;
  constexpr int64_t kGroup = kGroupChunks<Kind>;
  typename V::Ints quads[kM][kGroup / 4];
  const int8_t* const codes = x.codes + x.At(m, first) * kByteChunk;
  const int64_t x_stride = x.row_step * kByteChunk;
  // Unrolled, all of a group's lines would be asked for first.
#pragma GCC unroll 1
  for (int64_t four = 0; four < kGroup; four += 4) {
    typename V::Ints lanes[kM][4];
#pragma GCC unroll 4
    for (int64_t c = 0; c < 4; ++c) {
      for (int64_t i = c * kLines / 4; i < (c + 1) * kLines / 4; ++i) PrefetchNear(ahead, 64 * i);
      const int64_t left = values - (four + c) * kByteChunk;
      if (!kWhole && left <= 0) {
        for (int64_t i = 0; i < kM; ++i) lanes[i][c] = V::ZeroInts();
        continue;
      }
      const auto* const from = w + (four + c) * Kind::Order::kRowBytes;
      const bool whole = kWhole || left >= kByteChunk;
      const typename V::Ints w0 =
          whole ? Kind::Order::template Load<0>(from) : Kind::Order::template Load<0>(from, left);
      const typename V::Ints w1 =
          whole ? Kind::Order::template Load<1>(from) : Kind::Order::template Load<1>(from, left);
      for (int64_t i = 0; i < kM; ++i) {
        const int8_t* const xi = codes + i * x_stride + (four + c) * kByteChunk;
        lanes[i][c] = V::DotBytes(V::DotBytes(V::ZeroInts(), w0, V::LoadBytes(xi)), w1,
                                  V::LoadBytes(xi + 64));
      }
    }
    ahead += 64 * kLines;
    for (int64_t i = 0; i < kM; ++i) quads[i][four / 4] = V::SumQuads(lanes[i]);
  }
  for (int64_t i = 0; i < kM; ++i)
    V::StoreBytes(to + i * kGroupSums, SumOfRuns<V, Kind::kRuns>(quads[i]));
}

// total + a group's sums of 16 rows of W and row i of x.
template <class Kind>
typename Kind::V::Vec AddGroup(const ByteInputs& x, int64_t i, int64_t first,
                               const FewScales& scales, const int32_t* sums,
                               typename Kind::V::Vec total) {
  using V = typename Kind::V;
  constexpr int64_t kGroup = kGroupChunks<Kind>;
  typename V::Ints runs[kSumLanes];
  for (int64_t row = 0; row < kSumLanes; ++row) runs[row] = V::LoadBytes(sums + row * kSumLanes);
  V::Transpose(runs);
  const int64_t count = Min(kGroup, x.chunks() - first);
#pragma GCC unroll 16
  for (int64_t c = 0; c < kGroup; ++c) {
    if (c == count) break;
    const int64_t at = x.At(i, first + c);
    const int64_t row = (first + c) * Kind::kRuns * kSumLanes;
    total = AddChunk<Kind, kSumLanes>(
        [&](int64_t run) { return runs[run * kGroup + c]; }, x.start + at * Kind::kRuns,
        x.scale[at], scales.scale + (Kind::kOneScale ? 0 : row), scales.zero + row, total);
  }
  return total;
}

// Lines of W that a span of 16 chunks reads, of four chunks.
template <class Kind>
constexpr int64_t kFourLines = 4 * Kind::Order::kRowBytes / 64;

// Sums of a span of 16 chunks, fewer at the end of the pass, of row n of W and all rows of x. The
// lines from `ahead` on are asked for, as many as are read. kM: rows of the first tile of x.
template <class Kind, int64_t kM>
inline void MultiplySpan(const LinearTask& t, const typename Kind::T* w, const ByteInputs& x,
                         int64_t n, int64_t span, const char* ahead, int32_t* to) {
  constexpr int64_t kGroup = kGroupChunks<Kind>;
  const auto* const from =
      w + n * t.w_stride + x.begin / kValuesPer<typename Kind::T> + span * Kind::Order::kRowBytes;
  const auto multiply = [&](int64_t m, auto rows, auto lines) {
    constexpr int64_t kRows = decltype(rows)::value;
    constexpr int64_t kLines = decltype(lines)::value;
    for (int64_t group = 0; group < kSumLanes && span + group < x.chunks(); group += kGroup) {
      const int64_t values = x.k - (span + group) * kByteChunk;
      const auto* const w_group = from + group * Kind::Order::kRowBytes;
      int32_t* const sums = to + (group / kGroup * x.rows + m) * kGroupSums;
      if (values >= kGroup * kByteChunk)
        MultiplyGroup<Kind, kRows, kLines, true>(w_group, x, m, span + group, values, ahead, sums);
      else
        MultiplyGroup<Kind, kRows, kLines, false>(w_group, x, m, span + group, values, ahead, sums);
    }
  };
  constexpr int64_t kLines = kFourLines<Kind>;
  if (kM < kFewTile || x.rows == kFewTile) return multiply(0, Int<kM>{}, Int<kLines>{});
  multiply(0, Int<kM>{}, Int<kLines / 2>{});
  WithConstant<kFewTile>(x.rows - kM, [&](auto rows) { multiply(kM, rows, Int<kLines / 2>{}); });
}

// Rows [n, +rows) of W, 16 at most. While they are multiplied, lines of the next ones' weights,
// unless rows follow each other, and scales are asked for.
template <class Kind, int64_t kM>
void MultiplyFew(const LinearTask& t, const typename Kind::T* w, const ByteInputs& x, int64_t n,
                 int64_t rows, bool in_turn, LineRuns& lines, LinesInOrder& scale_lines,
                 FewScratch& s) {
  using V = typename Kind::V;
  constexpr int64_t kGroup = kGroupChunks<Kind>;
  constexpr int64_t kSpanLines = kFourLines<Kind> * (kSumLanes / 4);
  alignas(64) float totals[kMaxFewRows][kSumLanes];
  for (int64_t i = 0; i < x.rows; ++i)
    V::Store(totals[i], FirstTotal<V>(x.begin == 0, t.y + i * t.y_stride + n, rows));
  const auto add = [&](int64_t span, const int32_t* sums) {
    for (int64_t i = 0; i < x.rows; ++i) {
      typename V::Vec total = V::Load(totals[i]);
      for (int64_t at = span; at < Min(span + kSumLanes, x.chunks()); at += kGroup)
        total = AddGroup<Kind>(x, i, at, s.scales,
                               sums + ((at - span) / kGroup * x.rows + i) * kGroupSums, total);
      V::Store(totals[i], total);
    }
  };
  const int64_t span_sums = Kind::kRuns * x.rows * kGroupSums;
  if (in_turn) {
    for (int64_t row = 0; row < rows; ++row) {
      scale_lines.Ask();
      for (int64_t span = 0; span < x.chunks(); span += kSumLanes) {
        const int64_t k = x.begin + span * kByteChunk;
        const auto* const from = w + (n + row) * t.w_stride + k / kValuesPer<typename Kind::T>;
        MultiplySpan<Kind, kM>(
            t, w, x, n + row, span,
            reinterpret_cast<const char*>(from) + TurnAhead<typename Kind::T>(t, n + row, k),
            s.sums + span / kSumLanes * span_sums + row * kSumLanes);
      }
    }
    for (int64_t span = 0; span < x.chunks(); span += kSumLanes)
      add(span, s.sums + span / kSumLanes * span_sums);
  } else {
    for (int64_t span = 0; span < x.chunks(); span += kSumLanes) {
      for (int64_t row = 0; row < rows; ++row) {
        scale_lines.Ask();
        MultiplySpan<Kind, kM>(t, w, x, n + row, span, lines.Next(kSpanLines).line,
                               s.sums + row * kSumLanes);
      }
      add(span, s.sums);
    }
  }
  const bool last = x.begin + x.k == t.k;
  for (int64_t i = 0; i < x.rows; ++i)
    StoreTotal<Kind>(t, last, s.scales.scale, n, rows, V::Load(totals[i]),
                     t.y + i * t.y_stride + n);
}

}  // namespace
}  // namespace latte::cpu
