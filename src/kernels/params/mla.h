// Attention ops: their arguments, with shapes.
//
// Symbols: B sequences · T new tokens · S keys · H heads · P tokens per page · C, R widths of a
// cached row's latent and rope part · N, R, V widths per head of the expanded form.
//
// Conventions: scores are scaled, then exponentiated in f32. lse is a natural logarithm. A query
// that sees no key has lse = −inf and a zero output. The result of one (token, head) depends only
// on its query and its keys: blocks of keys are anchored at absolute positions, so chunking, batch
// and threads change no byte.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "src/kernels/op_work.h"
#include "src/kernels/params/position_list.h"
#include "src/kernels/params/sequence_chunk.h"
#include "src/tensor/cache_format.h"
#include "src/tensor/key_owner.h"
#include "src/tensor/tensor.h"

namespace latte {

// Pages of a cache are [pages, P, W]: W numbers of f32, f16 or bf16 per row, or W bytes (u8) per
// row of a quantised format.

// Writes the cached rows of the new tokens into their pages: row t = [first[t,:] | second[t,:]],
// rounded to the dtype of the cache or quantised to its format. For a quantised format, first is
// the latent and second the rope part. A row whose slot is −1 is not written: another rank has its
// page. Kernels of GPUs take no such slot.
struct AppendOp {
  static constexpr std::string_view kName = "append";
  struct Params {
    TensorView first;                // [T, A] f32, last dimension contiguous
    TensorView second;               // [T, W−A] f32, last dimension contiguous; may be empty
    TensorView pages;                // [pages, P, W], written, contiguous
    std::span<const int64_t> slots;  // [T] page·P + place in the page
    CacheRowFormat row_format = {};
  };
  struct Shape {
    int64_t t, first, second;
    DType cache;
    CacheFormat kind = CacheFormat::kPlain;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) {
    return {p.first.shape[0], p.first.shape[1], p.second.empty() ? 0 : p.second.shape[1],
            p.pages.dtype, p.row_format.kind};
  }
};

// All work between the projections of a step and its attention, in one pass. Row t of `latent` is
// [c_kv | k_rope]: c_kv is normed, k_rope and q_rope[t] are rotated by the angles of row t, and the
// row is written into its cache page. The bytes equal RmsNormOp, then RopeOp, then AppendOp.
struct NormRopeAppendOp {
  static constexpr std::string_view kName = "norm_rope_append";
  struct Params {
    TensorView latent;  // [T, C+R] f32, read and written, last dimension contiguous
    TensorView q_rope;  // [T, H, R] f32, read and written, last dimension contiguous; H may be 0
    TensorView w;       // [C] f32, f16 or bf16: of the norm
    float eps = 0;
    TensorView cos;                  // [T, R/2] f32, contiguous; empty: nothing is rotated
    TensorView sin;                  // [T, R/2] f32, contiguous
    bool interleaved = true;         // as in RopeOp
    TensorView pages;                // [pages, P, W], written, contiguous; empty: none is written
    std::span<const int64_t> slots;  // [T] as in AppendOp
    CacheRowFormat row_format = {};
  };
  struct Shape {
    int64_t t, h, c, r;
    DType w, cache;
    CacheFormat kind = CacheFormat::kPlain;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) {
    const int64_t c = p.w.shape[0];
    return {p.latent.shape[0], p.q_rope.shape[1], c, p.latent.shape[1] - c, p.w.dtype,
            p.pages.dtype,     p.row_format.kind};
  }
};

// Reads rows [key_begin, key_begin + S) of one sequence out of its pages and converts them to f32,
// exactly.
struct GatherPagesOp {
  static constexpr std::string_view kName = "gather_pages";
  struct Params {
    TensorView pages;                     // [pages, P, W], contiguous
    std::span<const int32_t> page_table;  // pages of the sequence in order
    int64_t key_begin = 0;
    TensorView y;   // [S, C+R] f32, written, contiguous
    int64_t c = 0;  // of quantised rows: the width of the latent
    CacheRowFormat row_format = {};
  };
  struct Shape {
    int64_t s, w, c;
    DType cache;
    CacheFormat kind = CacheFormat::kPlain;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) {
    return {p.y.shape[0], p.y.shape[1], p.c, p.pages.dtype, p.row_format.kind};
  }
};

// Attention of M rows, not normalised: o = Σ_j e^(s_j−max)·c_kv[j], max = max_j s_j, sum = Σ_j
// e^(s_j−max). A row without keys has zeros, and −inf as max.
struct SplitResults {
  TensorView o;    // [M, C] f32, contiguous
  TensorView max;  // [M] f32
  TensorView sum;  // [M] f32
};

// clang-format off
// Absorbed attention: every new token attends, in latent space, to the cached tokens of its
// sequence up to and including itself or, if there are lists of positions, to the listed ones. With
// several owners of keys, a call attends to the keys of one of them: a token without such keys has
// a zero output.
//
//   s[t,h,j]        = scale · ( q_latent[t,h,:]·c_kv[j,:] + q_rope[t,h,:]·k_rope[j,:] )
//                     for the keys j ≤ position of t, or the keys j in the list of t
//   o_latent[t,h,:] = Σ_j softmax_j(s[t,h,:]) · c_kv[j,:]
//   lse[t,h]        = log Σ_j exp(s[t,h,j])
//
// Source: DeepSeek-V2 (arXiv 2405.04434) §2.1.2–2.1.3, with W_UK moved into q and W_UV out of o.
// clang-format on
struct MlaDecodeOp {
  static constexpr std::string_view kName = "mla_decode";
  struct Params {
    // Row 0 of q_latent, q_rope, o_latent and lse is the first row of sequences[0], whatever its
    // query_start is: sequences may begin within a step.
    TensorView q_latent;                       // [T, H, C] f32, last dimension contiguous
    TensorView q_rope;                         // [T, H, R] f32, rotated, last dimension contiguous
    TensorView pages;                          // [pages, P, W], contiguous; latent first, then rope
    std::span<const SequenceChunk> sequences;  // rows without gaps
    TensorView o_latent;                       // [T, H, C] f32, written, contiguous
    TensorView lse;                            // [T, H] f32, written, contiguous; may be empty
    float scale = 0;                           // (N+R)^−1/2 · mscale²
    CacheRowFormat row_format = {};
    // [T, K] i32, as position_list.h defines it; empty: all keys. A list of all keys up to a token
    // gives the bytes of attention without lists.
    TensorView positions = {};
    // The keys that are read; pages of others may have any number. Kernels of GPUs take one owner
    // only; if there are lists of positions, kernels of processors too.
    KeyOwner owner = {};
    // Empty, or the result of each split of the owner, written in place of o_latent and lse: of
    // sequences[0] all rows (token, head) of its first split, then of its second; then of
    // sequences[1]. M = H · RowsOfSplits. The bytes are those that MergeSplitsOp needs to give what
    // one owner of all keys gives.
    SplitResults splits = {};
  };
  struct Shape {
    int64_t t, h, c, r, page_tokens;
    DType cache;
    CacheFormat kind = CacheFormat::kPlain;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) {
    return {p.q_latent.shape[0], p.q_latent.shape[1], p.q_latent.shape[2], p.q_rope.shape[2],
            p.pages.shape[1],    p.pages.dtype,       p.row_format.kind};
  }
  // The row of q_latent at which a sequence begins.
  static int64_t FirstRow(const Params& p, const SequenceChunk& s) {
    return s.query_start - p.sequences.front().query_start;
  }
  // The number of splits of `owner` in each sequence, times its new tokens, in total.
  static int64_t RowsOfSplits(std::span<const SequenceChunk> sequences, const KeyOwner& owner) {
    int64_t rows = 0;
    for (const SequenceChunk& s : sequences) rows += owner.SplitsOf(s.total_len()) * s.count;
    return rows;
  }
  static OpWork WorkOf(const Params& p) {
    const Shape s = ShapeOf(p);
    OpWork out;
    const auto add = [&](int64_t pairs, int64_t keys) {
      pairs /= p.owner.count, keys /= p.owner.count;
      out.flops += 2 * s.h * (2 * s.c + s.r) * pairs;
      out.bytes += keys * p.pages.shape[2] * SizeOf(p.pages.dtype);
    };
    // New token i sees total_len − count + i + 1 keys; of these a list has as many as it has room
    // for. The lists themselves may lie where the host cannot read them.
    for (const SequenceChunk& q : p.sequences) {
      if (p.positions.empty()) {
        add(q.count * q.total_len() - q.count * (q.count - 1) / 2, q.total_len());
        continue;
      }
      for (int64_t i = 0; i < q.count; ++i) {
        const int64_t keys = std::min(p.positions.shape[1], q.cached_len + i + 1);
        add(keys, keys);
      }
    }
    return out;
  }
};

// Merges the results of attention of M rows to several splits of keys, from left to right, and
// normalises: the second half of mla_decode.
//
//   max' = max(max, max_b)      e = e^(max − max'), e_b = e^(max_b − max')
//   o' = e·o + e_b·o_b          sum' = e·sum + e_b·sum_b
//   at the end                  o / sum, and lse = max + log sum
struct MergeSplitsOp {
  static constexpr std::string_view kName = "merge_splits";
  struct Params {
    std::span<const SplitResults> splits;  // in the order of keys; the first has keys for every row
    TensorView o;                          // [M, C] f32, written, contiguous
    TensorView lse;                        // [M] f32, written; may be empty
  };
  struct Shape {
    int64_t m, c;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) { return {p.o.shape[0], p.o.shape[1]}; }
};

// clang-format off
// Expanded attention of one sequence to a contiguous range of keys: multi-head attention with a
// causal mask by absolute position. Queries and keys are N+R wide, values V.
//
//   s[t,h,j] = scale · ( q_nope[t,h,:]·k_nope[j,h,:] + q_rope[t,h,:]·k_rope[j,h,:] )
//              for the keys with key_begin + j ≤ q_begin + t
//   o[t,h,:] = Σ_j softmax_j(s[t,h,:]) · v[j,h,:]
//   lse[t,h] = log Σ_j exp(s[t,h,j])
//
// Under bf16 arithmetic a kernel may round queries, keys, values and probabilities to bf16 before
// it multiplies them. It never rounds the sum of the probabilities, and therefore not lse.
// clang-format on
struct MhaOp {
  static constexpr std::string_view kName = "mha";
  struct Params {
    TensorView q_nope;      // [T, H, N] f32, last dimension contiguous
    TensorView q_rope;      // [T, H, R] f32, rotated, last dimension contiguous
    TensorView k_nope;      // [S, H, N] f32, last dimension contiguous
    TensorView k_rope;      // [S, H, R] f32, last dimension contiguous; stride 0 over H if shared
    TensorView v;           // [S, H, V] f32, last dimension contiguous
    int64_t q_begin = 0;    // absolute position of query 0
    int64_t key_begin = 0;  // absolute position of key 0
    TensorView o;           // [T, H, V] f32, written, contiguous
    TensorView lse;         // [T, H] f32, written, contiguous
    float scale = 0;        // above 0
    DType arithmetic = DType::kF32;  // the step's: f32, f16 or bf16
  };
  struct Shape {
    int64_t t, s, h, n, r, v;
    DType arithmetic;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) {
    return {p.q_nope.shape[0], p.k_nope.shape[0], p.q_nope.shape[1], p.q_nope.shape[2],
            p.q_rope.shape[2], p.v.shape[2],      p.arithmetic};
  }
  static OpWork WorkOf(const Params& p) {
    const Shape s = ShapeOf(p);
    int64_t pairs = 0;
    for (int64_t t = 0; t < s.t; ++t)
      pairs += std::clamp<int64_t>(p.q_begin + t + 1 - p.key_begin, 0, s.s);
    return {2 * s.h * (s.n + s.r + s.v) * pairs, 0};
  }
};

// clang-format off
// Merges the result (o_b, lse_b) of attention to later keys into the result (o, lse) of earlier
// ones:
//
//   lse' = log( e^lse + e^lse_b )      o' = e^(lse − lse')·o + e^(lse_b − lse')·o_b
//
// A result with lse = −inf contributes nothing, whatever its o holds; +inf counts as −inf.
// clang-format on
struct LseMergeOp {
  static constexpr std::string_view kName = "lse_merge";
  struct Params {
    TensorView o;      // [M, V] f32, read and written, contiguous
    TensorView lse;    // [M] f32, read and written
    TensorView o_b;    // [M, V] f32, contiguous
    TensorView lse_b;  // [M] f32
  };
  struct Shape {
    int64_t m, v;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) { return {p.o.shape[0], p.o.shape[1]}; }
};

}  // namespace latte
