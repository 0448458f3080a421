// linear on int8 activations and int8 or 4-bit weights: dot products of bytes, exact within a run.
//
// Work      tasks as in gemm_f32-inl.h. Rows of x are brought into chunks first (s8_chunk-inl.h), or
//           packed once for all tasks. Then, as many rows of x as there are:
//             few, which stay in the L1, and long: gemm_s8_gemv_vnni-inl.h, rows of W one after the
//             other, unless memory likes many streams
//             five to eight, where lines are asked for into the L2: gemm_s8_8x8c8_vnni-inl.h, lanes
//             are rows of x
//             up to 12: gemm_s8_16xm_vnni-inl.h, 16 rows of W where they lie
//             more, that fill lanes, beside W of 8 bits: gemm_s8_bcast_vnni-inl.h
//             others: gemm_s8_packed64_vnni-inl.h, 64 rows of W that are laid out for them
//           K is taken in passes of as many columns as fit; sums wait in y. Memory is asked as
//           prefetch_sequential-inl.h says.
// Order     as int8_scales-inl.h says, the bias last. For every tile, task and thread count.
// Limits    groups of x are multiples of 128; scales of W begin at multiples of 128, of 4-bit ones
//           at multiples of 32, or are one along K; up to kMaxTaskRows rows of x; scratch 350 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch_sequential-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/gemm_s8_16xm_vnni-inl.h"
#include "src/kernels/cpu/gemm/gemm_s8_8x8c8_vnni-inl.h"
#include "src/kernels/cpu/gemm/gemm_s8_bcast_vnni-inl.h"
#include "src/kernels/cpu/gemm/gemm_s8_gemv_vnni-inl.h"
#include "src/kernels/cpu/gemm/gemm_s8_packed64_vnni-inl.h"
#include "src/kernels/cpu/gemm/s8_chunk-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Columns up to which rows of W end before they fill a vector of chunks' sums.
constexpr int64_t kShortRows = 1024;
// Values of x with which rows of W pass one after the other.
constexpr int64_t kTurnValues = 16 << 10;

template <class T>
struct InputsWith {
  ByteInputs x;
  T rest;
};

template <class Kind>
[[gnu::noinline]] void MultiplyByFew(const LinearTask& t, const typename Kind::T* w) {
  auto& scratch = InScratch<InputsWith<FewScratch>>(t.scratch);
  ByteInputs& x = scratch.x;
  FewScratch& s = scratch.rest;
  x.rows = t.m;
  x.row_step = kFewColumns / kByteChunk;
  x.chunk_step = 1;
  for (x.begin = 0; x.begin < t.k; x.begin += x.k) {
    x.k = Min(kFewColumns, t.k - x.begin);
    PrepareInputs<Kind, false>(t, x);
    for (int64_t n = 0; n < t.n; n += kSumLanes) {
      const int64_t rows = Min(kSumLanes, t.n - n);
      PrepareScales<Kind>(t, n, rows, x.begin, x.k, s.scales);
      LinesInOrder scale_lines = ScaleLines(t, n + rows, kSumLanes, x.begin, x.k, rows);
      WithConstant<kMaxFewRows>(t.m, [&](auto count) {
        MultiplyFew<Kind, decltype(count)::value>(t, w, x, n, rows, scale_lines, s);
      });
    }
  }
}

template <class Kind>
[[gnu::noinline]] void MultiplyByLanes(const LinearTask& t, const typename Kind::T* w) {
  using T = typename Kind::T;
  auto& scratch = InScratch<InputsWith<LaneScratch>>(t.scratch);
  ByteInputs& x = scratch.x;
  LaneScratch& s = scratch.rest;
  x.rows = t.m;
  x.row_step = 1;
  x.chunk_step = t.m;
  const int64_t columns = Min(kMaxPreparedChunks / t.m * kByteChunk, kLaneColumns);
  for (x.begin = 0; x.begin < t.k; x.begin += x.k) {
    x.k = Min(columns, t.k - x.begin);
    PrepareInputs<Kind, false>(t, x);
    for (int64_t n = 0; n < t.n; n += kSumLanes) {
      const int64_t rows = Min(kSumLanes, t.n - n);
      PrepareScales<Kind>(t, n, rows, x.begin, x.k, s.scales);
      LaneAhead ahead;
      ahead.by_rows = AsksByRows<T>(t);
      if (ahead.by_rows)
        ahead.own = SideAheadOf<T>(t, n, rows, x.begin, x.k, kLaneAhead);
      else
        ahead.weights = LinesOf<T>(t, n + rows, kSumLanes, x.begin, x.k, 4 * x.chunks());
      ahead.scales = ScaleLines(t, n + rows, kSumLanes, x.begin, x.k, 4);
      MultiplyInLanes<Kind>(t, w, x, n, rows, ahead, s);
    }
  }
}

