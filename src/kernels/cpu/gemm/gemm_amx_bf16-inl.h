// bf16 A × bf16, fp8 or int8 B, tiles of 16×16×32, tdpbf16ps, AMX: the entries of a kernel for any
// M, a kernel for M ≤ 32 ("small M"), and gemm_amx_fp8_gemv-inl.h.
//
// Packing   AMX operand A is B (weights), operand B is Aᵀ: Cᵀ[16×16] += B[16×32] · Aᵀ[32×16]. A is
//           packed once per call (PackABf16Amx); One row is read in place, unless B is e4m3. Small
//           M with bf16 B: B is read in place. Else panels of 64 rows (small M: 32) × 256 columns
//           of B are packed as bf16 (32 KiB, in the L1), because rows a power of two apart would
//           share L1 sets.
// Blocking  In place: 2×2 tiles over all of K. Else 4 tiles of B × 1 tile of A, one L2 load
//           per four products; sums wait in scratch between K blocks of 256 columns. Small M reads
//           rows of B that are a page apart (SpreadOf), one hardware prefetch stream each.
// Scales    With scales: the sums of a segment of one scale (cut at multiples of 256) times the
//           scale.
// Epilogue  A 16×16 transpose into C; the bias last.
// Order     K steps of 32, each added in f32 by one instruction; segments in order. fp8 B takes
//           columns in the order of amx_fp8-inl.h. The three kernels give the same bits.
// Limits    K > 0; scale groups begin at multiples of 32 (e4m3: 128) or span K; M ≤ kMaxAmxM and N
//           ≤ kMaxAmxN per task; scratch 1 MiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/amx_tile-inl.h"
#include "src/kernels/cpu/common/bf16_pair-inl.h"
#include "src/kernels/cpu/common/scales-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/amx_pack_bf16-inl.h"
#include "src/kernels/cpu/gemm/gemm_amx_fp8_gemv-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kPanelTiles = 4;        // tiles of B
constexpr int64_t kSmallMPanelTiles = 2;  // for small M: one hardware prefetch stream per row
constexpr int64_t kAmxPanelN = kPanelTiles * kTileSide;
constexpr int64_t kPanelSegments = kPanelSteps + 1;
constexpr int64_t kMaxSmallAmxM = 2 * kTileSide;

struct AmxBf16Scratch {
  alignas(64) float sums[kMaxAmxM * kMaxAmxN];                     // at Sums()
  alignas(64) BF16 panel[kPanelTiles * kPanelSteps * kTilePairs];  // [tile of B][K step][16, 32]
  alignas(64) BF16 w_tail[2 * kTilePairs];                         // last K step of two tiles of B
  alignas(64) BF16 x_tail[kStep];                                  // and of A if M = 1
  alignas(64) float segment[kPanelTiles * kTileSums];              // sums under one scale
  alignas(64) float scale[kPanelSegments * kAmxPanelN];            // [segment][row of the panel]
  const BF16* x;                      // packed: [tile][K step][16 pairs][16 rows]; M = 1: in place
  int64_t x_tile, x_step, x_line;     // strides of tiles, K steps and pairs, in elements
  int64_t x_tiles, x_rows, steps, k;  // rows of a tile; K steps, the last may be partial

  // The tiles of a panel and a tile of A are contiguous.
  float* Sums(int64_t w_tile, int64_t x_tile_index) {
    const int64_t block = w_tile / kPanelTiles * x_tiles + x_tile_index;
    return sums + (block * kPanelTiles + w_tile % kPanelTiles) * kTileSums;
  }
  int64_t SumsRowBytes() const { return x_rows * static_cast<int64_t>(sizeof(float)); }
  TileAt X(int64_t tile, int64_t step) const {
    if (x_line == 2 && (step + 1) * kStep > k) return {x_tail, 4};
    return {x + tile * x_tile + step * x_step, x_line * static_cast<int64_t>(sizeof(BF16))};
  }
};

// Tiles of sums for `rows` rows of B × x_rows rows of A.
inline TileShapes GemmTileShapes(int64_t rows, int64_t x_rows) {
  TileShapes out;
  for (int i = 0; i < 4; ++i) {
    out.rows[i] = static_cast<uint8_t>(rows);
    out.row_bytes[i] = static_cast<uint16_t>(4 * x_rows);
  }
  for (int i = 4; i < 6; ++i) out.rows[i] = static_cast<uint8_t>(rows);
  for (int i = 6; i < 8; ++i) out.row_bytes[i] = static_cast<uint16_t>(4 * x_rows);
  return out;
}

