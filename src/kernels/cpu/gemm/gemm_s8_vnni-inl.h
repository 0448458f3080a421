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
//           at multiples of 32, or are one along K; up to kMaxTaskM rows of x; scratch 350 KiB.
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
constexpr int64_t kMinGemvK = 1024;
// Values of x with which rows of W pass one after the other.
constexpr int64_t kMaxGemvValues = 16 << 10;

template <class T>
struct WithAChunks {
  AChunks x;
  T rest;
};

template <class Kind>
[[gnu::noinline]] void GemmS8VnniGemv(const GemmTask& t, const typename Kind::T* w) {
  auto& scratch = ScratchAs<WithAChunks<GemvScratch>>(t.scratch);
  AChunks& x = scratch.x;
  GemvScratch& s = scratch.rest;
  x.rows = t.m;
  x.row_step = kGemvPassK / kChunkK;
  x.chunk_step = 1;
  for (x.begin = 0; x.begin < t.k; x.begin += x.k) {
    x.k = Min(kGemvPassK, t.k - x.begin);
    PackAChunks<Kind, false>(t, x);
    for (int64_t n = 0; n < t.n; n += kSumLanes) {
      const int64_t rows = Min(kSumLanes, t.n - n);
      PrepareScales<Kind>(t, n, rows, x.begin, x.k, s.scales);
      SequentialPrefetch scale_prefetch = ScalePrefetch(t, n + rows, kSumLanes, x.begin, x.k, rows);
      WithConstant<kMaxGemvM>(t.m, [&](auto count) {
        GemvRows16<Kind, decltype(count)::value>(t, w, x, n, rows, scale_prefetch, s);
      });
    }
  }
}

template <class Kind>
[[gnu::noinline]] void GemmS8Vnni16xM(const GemmTask& t, const typename Kind::T* w) {
  using T = typename Kind::T;
  auto& scratch = ScratchAs<WithAChunks<Scratch16xM>>(t.scratch);
  AChunks& x = scratch.x;
  Scratch16xM& s = scratch.rest;
  x.rows = t.m;
  x.row_step = 1;
  x.chunk_step = t.m;
  const int64_t columns = Min(kMaxAChunks / t.m * kChunkK, kPassK16xM);
  for (x.begin = 0; x.begin < t.k; x.begin += x.k) {
    x.k = Min(columns, t.k - x.begin);
    PackAChunks<Kind, false>(t, x);
    for (int64_t n = 0; n < t.n; n += kSumLanes) {
      const int64_t rows = Min(kSumLanes, t.n - n);
      PrepareScales<Kind>(t, n, rows, x.begin, x.k, s.scales);
      Prefetch16xM ahead;
      ahead.by_row = PrefetchesByRow<T>(t);
      if (ahead.by_row)
        ahead.own = StridedPrefetchOf<T>(t, n, rows, x.begin, x.k, kPrefetchBytes16xM);
      else
        ahead.weights =
            SequentialPrefetchOf<T>(t, n + rows, kSumLanes, x.begin, x.k, 4 * x.chunks());
      ahead.scales = ScalePrefetch(t, n + rows, kSumLanes, x.begin, x.k, 4);
      TileS8Vnni16xM<Kind>(t, w, x, n, rows, ahead, s);
    }
  }
}

template <class Kind>
[[gnu::noinline]] void GemmS8VnniPacked64(const GemmTask& t, const typename Kind::T* w) {
  using T = typename Kind::T;
  auto& scratch = ScratchAs<WithAChunks<Scratch6x64<T>>>(t.scratch);
  AChunks& x = scratch.x;
  Scratch6x64<T>& s = scratch.rest;
  x.rows = t.m;
  x.row_step = 1;
  x.chunk_step = t.m;
  const int64_t columns = Min(kMaxAChunks / t.m * kChunkK, kPassK6x64);
  for (x.begin = 0; x.begin < t.k; x.begin += x.k) {
    x.k = Min(columns, t.k - x.begin);
    PackAChunks<Kind, true>(t, x);
    for (int64_t n = 0; n < t.n; n += kPanelN6x64) {
      const int64_t rows = Min(kPanelN6x64, t.n - n);
      PrepareScales<Kind>(t, n, rows, x.begin, x.k, s.scales);
      // Behind the last panel of this pass comes the first of the next one.
      const bool passes_on = n + rows == t.n && x.begin + x.k < t.k;
      const int64_t next_n = passes_on ? 0 : n + rows;
      const int64_t next_k = passes_on ? x.begin + x.k : x.begin;
      PanelPrefetch ahead;
      // Zen 4: 0.95 of the time that the L2 takes.
      ahead.weights =
          PrefetchRowsOf<T, PrefetchRuns>(t, next_n, kPanelN6x64, next_k, columns, CacheLevel::kL1);
      ahead.scales = ScalePrefetch(t, next_n, kPanelN6x64, next_k, columns, x.chunks());
      ahead.Spread(x.chunks(), x.rows, Kind::kGroups);
      WithConstant<kPanelVectors6x64>((rows + kSumLanes - 1) / kSumLanes, [&](auto vectors) {
        PanelS8Vnni6x64<Kind, decltype(vectors)::value>(t, w, x, n, rows, ahead, s);
      });
    }
  }
}

// Rows of x that stay in the L1 take rows of W one after the other, where memory likes that. With
// four runs a chunk the sums of 16 rows of W cost less in lanes.
template <class Kind>
bool UsesGemv(const GemmTask& t) {
  if (t.many_dram_streams) return false;
  if (Kind::kGroups == 1 && t.k <= kMinGemvK) return false;
  const int64_t most = Kind::kGroups == 1 ? kMaxGemvM : 1;
  return t.m == 1 || (t.m <= most && t.m * t.k <= kMaxGemvValues);
}

// Whether rows of x are packed: those that fill lanes, beside W of 8 bits. The short runs of 4-bit
// weights take 1.1 to 1.2 times as long so.
inline bool PacksABcast(Element w, int64_t m) {
  return w == Element::kI8 && m > kMaxMInPlace && FillsLanes(m);
}

template <class Kind>
void DispatchS8Vnni(const GemmTask& t) {
  const auto* const w = static_cast<const typename Kind::T*>(t.w);
  if (UsesGemv<Kind>(t)) return GemmS8VnniGemv<Kind>(t, w);
  // Measured on a Zen 4 alone.
  if constexpr (kValuesPer<typename Kind::T> == 1 && Kind::kOneScale)
    if (!t.many_dram_streams && t.prefetch_level == CacheLevel::kL2 && Fits8x8(t))
      return t.m < kTile8x8 ? GemmS8Vnni8x8<Kind, true>(t) : GemmS8Vnni8x8<Kind, false>(t);
  if (t.m <= kMaxMInPlace) return GemmS8Vnni16xM<Kind>(t, w);
  if constexpr (kValuesPer<typename Kind::T> == 1)
    if (t.packed != nullptr && FillsLanes(t.m)) return GemmS8VnniBcast<Kind>(t);
  GemmS8VnniPacked64<Kind>(t, w);
}

// Requires: groups as above.
template <class V>
void GemmS8Vnni(const GemmTask& t) {
  WithS8Kind<S8Layout, V>(t, [&]<class Kind>(Kind) { DispatchS8Vnni<Kind>(t); });
}

}  // namespace
}  // namespace latte::cpu
