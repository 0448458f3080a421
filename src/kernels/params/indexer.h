// The op of the lightning indexer, which chooses the keys of sparse attention. Symbols as in mla.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "src/kernels/op_work.h"
#include "src/kernels/params/position_list.h"
#include "src/kernels/params/sequence_chunk.h"
#include "src/tensor/cache_format.h"
#include "src/tensor/tensor.h"

namespace latte {

// clang-format off
// Scores the keys of every new token and lists the positions of the K best, in one pass: the scores
// of all keys never exist at once.
//
//   score[t,s]     = Σ_j weights[t,j] · max(q[t,j,:]·k[s,:], 0)     s ≤ position of t, j: heads of
//                  the indexer
//   positions[t,:] = the min(K, position of t + 1) positions with the highest scores
//
// Of equal scores the lower position is better; +0 and −0 are equal, and a NaN counts as −inf.
// max(NaN, 0) is 0. So the positions depend on the scores alone, not on chunks, batch, threads or
// the order in which keys are visited. Weights may be negative; then a score of 0 can be among the
// best. The positive factor (heads·width)^−1/2 of published code changes no choice and is left out.
//
// Source: DeepSeek-V3.2 report, §2.1, eq. 1.
// clang-format on
struct IndexTopKOp {
  static constexpr std::string_view kName = "index_topk";
  struct Params {
    // Row 0 of q, weights and positions is the first row of sequences[0], as in mla_decode.
    TensorView q;                              // [T, H, W] f32, rotated, last dimension contiguous
    TensorView weights;                        // [T, H] f32, last dimension contiguous
    TensorView pages;                          // [pages, P, W or bytes of a row], contiguous
    std::span<const SequenceChunk> sequences;  // rows without gaps
    TensorView positions;                      // [T, K] i32, written, as position_list.h defines it
    CacheRowFormat row_format = {};            // kPlain, or kF8 with no rope part
    // [T, K] f32, written: the scores of the listed positions, NaN as −inf; the rest of a row is 0.
    // Empty: not wanted. Kernels of GPUs write none.
    TensorView scores = {};
  };
  struct Shape {
    int64_t t, h, w, k, page_tokens;
    DType cache;
    CacheFormat kind = CacheFormat::kPlain;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) {
    return {p.q.shape[0],     p.q.shape[1],  p.q.shape[2],     p.positions.shape[1],
            p.pages.shape[1], p.pages.dtype, p.row_format.kind};
  }
  // The row of q at which a sequence begins.
  static int64_t FirstRow(const Params& p, const SequenceChunk& s) {
    return s.query_start - p.sequences.front().query_start;
  }
  // A token with at most K keys takes all of them, without scores if none are wanted.
  static OpWork WorkOf(const Params& p) {
    const Shape s = ShapeOf(p);
    OpWork out;
    for (const SequenceChunk& q : p.sequences) {
      if (q.total_len() <= s.k) continue;
      for (int64_t keys = std::max(q.cached_len, s.k) + 1; keys <= q.total_len(); ++keys)
        out.flops += 2 * s.h * s.w * keys;
      out.bytes += q.total_len() * p.pages.shape[2] * SizeOf(p.pages.dtype);
    }
    return out;
  }
};

}  // namespace latte