// Copies a partial last K step of rows of B, padded with zeros.
inline void CopyWeightTail(AmxBf16Scratch& s, const BRows<BF16>& w, int64_t w_tile, int64_t tiles) {
  const int64_t at = s.k / kStep * kStep;
  if (at == s.k) return;
  const int64_t first = w_tile * kTileSide;
  for (int64_t i = 0; i < Min(tiles * kTileSide, w.count - first); ++i)
    Amx::StorePairs(s.w_tail + i * kStep, LoadRowPairs<Amx>(w.w + (first + i) * w.stride, at, s.k));
}

// kM tiles of B in place × kN tiles of A, over all of K.
template <int64_t kM, int64_t kN>
inline void TileAmxBf16InPlace(AmxBf16Scratch& s, const BRows<BF16>& w, int64_t w_tile) {
  const int64_t row_bytes = w.stride * static_cast<int64_t>(sizeof(BF16));
  const BF16* const from = w.w + w_tile * kTileSide * w.stride;
  ZeroSums<kM, kN>();
  for (int64_t step = 0; step < s.steps; ++step) {
    const bool whole = (step + 1) * kStep <= s.k;
    AddStep<kM, kN>(
        [&](int64_t i) {
          return whole ? TileAt{from + i * kTileSide * w.stride + step * kStep, row_bytes}
                       : TileAt{s.w_tail + i * kTilePairs, kTileRowBytes};
        },
        [&](int64_t j) { return s.X(j, step); });
  }
  StoreSums<kM, kN>([&](int64_t i, int64_t j) { return s.Sums(w_tile + i, j); }, s.SumsRowBytes());
}

// Tiles [first, first + count) of B, M ≤ 32.
inline void GemmAmxBf16InPlace(AmxBf16Scratch& s, const BRows<BF16>& w, int64_t first,
                               int64_t count) {
  ForEachRun<2>(count, [&](int64_t at, auto tiles) {
    constexpr int64_t kM = decltype(tiles)::value;
    CopyWeightTail(s, w, first + at, kM);
    if (s.x_tiles == 1)
      TileAmxBf16InPlace<kM, 1>(s, w, first + at);
    else
      TileAmxBf16InPlace<kM, 2>(s, w, first + at);
  });
}

// Loads the scales of kM tiles of a panel; returns the segments of its columns.
template <int64_t kM, class T>
inline Segments LoadPanelScales(AmxBf16Scratch& s, const ScaleGrid& grid,
                                const WeightPanel<T>& panel) {
  const Segments segments = SegmentsOf(grid, panel.begin, panel.end - panel.begin);
  const int64_t column = (grid.column_begin + panel.begin) / grid.columns;
  alignas(64) float values[kPanelSegments + Amx::kLanes];
  const auto row_of = [&](int64_t i) {
    const int64_t row = Min(panel.w_tile * kTileSide + i, panel.w->count - 1);
    return (grid.row_begin + panel.w->OutputOf(row)) / grid.rows;
  };
  const auto load = [&](int64_t row) {
    WithType(grid.scale, grid.type, [&](const auto* scale) {
      WidenRow<Amx>(scale + row * grid.stride + column, segments.count, values);
    });
  };
  if (row_of(0) == row_of(kM * kTileSide - 1)) {
    load(row_of(0));
    for (int64_t j = 0; j < segments.count; ++j)
      for (int64_t i = 0; i < kM; ++i)
        Amx::Store(s.scale + j * kAmxPanelN + i * kTileSide, Amx::Set1(values[j]));
    return segments;
  }
  int64_t until = 0;  // rows of B before this one have the scales in `values`
  for (int64_t i = 0; i < kM * kTileSide; ++i) {
    const int64_t output = panel.w->OutputOf(Min(panel.w_tile * kTileSide + i, panel.w->count - 1));
    if (output >= until) {
      const int64_t row = (grid.row_begin + output) / grid.rows;
      until = (row + 1) * grid.rows - grid.row_begin;
      load(row);
    }
    for (int64_t j = 0; j < segments.count; ++j) s.scale[j * kAmxPanelN + i] = values[j];
  }
  return segments;
}

