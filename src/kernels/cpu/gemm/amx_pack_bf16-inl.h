// Packing for gemm_amx_bf16-inl.h: panels of B as bf16 tiles, A as [K step of 32][pair of
// columns][row]. With fp8 B, the columns of A and B are in the order of amx_fp8-inl.h.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/amx_tile-inl.h"
#include "src/kernels/cpu/common/bf16_pair-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/amx_fp8-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kPanelSteps = 8;  // K steps of a panel
constexpr int64_t kPanelColumns = kPanelSteps * kStep;

// The rows of B of a pass: every `step`-th row of a task from row `first`.
template <class T>
struct BRows {
  const T* w;
  int64_t stride;  // elements from one of them to the next
  int64_t count;
  int64_t first, step;

  int64_t OutputOf(int64_t row) const { return first + row * step; }
};

// Columns that are packed together; K steps behind the last column are zero.
template <class T>
constexpr int64_t kUnit = kStep;
template <>
inline constexpr int64_t kUnit<F8> = kF8Block;

template <class T>
constexpr int64_t StepsTo(int64_t column) {
  return RoundUp(column, kUnit<T>) / kStep;
}

// Stores whole K steps from column `at` as bf16, kTilePairs apart; returns the first column that is
// left. Types that need widening also prefetch the panel after the next.
inline int64_t WidenSteps(const BF16* row, int64_t at, int64_t end, BF16* to) {
  for (; at + kStep <= end; at += kStep, to += kTilePairs)
    Amx::StorePairs(to, Amx::LoadPairs(row + at));
  return at;
}
template <class T, class Widener>
inline int64_t WidenSteps(const T* row, const Widener& widener, int64_t at, int64_t end, BF16* to) {
  for (; at + 2 * kStep <= end; at += 2 * kStep, to += 2 * kTilePairs) {
    __builtin_prefetch(row + at + kPanelColumns);
    Amx::WidenPairs(row + at, widener, to, to + kTilePairs);
  }
  return at;
}

inline void WidenBlock(const F8* from, const AmxF8::Constants& c, BF16* to) {
  const AmxF8::Codes block[2] = {AmxF8::LoadCodes(from), AmxF8::LoadCodes(from + 64)};
  const bool any = AmxF8::AnyOutlier(
      AmxF8::Either(AmxF8::OutliersOf(block[0], c), AmxF8::OutliersOf(block[1], c)), c);
  for (int64_t i = 0; i < 2; ++i, to += 2 * kTilePairs) {
    const AmxF8::Codes codes = AmxF8::InOrder(block, i);
    AmxF8::Halves steps = AmxF8::WidenNormals(codes, c);
    if (any) [[unlikely]]
      steps = AmxF8::WidenAny(codes);
    AmxF8::StorePairs(to, steps.low);
    AmxF8::StorePairs(to + kTilePairs, steps.high);
  }
}
inline int64_t WidenSteps(const F8* row, const AmxF8::Constants& c, int64_t at, int64_t end,
                          BF16* to) {
  for (; at + kF8Block <= end; at += kF8Block, to += kF8Steps * kTilePairs) {
    for (int64_t line = 0; line < kF8Block; line += 64)
      __builtin_prefetch(row + at + line + kPanelColumns);
    WidenBlock(row + at, c, to);
  }
  return at;
}

// The columns that WidenSteps leaves, padded with zeros.
template <class T>
inline void WidenRest(const T* row, int64_t at, int64_t end, int64_t k, BF16* to) {
  for (; at < end; at += kStep, to += kTilePairs) {
    const int64_t left = Max(0, Min(kStep, k - at));
    Amx::StorePairs(
        to, left == kStep ? Amx::LoadPairs(row + at) : Amx::LoadPairsPartial(row + at, left));
  }
}

// e4m3 rows are padded with ones, a normal value; A is zero there.
inline void WidenRest(const F8* row, int64_t at, int64_t end, int64_t k, BF16* to) {
  const AmxF8::Constants constants = AmxF8::MakeConstants();
  for (; at < end; at += kF8Block, to += kF8Steps * kTilePairs) {
    F8 block[kF8Block];
    AmxF8::CopyCodes(row + at, k - at, kF8Block, block);
    WidenBlock(block, constants, to);
  }
}

