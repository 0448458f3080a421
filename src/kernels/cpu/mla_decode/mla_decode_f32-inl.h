// mla_decode: absorbed attention of up to 64 rows, heads of tokens of one sequence, to its cached
// rows.
//
// Work      launch_mla_decode.cc makes the tasks. A task widens 64 cached rows at a time into scratch
//           (148 KiB at C+R = 576, in L2) and uses them for all its rows: scores in dot form,
//           kTileRows rows × 4 keys, nothing transposed; outputs in outer form, kTileRows rows × 4
//           vectors of C, a panel of 64 keys × 4 vectors staying in L1.
// Roofline  2·(2C+R)·H FLOP per cached row of 2·(C+R) bytes: 1.9·H FLOP per byte at C = 512 and
//           R = 64; bound by FMA from a few heads on.
// Order     keys in index order, blocks of 64 anchored at position 0; see online_softmax-inl.h. Neither
//           grouping of rows nor page size, batch or threads change a byte.
// Limits    C+R ≤ 1152; scratch 590 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/cached_row-inl.h"
#include "src/kernels/cpu/common/merge_splits-inl.h"
#include "src/kernels/cpu/common/online_softmax-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/mla_decode/prefetch_pages-inl.h"
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
  auto& scratch = InScratch<DecodeScratch>(t.scratch);
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
  NextBlock ahead;
  for (int64_t part = 0; part < t.splits; ++part) {
    const DecodeSplit split = TakeSplit(t, part);
    a.o = split.out.o;
    Start(a);
    for (int64_t begin = split.begin; begin < split.end; begin += kKeyBlock) {
      const int64_t count = Min(kKeyBlock, split.end - begin);
      for (int64_t i = 0; i < t.rows; ++i) a.visible[i] = Min(count, t.q[i].visible - begin);
      ahead.Start(t, begin + kKeyBlock, kKeyBlock, 4, (count + 3) / 4);
      // Scores are taken while keys are in L1; values are their first C columns.
      Attend<V>(a, {keys, stride, keys, stride, count}, [&](int64_t first) {
        ahead.template Ask<V>();
        for (int64_t j = first; j < Min(first + 4, count); ++j)
          WidenCachedRow<V>(t.cache, CachedRowOf(t, begin + j), keys + j * stride);
      });
    }
    StoreMaxAndSum(a, split.out);
  }
}

}  // namespace
}  // namespace latte::cpu