// K steps [begin, end) of a panel times a tile of A; calls after(step) after each.
template <int64_t kM, class T, class After>
inline void AddPanelSteps(const AmxBf16Scratch& s, const WeightPanel<T>& panel, int64_t x_tile,
                          int64_t begin, int64_t end, const After& after) {
  for (int64_t step = begin; step < end; ++step) {
    AddStep<kM, 1>([&](int64_t i) { return panel.At(i, step); },
                   [&](int64_t) { return s.X(x_tile, step); });
    after(step);
  }
}

// Adds a K block without scales; sums continue from block to block.
template <int64_t kM, class T, class After>
inline void AddPanel(AmxBf16Scratch& s, const WeightPanel<T>& panel, int64_t x_tile,
                     const After& after) {
  const auto sums = [&](int64_t i, int64_t) { return s.Sums(panel.w_tile + i, x_tile); };
  if (panel.begin == 0)
    ZeroSums<kM, 1>();
  else
    LoadSums<kM, 1>(sums, s.SumsRowBytes());
  AddPanelSteps<kM>(s, panel, x_tile, panel.begin / kStep, StepsTo<T>(panel.end), after);
  StoreSums<kM, 1>(sums, s.SumsRowBytes());
}

// sums (+)= segment · scale for a tile; one scale per row. Always a fused multiply-add, so that M =
// 1 gives the same bits.
inline void AddScaled(const float* segment, const float* scale, int64_t x_rows, bool first,
                      float* sums) {
  const auto add = [first](float* to, Amx::Vec x, Amx::Vec factor) {
    Amx::Store(to, Amx::Fma(x, factor, first ? Amx::Zero() : Amx::Load(to)));
  };
  if (x_rows == 1) return add(sums, Amx::Load(segment), Amx::Load(scale));
  for (int64_t i = 0; i < kTileSide; ++i)
    add(sums + i * kTileSide, Amx::Load(segment + i * kTileSide), Amx::Set1(scale[i]));
}

// Adds a K block with scales, segment by segment.
template <int64_t kM, class T, class After>
inline void AddScaledPanel(AmxBf16Scratch& s, const WeightPanel<T>& panel, const Segments& segments,
                           int64_t x_tile, const After& after) {
  ForEachSegment(segments, [&](int64_t segment, int64_t begin, int64_t end) {
    ZeroSums<kM, 1>();
    AddPanelSteps<kM>(s, panel, x_tile, (panel.begin + begin) / kStep,
                      StepsTo<T>(panel.begin + end), after);
    StoreSums<kM, 1>([&](int64_t i, int64_t) { return s.segment + i * kTileSums; },
                     s.SumsRowBytes());
    for (int64_t i = 0; i < kM; ++i)
      AddScaled(s.segment + i * kTileSums, s.scale + segment * kAmxPanelN + i * kTileSide, s.x_rows,
                panel.begin == 0 && segment == 0, s.Sums(panel.w_tile + i, x_tile));
  });
}

// kM tiles of B times all of A.
template <int64_t kM, class T, class After>
inline void MultiplyPanel(AmxBf16Scratch& s, const ScaleGrid& grid, const WeightPanel<T>& panel,
                          const After& after) {
  if (grid.scale == nullptr) {
    for (int64_t x = 0; x < s.x_tiles; ++x) AddPanel<kM>(s, panel, x, after);
    return;
  }
  const Segments segments = LoadPanelScales<kM>(s, grid, panel);
  for (int64_t x = 0; x < s.x_tiles; ++x) AddScaledPanel<kM>(s, panel, segments, x, after);
}

// M ≤ 32 with fp8 or int8 B: packs a panel while the tile unit multiplies the previous one.
template <int64_t kM, class T>
inline void StreamPanels(AmxBf16Scratch& s, const ScaleGrid& grid, const BRows<T>& w,
                         int64_t w_tile) {
  constexpr int64_t kRows = kM * kTileSide;
  constexpr int64_t kShare = kRows / kPanelSteps;
  BF16* const other = s.panel + kSmallMPanelTiles * kPanelSteps * kTilePairs;
  WeightPanel<T> panel{&w, w_tile, 0, Min(kPanelColumns, s.k), s.panel};
  panel.Fill(0, kRows, s.k);
  while (panel.begin < s.k) {
    const WeightPanel<T> next{&w, w_tile, panel.end, Min(panel.end + kPanelColumns, s.k),
                              panel.data == other ? s.panel : other};
    int64_t filled = 0;
    MultiplyPanel<kM>(s, grid, panel, [&](int64_t) {
      if (next.begin == s.k || filled == kRows) return;
      next.Fill(filled, filled + kShare, s.k);
      filled += kShare;
    });
    if (next.begin < s.k) next.Fill(filled, kRows, s.k);
    panel = next;
  }
}