inline AmxF8::Constants WidenerOf(const F8*) { return AmxF8::MakeConstants(); }
template <class T>
inline auto WidenerOf(const T* w) {
  return Amx::WidenerOf(w);
}

// A packed panel, [tile][K step][16, 32].
template <class T>
struct WeightPanel {
  const BRows<T>* w;
  int64_t w_tile, begin, end;  // columns
  BF16* data;

  // Packs rows [first, last); missing rows are zero.
  void Fill(int64_t first, int64_t last, int64_t k) const {
    if constexpr (sizeof(T) == 1) {
      const auto widener = WidenerOf(w->w);
      FillWith(first, last, k, [&](const T* row, int64_t columns, BF16* to) {
        return WidenSteps(row, widener, begin, columns, to);
      });
    } else {
      FillWith(first, last, k, [&](const T* row, int64_t columns, BF16* to) {
        return WidenSteps(row, begin, columns, to);
      });
    }
  }
  template <class Widen>
  void FillWith(int64_t first, int64_t last, int64_t k, const Widen& widen) const {
    for (int64_t i = first; i < last; ++i) {
      const int64_t at = w_tile * kTileSide + i;
      const T* const row = w->w + Min(at, w->count - 1) * w->stride;
      const int64_t columns = at < w->count ? k : 0;
      BF16* const to = data + i / kTileSide * kPanelSteps * kTilePairs + i % kTileSide * kStep;
      const int64_t done = Max(begin, widen(row, Min(end, columns), to));
      if (done < end) WidenRest(row, done, end, columns, to + (done - begin) / kStep * kTilePairs);
    }
  }
  TileAt At(int64_t tile, int64_t step) const {
    return {data + (tile * kPanelSteps + step - begin / kStep) * kTilePairs, kTileRowBytes};
  }
};

// Columns [at, at + 32) of row i of A; zero where A ends.
inline Amx::Words WordsAt(const PackTask& t, int64_t i, int64_t at) {
  const auto* const x = static_cast<const BF16*>(t.x);
  if (i >= t.rows || at >= t.k) return Amx::WordsOf(Amx::LoadPairsPartial(x, 0));
  return Amx::WordsOf(LoadRowPairs<Amx>(x + i * t.x_stride, at, t.k));
}

// Transposes 16 rows of a K step and stores them.
inline void PackStep(const PackTask& t, int64_t step, Amx::Words (&words)[kTileSide]) {
  Amx::Transpose(words);
  for (int64_t i = 0; i < kTileSide; ++i)
    Amx::StoreWords(static_cast<BF16*>(t.packed) + step * kTilePairs + i * kStep, words[i]);
}

// For fp8 B: columns in the order of amx_fp8-inl.h.
inline void PackAForFp8(const PackTask& t) {
  for (int64_t at = 0; at < t.k; at += kF8Block) {
    Amx::Words words[kF8Steps][kTileSide];
    for (int64_t i = 0; i < kTileSide; ++i) {
      Amx::Words row[kF8Steps];
      for (int64_t j = 0; j < kF8Steps; ++j) row[j] = WordsAt(t, i, at + j * kStep);
      AmxF8::PutInOrder(row);
      for (int64_t j = 0; j < kF8Steps; ++j) words[j][i] = row[j];
    }
    for (int64_t j = 0; j < kF8Steps; ++j) PackStep(t, at / kStep + j, words[j]);
  }
}

// Packs 16 rows of A as [K step][pair][row]; missing rows are zero.
inline void PackABf16Amx(const PackTask& t) {
  if (t.w_type == Element::kF8E4M3) return PackAForFp8(t);
  for (int64_t at = 0; at < t.k; at += kStep) {
    Amx::Words words[kTileSide];
    for (int64_t i = 0; i < kTileSide; ++i) words[i] = WordsAt(t, i, at);
    PackStep(t, at / kStep, words);
  }
}

}  // namespace
}  // namespace latte::cpu
