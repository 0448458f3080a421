// linear on tiles: bf16 weights as they are mapped, times activations rounded to bf16.
//
//   Yᵀ[16 outputs × 16 rows of x] += W[16 outputs × 32] · Xᵀ[32 × 16 rows of x]
//
// Work      rows of W are the A operand where they lie, whatever their alignment. Activations are
//           packed in pairs once per call (PackActivations) and shared by all tasks; one row of
//           them needs no packing. Sums are blocks of 2 × 2 tiles and are transposed when they are
//           stored. Up to 32 rows of x: sums stay in registers along all of K and W streams by.
//           More: K in blocks of 512, of which 32 rows of W are copied side by side and stay in the
//           L1 (32 KiB) while all rows of x pass; in place, rows a power of two apart would push
//           each other out. Sums wait in scratch.
// Roofline  one row of x: 2 FLOP per weight, bound by memory. Every weight tile (1 KiB) takes 16
//           cycles per 16 rows of x, so memory is the floor up to about 200 rows.
// Order     steps of 32 along K, each added to the sum in f32 by one instruction; blocks of K
//           change nothing, since sums are stored as they are. The bias is added last. A last step
//           that is not whole is filled up with zeros.
// Limits    K > 0, bf16 × bf16 without scales; up to kMaxTileActivations rows of x and
//           kMaxTileOutputs outputs per task; stack 1 MiB, of which rows and outputs decide what
//           is touched.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/amx_blocks-inl.h"
#include "src/kernels/cpu/element-inl.h"
#include "src/kernels/cpu/pairs-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/tiles-inl.h"

namespace latte::cpu {
namespace {

constexpr int64_t kLinearBlockSteps = 16;     // of K per block
constexpr int64_t kStreamAhead = 16 * kStep;  // elements of a row of W that are asked for early

struct TileLinear {
  alignas(64) float sums[kMaxTileActivations * kMaxTileOutputs];  // [tile of W][tile of x][16, 16]
  alignas(64) BF16 panel[2 * kLinearBlockSteps * kTilePairs];     // [tile of W][step][16, 32]
  alignas(64) BF16 w_tail[2 * kTilePairs];                        // last step of two tiles of W
  alignas(64) BF16 x_tail[kStep];                                 // and of a single row of x
  const BF16* w;                                                  // of the first output
  int64_t w_stride, outputs;
  const BF16* x;                   // packed: [tile][step][16 pairs][16 rows]; or a single row
  int64_t x_tile, x_step, x_line;  // elements from one tile, step and pair of x to the next
  int64_t x_tiles, steps, k;       // steps of K, the last perhaps not whole