template <class Kind>
[[gnu::noinline]] void MultiplyByPanels(const LinearTask& t, const typename Kind::T* w) {
  using T = typename Kind::T;
  auto& scratch = InScratch<InputsWith<PanelScratch<T>>>(t.scratch);
  ByteInputs& x = scratch.x;
  PanelScratch<T>& s = scratch.rest;
  x.rows = t.m;
  x.row_step = 1;
  x.chunk_step = t.m;
  const int64_t columns = Min(kMaxPreparedChunks / t.m * kByteChunk, kPanelColumns);
  for (x.begin = 0; x.begin < t.k; x.begin += x.k) {
    x.k = Min(columns, t.k - x.begin);
    PrepareInputs<Kind, true>(t, x);
    for (int64_t n = 0; n < t.n; n += kPanelOutputs) {
      const int64_t rows = Min(kPanelOutputs, t.n - n);
      PrepareScales<Kind>(t, n, rows, x.begin, x.k, s.scales);
      // Behind the last panel of this pass comes the first of the next one.
      const bool passes_on = n + rows == t.n && x.begin + x.k < t.k;
      const int64_t next_n = passes_on ? 0 : n + rows;
      const int64_t next_k = passes_on ? x.begin + x.k : x.begin;
      PanelAhead ahead;
      // Zen 4: 0.95 of the time that the L2 takes.
      ahead.weights =
          LinesOfRows<T, LineRuns>(t, next_n, kPanelOutputs, next_k, columns, Cache::kL1);
      ahead.scales = ScaleLines(t, next_n, kPanelOutputs, next_k, columns, x.chunks());
      ahead.Spread(x.chunks(), x.rows, Kind::kRuns);
      WithConstant<kPanelVectors>((rows + kSumLanes - 1) / kSumLanes, [&](auto vectors) {
        MultiplyPanel<Kind, decltype(vectors)::value>(t, w, x, n, rows, ahead, s);
      });
    }
  }
}

// Rows of x that stay in the L1 take rows of W one after the other, where memory likes that. With
// four runs a chunk the sums of 16 rows of W cost less in lanes.
template <class Kind>
bool IsFew(const LinearTask& t) {
  if (t.many_streams) return false;
  if (Kind::kRuns == 1 && t.k <= kShortRows) return false;
  const int64_t most = Kind::kRuns == 1 ? kMaxFewRows : 1;
  return t.m == 1 || (t.m <= most && t.m * t.k <= kTurnValues);
}

// Whether rows of x are packed: those that fill lanes, beside W of 8 bits. The short runs of 4-bit
// weights take 1.1 to 1.2 times as long so.
inline bool PacksInputs(Element w, int64_t m) {
  return w == Element::kI8 && m > kMaxLaneInputs && FillLanes(m);
}

template <class Kind>
void MultiplyBytes(const LinearTask& t) {
  const auto* const w = static_cast<const typename Kind::T*>(t.w);
  if (IsFew<Kind>(t)) return MultiplyByFew<Kind>(t, w);
  // Measured on a Zen 4 alone.
  if constexpr (kValuesPer<typename Kind::T> == 1 && Kind::kOneScale)
    if (!t.many_streams && t.ask_into == Cache::kL2 && FitEights(t))
      return t.m < kEights ? MultiplyByEights<Kind, true>(t) : MultiplyByEights<Kind, false>(t);
  if (t.m <= kMaxLaneInputs) return MultiplyByLanes<Kind>(t, w);
  if constexpr (kValuesPer<typename Kind::T> == 1)
    if (t.packed != nullptr && FillLanes(t.m)) return MultiplyByGroups<Kind>(t);
  MultiplyByPanels<Kind>(t, w);
}

// Requires: groups as above.
template <class V>
void LinearInt8(const LinearTask& t) {
  WithByteKind<ByteOrder, V>(t, [&]<class Kind>(Kind) { MultiplyBytes<Kind>(t); });
}

}  // namespace
}  // namespace latte::cpu
