// mha: expanded attention of up to 32 neighbouring queries of one head, causal by position.
//
// Work      launch_attention.cc makes a task of each head and run of queries. A task copies 64 keys
// and
//           values at a time into scratch (heads lie interleaved in memory, a power of two apart:
//           in place they would share a few sets of the L1) and uses them for all its queries.
//           Tiles as in mla_decode-inl.h.
// Roofline  2·(N+R+V) FLOP per query and key, bound by FMA from a few queries on.
// Order     keys in index order, blocks of 64 anchored at absolute position 0, so that a run of
//           keys may begin anywhere; see attention-inl.h. How queries are cut into calls or tasks
//           does not change a byte.
// Limits    N+R ≤ 512, V ≤ 512; stack 350 KiB.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/attention-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/tiles-inl.h"

namespace latte::cpu {
namespace {

// out[i] = [first[i] | second[i]]
template <class V>
void PackRows(const float* first, int64_t first_stride, int64_t first_width, const float* second,
              int64_t second_stride, int64_t second_width, int64_t rows, float* out) {
  const int64_t stride = ScratchStride(first_width + second_width);
  for (int64_t i = 0; i < rows; ++i) {
    WidenRow<V>(first + i * first_stride, first_width, out + i * stride);
    WidenRow<V>(second + i * second_stride, second_width, out + i * stride + first_width);
  }
}

template <class V>
void Mha(const MhaTask& t) {
  constexpr int64_t kMaxStride = ScratchStride(kMaxHeadWidth);
  alignas(64) float q[kMaxRows * kMaxStride];
  alignas(64) float k[kKeyBlock * kMaxStride];
  alignas(64) float v[kKeyBlock * kMaxStride];
  const int64_t k_stride = ScratchStride(t.n + t.r);
  const int64_t v_stride = ScratchStride(t.v_width);
  PackRows<V>(t.q_nope, t.q_nope_stride, t.n, t.q_rope, t.q_rope_stride, t.r, t.rows, q);

  AttentionRows<> a;
  a.rows = t.rows;
  a.width = t.n + t.r;
  a.v_width = t.v_width;
  a.q = q;
  a.q_stride = k_stride;
  a.o = t.o;
  a.o_stride = t.o_stride;
  a.scale = t.scale;
  Start(a);
  // Keys that the last row sees; earlier rows see fewer.
  const int64_t end = Min(t.keys, t.q_begin + t.rows - t.key_begin);
  for (int64_t begin = 0; begin < end;) {
    const int64_t block_end = kKeyBlock - (t.key_begin + begin) % kKeyBlock;
    const int64_t count = Min(block_end, end - begin);
    PackRows<V>(t.k_nope + begin * t.k_nope_stride, t.k_nope_stride, t.n,
                t.k_rope + begin * t.k_rope_stride, t.k_rope_stride, t.r, count, k);
    for (int64_t j = 0; j < count; ++j)
      WidenRow<V>(t.v + (begin + j) * t.v_stride, t.v_width, v + j * v_stride);
    for (int64_t i = 0; i < t.rows; ++i)
      a.visible[i] = Min(count, t.q_begin + i + 1 - (t.key_begin + begin));
    Attend<V>(a, {k, k_stride, v, v_stride, count});
    begin += count;
  }
  for (int64_t i = 0; i < t.rows; ++i) t.lse[i * t.lse_stride] = Finish<V>(a, i);
}

}  // namespace
}  // namespace latte::cpu