// Rows [row, last) of B in the columns of `panel`.
template <class T>
inline BurstPrefetch PanelBursts(const BRows<T>& w, int64_t row, int64_t last,
                                 const WeightPanel<T>& panel, int64_t lines_per_step) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  return {.row = reinterpret_cast<const char*>(w.w + row * w.stride + panel.begin),
          .stride = w.stride * kSize,
          .bytes = (panel.end - panel.begin) * kSize,
          .rows = last - row,
          .per_step = lines_per_step};
}

// M > 32: A and the sums stay in the L2; the next panel is prefetched.
template <class T>
inline void GemmAmxBf16LargeM(AmxBf16Scratch& s, const ScaleGrid& grid, const BRows<T>& w) {
  const int64_t tiles = (w.count + kTileSide - 1) / kTileSide;
  const int64_t lines = 1 + kAmxPanelN / s.x_tiles * static_cast<int64_t>(sizeof(T)) / 2;
  for (int64_t begin = 0; begin < s.k; begin += kPanelColumns)
    ForEachRun<kPanelTiles>(tiles, [&](int64_t tile, auto count) {
      constexpr int64_t kM = decltype(count)::value;
      const WeightPanel<T> panel{&w, tile, begin, Min(begin + kPanelColumns, s.k), s.panel};
      panel.Fill(0, kM * kTileSide, s.k);
      BurstPrefetch ahead = PanelBursts(w, Min((tile + kM) * kTileSide, w.count),
                                        Min((tile + 2 * kM) * kTileSide, w.count), panel, lines);
      MultiplyPanel<kM>(s, grid, panel, [&](int64_t) { ahead.PrefetchNext(); });
    });
}

template <class T>
inline void GemmAmxBf16SmallM(AmxBf16Scratch& s, const ScaleGrid& grid, const BRows<T>& w) {
  const TileScope scope{GemmTileShapes(kTileSide, s.x_rows)};
  ForEachRun<kSmallMPanelTiles>(
      (w.count + kTileSide - 1) / kTileSide,
      [&](int64_t tile, auto count) { StreamPanels<decltype(count)::value>(s, grid, w, tile); });
}
inline void GemmAmxBf16SmallM(AmxBf16Scratch& s, const ScaleGrid&, const BRows<BF16>& w) {
  const int64_t whole = w.count / kTileSide;
  const int64_t rest = w.count % kTileSide;
  if (whole > 0) {
    const TileScope scope{GemmTileShapes(kTileSide, s.x_rows)};
    GemmAmxBf16InPlace(s, w, 0, whole);
  }
  if (rest > 0) {  // nothing behind the last row of B may be read
    const TileScope scope{GemmTileShapes(rest, s.x_rows)};
    GemmAmxBf16InPlace(s, w, whole, 1);
  }
}

// Stores the sums of a tile for one row of A.
template <class T>
inline void StoreOutputs(const GemmTask& t, const BRows<T>& w, Amx::Vec sums, int64_t w_tile,
                         int64_t row) {
  const int64_t first = w_tile * kTileSide;
  const int64_t count = Min(kTileSide, w.count - first);
  float* const y = t.y + row * t.y_stride;
  if (w.step == 1) {
    const int64_t output = w.OutputOf(first);
    if (t.bias != nullptr) sums = Amx::Add(sums, Amx::LoadPartial(t.bias + output, count));
    return StoreNext<Amx>(y + output, sums, count);
  }
  alignas(64) float values[kTileSide];
  Amx::Store(values, sums);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t output = w.OutputOf(first + i);
    y[output] = t.bias == nullptr ? values[i] : values[i] + t.bias[output];
  }
}

