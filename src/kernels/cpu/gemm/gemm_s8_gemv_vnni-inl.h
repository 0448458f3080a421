// Few rows of x for gemm_s8_vnni-inl.h: rows of W are multiplied where they lie, one after the
// other, each over all of a pass.
//
// Work      dot products of chunks, whose lanes are summed for 16 chunks (of four runs: four)
//           together; those of 16 rows of W are transposed, so that lanes are rows of W, and added.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch_sequential-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/s8_chunk-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kMaxFewRows = 4;        // of x
constexpr int64_t kFewColumns = 1 << 14;  // of a pass
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

// Sums of the chunks of a group from `first` on, of a row of W and kM rows of x; `values` of it are
// there. Lines ahead are asked for. To `to`, [row of x][16 rows of W][run]
// [chunk].
template <class Kind, int64_t kM, bool kWhole>
inline void MultiplyGroup(const typename Kind::T* w, const ByteInputs& x, int64_t first,
                          int64_t values, const TurnAhead& ahead, int32_t* to) {
  using V = typename Kind::V;
  constexpr int64_t kGroup = kGroupChunks<Kind>;
  typename V::Ints quads[kM][kGroup / 4];
  const int8_t* const codes = x.codes + x.At(0, first) * kByteChunk;
  const int64_t x_stride = x.row_step * kByteChunk;
  // Unrolled, all of a group's lines would be asked for first.
#pragma GCC unroll 1
  for (int64_t four = 0; four < kGroup; four += 4) {
    typename V::Ints lanes[kM][4];
#pragma GCC unroll 4
    for (int64_t c = 0; c < 4; ++c) {
      const int64_t left = values - (four + c) * kByteChunk;
      if (!kWhole && left <= 0) {
        for (int64_t i = 0; i < kM; ++i) lanes[i][c] = V::ZeroInts();
        continue;
      }
      const auto* const from = w + (four + c) * Kind::Order::kRowBytes;
      for (int64_t at = 0; at < Kind::Order::kRowBytes; at += 64) ahead.Ask(from + at);
      const bool whole = kWhole || left >= kByteChunk;
      const typename V::Ints w0 =
          whole ? Kind::Order::template Load<0>(from) : Kind::Order::template Load<0>(from, left);
      const typename V::Ints w1 =
          whole ? Kind::Order::template Load<1>(from) : Kind::Order::template Load<1>(from, left);
      for (int64_t i = 0; i < kM; ++i) {
        const int8_t* const xi = codes + i * x_stride + (four + c) * kByteChunk;
        lanes[i][c] = V::DotBytesAt(V::DotBytesAt(V::ZeroInts(), w0, xi), w1, xi + 64);
      }
    }
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

// Rows [n, +rows) of W, 16 at most, and kM rows of x, all there are. Lines of the next ones' scales
// are asked for.
template <class Kind, int64_t kM>
void MultiplyFew(const LinearTask& t, const typename Kind::T* w, const ByteInputs& x, int64_t n,
                 int64_t rows, LinesInOrder& scale_lines, FewScratch& s) {
  using V = typename Kind::V;
  constexpr int64_t kGroup = kGroupChunks<Kind>;
  const auto sums_of = [&s](int64_t group) { return s.sums + group / kGroup * kM * kGroupSums; };
  for (int64_t row = 0; row < rows; ++row) {
    scale_lines.Ask();
    const auto* const from = w + (n + row) * t.w_stride + x.begin / kValuesPer<typename Kind::T>;
    for (int64_t span = 0; span < x.chunks(); span += kSumLanes) {
      const TurnAhead ahead =
          TurnAheadOf<typename Kind::T>(t, n + row, x.begin + span * kByteChunk);
      ahead.Touch(from + span * Kind::Order::kRowBytes,
                  Min(kSumLanes, x.chunks() - span) * Kind::Order::kRowBytes);
      for (int64_t group = span; group < Min(span + kSumLanes, x.chunks()); group += kGroup) {
        const auto* const w_group = from + group * Kind::Order::kRowBytes;
        const int64_t values = x.k - group * kByteChunk;
        int32_t* const to = sums_of(group) + row * kSumLanes;
        if (values >= kGroup * kByteChunk)
          MultiplyGroup<Kind, kM, true>(w_group, x, group, values, ahead, to);
        else
          MultiplyGroup<Kind, kM, false>(w_group, x, group, values, ahead, to);
      }
    }
  }
  const bool last = x.begin + x.k == t.k;
  for (int64_t i = 0; i < kM; ++i) {
    float* const y = t.y + i * t.y_stride + n;
    typename V::Vec total = FirstTotal<V>(x.begin == 0, y, rows);
    for (int64_t group = 0; group < x.chunks(); group += kGroup)
      total = AddGroup<Kind>(x, i, group, s.scales, sums_of(group) + i * kGroupSums, total);
    StoreTotal<Kind>(t, last, s.scales.scale, n, rows, total, y);
  }
}

}  // namespace
}  // namespace latte::cpu
