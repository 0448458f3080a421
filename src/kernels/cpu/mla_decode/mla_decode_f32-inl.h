// mla_decode, f32 over caches of every format: score tile kTileRows × 4 keys, value tile
// kTileRows × 4 vectors, FMA; up to 64 rows per task; AVX2 (kTileRows 3) and AVX-512 (6).
// A row is one (token, head) pair of one sequence.
//
// Packing    64 cached rows at a time are converted to f32 in scratch (148 KiB at C+R = 576, in the
//            L2) and serve all rows of the task. Nothing is transposed.
// Blocking   Scores are dot products over C+R (DotTile). Values are outer products over the keys
//            (OuterTile); a panel of 64 keys × 4 vectors of C stays in the L1.
// Epilogue   o, max and sum of every split, not normalised; merge_splits-inl.h merges them.
// Order      Keys in index order, blocks of 64 anchored at position 0. Grouping of rows, page size,
//            batch and threads change no byte.
// Limits     C+R ≤ 1152; scratch 590 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/cached_row-inl.h"
#include "src/kernels/cpu/common/merge_splits-inl.h"
#include "src/kernels/cpu/common/online_softmax-inl.h"
#include "src/kernels/cpu/common/prefetch_pages-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

struct DecodeScratch {
  static constexpr int64_t kMaxStride = ScratchStride(kMaxDecodeWidth);
  alignas(64) float q[kMaxDecodeRows * kMaxStride];
  alignas(64) float keys[kKeyBlock * kMaxStride];
};

template <class V>
void MlaDecode(const DecodeTask& t) {
  auto& scratch = ScratchAs<DecodeScratch>(t.scratch);
  float* const q = scratch.q;
  float* const keys = scratch.keys;
  const int64_t width = t.c + t.r;
  const int64_t stride = ScratchStride(width);
  for (int64_t i = 0; i < t.rows; ++i) {
    WidenRow<V>(t.q[i].q_latent, t.c, q + i * stride);
    WidenRow<V>(t.q[i].q_rope, t.r, q + i * stride + t.c);
  }

  AttentionRows<kKeyBlock, kMaxDecodeRows> a;
  a.rows = t.rows;
  a.width = width;
  a.v_width = t.c;
  a.q = q;
  a.q_stride = stride;
  a.o_stride = t.c;
  a.scale = t.scale;
  PagePrefetch prefetch;
  for (int64_t part = 0; part < t.splits; ++part) {
    const DecodeSplit split = BeginSplit(t, part);
    a.o = split.out.o;
    Start(a);
    for (int64_t begin = split.begin; begin < split.end; begin += kKeyBlock) {
      const int64_t count = Min(kKeyBlock, split.end - begin);
      for (int64_t i = 0; i < t.rows; ++i) a.visible[i] = Min(count, t.q[i].visible - begin);
      prefetch.Start(t, begin + kKeyBlock, kKeyBlock, 4, (count + 3) / 4);
      // The rows are converted just before their scores, while they are in the L1. Values are their
      // first C columns.
      Attend<V>(a, {keys, stride, keys, stride, count}, [&](int64_t first) {
        prefetch.PrefetchNext();
        for (int64_t j = first; j < Min(first + 4, count); ++j)
          WidenCachedRow<V>(t.cache, CachedRowOf(t, begin + j), keys + j * stride);
      });
    }
    StoreMaxAndSum(a, split.out);
  }
}

}  // namespace
}  // namespace latte::cpu