  float* Sums(int64_t w_tile, int64_t x_tile_index) {
    return sums + (w_tile * x_tiles + x_tile_index) * kTileSums;
  }
  TileAt X(int64_t tile, int64_t step) const {
    if (x_line == 2 && (step + 1) * kStep > k) return {x_tail, 4};
    return {x + tile * x_tile + step * x_step, x_line * static_cast<int64_t>(sizeof(BF16))};
  }
  const BF16* W(int64_t tile, int64_t step) const {
    return w + tile * kTileSide * w_stride + step * kStep;
  }
};

// One tile of sums per 16 outputs and 16 rows of x: outputs [begin, begin + rows), x_rows rows.
inline TileShapes LinearShapes(int64_t rows, int64_t x_rows) {
  TileShapes out;
  for (int i = 0; i < 4; ++i) {
    out.rows[i] = static_cast<uint8_t>(rows);
    out.row_bytes[i] = static_cast<uint16_t>(4 * x_rows);
  }
  for (int i = 4; i < 6; ++i) out.rows[i] = static_cast<uint8_t>(rows);
  for (int i = 6; i < 8; ++i) out.row_bytes[i] = static_cast<uint16_t>(4 * x_rows);
  return out;
}

// Rows of W of a last step that is not whole, with zeros behind them.
inline void CopyWeightTail(TileLinear& s, int64_t w_tile, int64_t tiles) {
  const int64_t at = s.k / kStep * kStep;
  if (at == s.k) return;
  for (int64_t i = 0; i < tiles * kTileSide && w_tile * kTileSide + i < s.outputs; ++i)
    Amx::StorePairs(s.w_tail + i * kStep,
                    LoadPairsOf<Amx>(s.W(w_tile, 0) + i * s.w_stride, at, s.k));
}

// Asks for `lines` cache lines of rows of W from the line-th on, counted along K first.
struct WeightLines {
  const BF16* w;
  int64_t stride, lines_of_row, at, end;
  void Ask(int64_t lines) {
    for (const int64_t last = Min(at + lines, end); at < last; ++at)
      Amx::Prefetch(w + at / lines_of_row * stride + at % lines_of_row * kStep);
  }
};

// Few rows of x: all of K at once, while memory is asked for what comes next.
template <int64_t kM, int64_t kN>
inline void StreamWeights(TileLinear& s, int64_t w_tile) {
  const int64_t row_bytes = s.w_stride * static_cast<int64_t>(sizeof(BF16));
  const int64_t rows = Min(kM * kTileSide, s.outputs - w_tile * kTileSide);
  ZeroSums<kM, kN>();
  for (int64_t step = 0; step < s.steps; ++step) {
    const BF16* const ahead = s.W(w_tile, step) + kStreamAhead;
    for (int64_t i = 0; i < rows; ++i) Amx::Prefetch(ahead + i * s.w_stride);
    const bool whole = (step + 1) * kStep <= s.k;
    AddStep<kM, kN>(
        [&](int64_t i) {
          return whole ? TileAt{s.W(w_tile + i, step), row_bytes}
                       : TileAt{s.w_tail + i * kTilePairs, kTileRowBytes};
        },
        [&](int64_t j) { return s.X(j, step); });
  }
  StoreSums<kM, kN>([&](int64_t i, int64_t j) { return s.Sums(w_tile + i, j); });
}

// Tiles [first, first + count) of W with up to 32 rows of x.
inline void MultiplyFew(TileLinear& s, int64_t first, int64_t count) {
  ForEachRun<2>(count, [&](int64_t at, auto tiles) {
    constexpr int64_t kM = decltype(tiles)::value;
    CopyWeightTail(s, first + at, kM);
    if (s.x_tiles == 1)
      StreamWeights<kM, 1>(s, first + at);
    else
      StreamWeights<kM, 2>(s, first + at);
  });
}

// Steps [begin, end) of 32 rows of W into the panel; zeros where there is nothing.
inline void CopyPanel(TileLinear& s, int64_t w_tile, int64_t begin, int64_t end) {
  for (int64_t row = 0; row < 2 * kTileSide; ++row) {
    const bool there = w_tile * kTileSide + row < s.outputs;
    const BF16* const from = there ? s.W(w_tile, 0) + row * s.w_stride : s.w;
    BF16* const to =
        s.panel + row / kTileSide * kLinearBlockSteps * kTilePairs + row % kTileSide * kStep;
    for (int64_t step = begin; step < end; ++step)
      Amx::StorePairs(to + (step - begin) * kTilePairs,
                      LoadPairsOf<Amx>(from, step * kStep, there ? s.k : step * kStep));
  }
}

// A block of K for kM tiles of W, in the panel, and all rows of x, while the rows of W behind them
// are asked for.
template <int64_t kM>
inline void AddPanel(TileLinear& s, int64_t w_tile, int64_t begin, int64_t end) {
  const int64_t next = (w_tile + kM) * kTileSide;
  const int64_t next_rows = Max(0, Min(2 * kTileSide, s.outputs - next));
  WeightLines ahead{s.w + next * s.w_stride + begin * kStep, s.w_stride, end - begin, 0,
                    next_rows * (end - begin)};
  const int64_t lines = 4 * kTileSide / s.x_tiles + 1;
  ForEachRun<2>(s.x_tiles, [&](int64_t x_tile, auto tiles) {
    constexpr int64_t kN = decltype(tiles)::value;
    const auto sums = [&](int64_t i, int64_t j) { return s.Sums(w_tile + i, x_tile + j); };
    if (begin == 0)
      ZeroSums<kM, kN>();
    else
      LoadSums<kM, kN>(sums);
    for (int64_t step = begin; step < end; ++step) {
      ahead.Ask(lines);
      AddStep<kM, kN>(
          [&](int64_t i) {
            const int64_t tile = i * kLinearBlockSteps + step - begin;
            return TileAt{s.panel + tile * kTilePairs, kTileRowBytes};
          },
          [&](int64_t j) { return s.X(x_tile + j, step); });
    }
    StoreSums<kM, kN>(sums);
  });
}

// All of W with more than 32 rows of x.
inline void MultiplyMany(TileLinear& s) {
  const int64_t w_tiles = (s.outputs + kTileSide - 1) / kTileSide;
  for (int64_t begin = 0; begin < s.steps; begin += kLinearBlockSteps)
    for (int64_t tile = 0; tile < w_tiles; tile += 2) {
      const int64_t end = Min(begin + kLinearBlockSteps, s.steps);
      CopyPanel(s, tile, begin, end);
      if (tile + 1 < w_tiles)
        AddPanel<2>(s, tile, begin, end);
      else
        AddPanel<1>(s, tile, begin, end);
    }
}

// y = sums (+ bias), 16 outputs and up to 16 rows of x.
inline void StoreTile(const LinearTask& t, const float* sums, int64_t output, int64_t row) {
  const int64_t outputs = Min(kTileSide, t.n - output);
  Amx::Words words[kTileSide];
  for (int64_t i = 0; i < kTileSide; ++i) words[i] = Amx::LoadWords(sums + i * kTileSide);
  Amx::Transpose(words);
  const Amx::Vec bias =
      t.bias == nullptr ? Amx::Zero() : Amx::LoadPartial(t.bias + output, outputs);
  for (int64_t i = 0; i < Min(kTileSide, t.m - row); ++i) {
    const Amx::Vec sum = Amx::Floats(words[i]);
    StoreNext<Amx>(t.y + (row + i) * t.y_stride + output,
                   t.bias == nullptr ? sum : Amx::Add(sum, bias), outputs);
  }
}

// Packs 16 rows of activations (fewer: zeros for the rest) as B: [step][pair][row].
inline void PackActivations(const PackTask& t) {
  for (int64_t at = 0; at < t.k; at += kStep) {
    Amx::Words words[kTileSide];
    for (int64_t i = 0; i < kTileSide; ++i)
      words[i] = Amx::WordsOf(
          i < t.rows ? LoadPairsOf<Amx>(static_cast<const BF16*>(t.x) + i * t.x_stride, at, t.k)
                     : Amx::LoadPairsPartial(static_cast<const BF16*>(t.x), 0));
    Amx::Transpose(words);
    for (int64_t i = 0; i < kTileSide; ++i)
      Amx::StoreWords(static_cast<BF16*>(t.packed) + at * kTileSide + i * kStep, words[i]);
  }
}

// Requires: x and w are bf16, no scales; t.packed unless m is 1.
inline void LinearAmx(const LinearTask& t) {
  TileLinear s;
  s.w = static_cast<const BF16*>(t.w);
  s.w_stride = t.w_stride;
  s.outputs = t.n;
  s.k = t.k;
  s.steps = (t.k + kStep - 1) / kStep;
  s.x_tiles = (t.m + kTileSide - 1) / kTileSide;
  s.x = static_cast<const BF16*>(t.m == 1 ? t.x : t.packed);
  s.x_tile = s.steps * kTilePairs;
  s.x_step = t.m == 1 ? kStep : kTilePairs;
  s.x_line = t.m == 1 ? 2 : kStep;
  if (t.m == 1) Amx::StorePairs(s.x_tail, LoadPairsOf<Amx>(s.x, (s.steps - 1) * kStep, t.k));

  const int64_t whole = t.n / kTileSide;
  const int64_t rest = t.n % kTileSide;
  const int64_t x_rows = t.m == 1 ? 1 : kTileSide;
  if (s.x_tiles > 2) {
    const TileScope scope{TileShapes{}};
    MultiplyMany(s);
  } else {
    if (whole > 0) {
      const TileScope scope{LinearShapes(kTileSide, x_rows)};
      MultiplyFew(s, 0, whole);
    }
    if (rest > 0) {  // nothing behind the last row of W may be read
      const TileScope scope{LinearShapes(rest, x_rows)};
      MultiplyFew(s, whole, 1);
    }
  }
  for (int64_t row = 0; row < t.m; row += kTileSide)
    for (int64_t output = 0; output < t.n; output += kTileSide)
      StoreTile(t, s.Sums(output / kTileSide, row / kTileSide), output, row);
}

}  // namespace
}  // namespace latte::cpu