// Stores the sums [16 rows of B, 16 rows of A] of a tile for the rows of A from `row`.
template <class T>
inline void StoreTransposed(const GemmTask& t, const BRows<T>& w, const float* sums, int64_t w_tile,
                            int64_t row) {
  Amx::Words words[kTileSide];
  for (int64_t i = 0; i < kTileSide; ++i) words[i] = Amx::LoadWords(sums + i * kTileSide);
  Amx::Transpose(words);
  for (int64_t i = 0; i < Min(kTileSide, t.m - row); ++i)
    StoreOutputs(t, w, Amx::Floats(words[i]), w_tile, row + i);
}

template <bool kSmallM, class T>
inline void MultiplyRows(AmxBf16Scratch& s, const GemmTask& t, const BRows<T>& w) {
  if constexpr (kSmallM) {
    GemmAmxBf16SmallM(s, t.grid, w);
  } else {
    const TileScope scope{GemmTileShapes(kTileSide, s.x_rows)};
    GemmAmxBf16LargeM(s, t.grid, w);
  }
  for (int64_t x_tile = 0; x_tile < s.x_tiles; ++x_tile)
    for (int64_t tile = 0; tile * kTileSide < w.count; ++tile) {
      const float* const sums = s.Sums(tile, x_tile);
      if (s.x_rows == 1)
        StoreOutputs(t, w, Amx::Load(sums), tile, 0);
      else
        StoreTransposed(t, w, sums, tile, x_tile * kTileSide);
    }
}

template <bool kSmallM, class T>
inline void GemmAmxBf16Of(AmxBf16Scratch& s, const GemmTask& t) {
  const auto* const w = static_cast<const T*>(t.w);
  const int64_t spread = kSmallM ? SpreadOf(t.w_stride * static_cast<int64_t>(sizeof(T)), t.n) : 1;
  for (int64_t i = 0; i < spread; ++i)
    MultiplyRows<kSmallM>(s, t,
                          BRows<T>{w + i * t.w_stride, spread * t.w_stride,
                                   (t.n - i + spread - 1) / spread, i, spread});
}

template <bool kSmallM>
[[gnu::noinline]] inline void GemmAmxBf16Tiles(const GemmTask& t) {
  auto& s = ScratchAs<AmxBf16Scratch>(t.scratch);
  s.k = t.k;
  s.steps = (t.k + kStep - 1) / kStep;
  s.x_tiles = (t.m + kTileSide - 1) / kTileSide;
  const bool in_place = t.packed == nullptr;
  s.x_rows = t.m == 1 ? 1 : kTileSide;
  s.x = static_cast<const BF16*>(in_place ? t.x : t.packed);
  s.x_tile = RoundUp(t.k, kPackedBf16K) * kTileSide;
  s.x_step = in_place ? kStep : kTilePairs;
  s.x_line = in_place ? 2 : kStep;
  if (in_place) Amx::StorePairs(s.x_tail, LoadRowPairs<Amx>(s.x, (s.steps - 1) * kStep, t.k));
  if (t.w_type == Element::kBF16) return GemmAmxBf16Of<kSmallM, BF16>(s, t);
  if (t.w_type == Element::kF8E4M3) return GemmAmxBf16Of<kSmallM, F8>(s, t);
  if (t.w_type == Element::kI8) return GemmAmxBf16Of<kSmallM, I8>(s, t);
  GemmAmxBf16Of<kSmallM, F8Fnuz>(s, t);
}

// A single row of A is read in place, unless B has the order of columns of amx_fp8-inl.h.
inline bool PacksAmxA(Element w, int64_t m) { return m > 1 || w == Element::kF8E4M3; }

// Requires: A is bf16; B is bf16 without scales, or fp8 or int8 with scales; t.packed if PacksAmxA.
// kSmallM: M ≤ kMaxSmallAmxM.
template <bool kSmallM>
inline void GemmAmxBf16(const GemmTask& t) {
  if (t.w_type != Element::kF8E4M3) return GemmAmxBf16Tiles<kSmallM>(t);
  const FlushScope scope;
  GemmAmxBf16Tiles<kSmallM>(t);
}

// Requires: A is bf16; B is e4m3 with scales; M ≤ kMaxFp8GemvM.
inline void GemmAmxBf16Fp8Gemv(const GemmTask& t) {
  const FlushScope scope;
  GemmAmxFp8Gemv(t);
}

}  // namespace
}  // namespace latte::cpu
