// Matrix products and pointwise ops: the interface between layers and kernels. Activations are f32;
// a GEMM also takes them rounded to 16 or 8 bits. Outputs are f32. Sizes may differ from call to
// call. Strides count elements.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>

#include "src/base/math.h"
#include "src/kernels/op_work.h"
#include "src/tensor/tensor.h"

namespace latte {

// Scales of a weight that is quantised in blocks. Element (i, j) of the weight is, exactly,
// (value − zero) · scale[(row_begin + i) / rows, (column_begin + j) / columns]. A slice or a head
// may begin inside a block; column_begin and columns of a kU4 weight are even.
// Sources: DeepSeek-V3 (arXiv 2412.19437) §3.3.2 for fp8 blocks of 128×128; compressed-tensors,
// GPTQ and AWQ for scale groups along K (rows = 1); columns = K for one scale per row.
struct BlockScale {
  TensorView scale;  // [block rows, block columns] f32, bf16 or f16, last dimension contiguous, any
                     // alignment; empty: scale 1
  int64_t rows = 128;
  int64_t columns = 128;
  int64_t row_begin = 0;     // position of W[0]'s first row in the whole weight
  int64_t column_begin = 0;  // position of its first column
  int64_t batch_rows = 0;    // rows from W[b] to W[b+1]
  TensorView zero;  // [block rows, block columns] u8 from 0 to 16, last dimension contiguous,
                    // of a kU4 weight; empty: 8 for kU4, 0 for other types

  // Length of the scale groups of a row of `k` values: the largest g such that values
  // [i·g, (i+1)·g) share a scale for every i; k if all values share one.
  int64_t ScaleGroup(int64_t k) const {
    if (scale.empty() || column_begin % columns + k <= columns) return k;
    return std::gcd(columns, column_begin);
  }
};

// Bytes of a weight [B, N, width] and of its scales; k: values of a row.
inline int64_t WeightBytes(const TensorView& w, const BlockScale& s, int64_t k) {
  const int64_t bytes = w.shape[0] * w.shape[1] * w.shape[2] * SizeOf(w.dtype);
  if (s.scale.empty()) return bytes;
  const int64_t scales = CeilDiv(w.shape[0] * w.shape[1], s.rows) * CeilDiv(k, s.columns);
  return bytes + scales * (SizeOf(s.scale.dtype) + (s.zero.empty() ? 0 : 1));
}

// A matrix as a batch of one.
inline TensorView BatchOfOne(const TensorView& m) {
  TensorView out = m;
  out.rank = 3;
  out.shape = {1, m.shape[0], m.shape[1]};
  out.stride = {m.shape[0] * m.stride[0], m.stride[0], m.stride[1]};
  return out;
}

// The type that kernels must read to multiply w and its gate: that of w, if it is the gate's too.
// Kernels that read blocks, or f32 with an x of 16 bits, read all plain numbers and all blocks.
inline DType TypeToRead(const TensorView& w, const TensorView& gate) {
  if (gate.empty() || gate.dtype == w.dtype || IsBlocks(w.dtype)) return w.dtype;
  return IsBlocks(gate.dtype) ? gate.dtype : DType::kF32;
}

// One GEMM, y[b] = x[b]·W[b]ᵀ (+ bias): A = x [M, K], B = W [N, K]. With a gate it computes
// y = silu(x·Gᵀ) ⊙ (x·Wᵀ), silu(z) = z / (1 + e^−z).
struct GemmProblem {
  TensorView x;             // [B, M, K] f32, bf16, f16 or i8; last dimension contiguous
  TensorView w;             // [B, N, K] f32, f16, bf16, f8 or i8, [B, N, ⌈K/2⌉] kU4, or
                            // [B, N, K/values] blocks; last dimension contiguous, any alignment
  TensorView bias;          // [N] f32, contiguous; may be empty, must be empty with a gate
  TensorView y;             // [B, M, N] f32, written; last dimension contiguous
  BlockScale w_scale = {};  // of an f8, i8 or u4 weight
  TensorView x_scale;       // of an i8 x: [B, M, ⌈K/x_group⌉] f32, last dimension contiguous
  int64_t x_group = 0;      // activations per scale, counted from column 0
  TensorView gate;  // as w; of another type only if both are plain numbers or blocks; may be
                    // empty
  BlockScale gate_scale = {};  // blocks of the same size as in w_scale
};

// A grouped GEMM: one call computes several problems. The threads share the tasks of all problems,
// and every weight is read once. The order of each sum along K depends on the kernel, K and the
// blocks of the scales alone, never on M, B, the thread count or the other problems.
struct GemmOp {
  static constexpr std::string_view kName = "gemm";
  struct Params {
    // At least one. All have the same dtype of x, TypeToRead, x_group and scale group, or one scale
    // per row.
    std::span<const GemmProblem> problems;
  };
  struct Shape {
    int64_t b, m, n, k;  // b and k of the first problem, the largest m, the sum of all n
    DType x, w;
    int64_t x_group = 0;      // of an i8 x
    int64_t scale_group = 0;  // BlockScale::ScaleGroup of a weight with scales; 0 without
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) {
    const GemmProblem& first = p.problems.front();
    Shape out = ShapeOf(first);
    for (const GemmProblem& problem : p.problems.subspan(1)) {
      out.m = std::max(out.m, problem.x.shape[1]);
      out.n += problem.w.shape[1];
    }
    return out;
  }
  static Shape ShapeOf(const GemmProblem& p) {
    const int64_t k = p.x.shape[2];
    return {p.x.shape[0], p.x.shape[1],
            p.w.shape[1], k,
            p.x.dtype,    TypeToRead(p.w, p.gate),
            p.x_group,    p.w_scale.scale.empty() ? 0 : p.w_scale.ScaleGroup(k)};
  }
  static OpWork WorkOf(const Params& p) {
    OpWork out;
    for (const GemmProblem& problem : p.problems) {
      const int64_t k = problem.x.shape[2];
      const int64_t gemms = problem.gate.empty() ? 1 : 2;
      out.flops += 2 * gemms * problem.y.shape[0] * problem.y.shape[1] * problem.y.shape[2] * k;
      out.bytes += WeightBytes(problem.w, problem.w_scale, k);
      if (gemms > 1) out.bytes += WeightBytes(problem.gate, problem.gate_scale, k);
    }
    return out;
  }
};

// y[b] = x[b]·W[b]: contracts over N, as q_nope·W_UK does with the mapped kv_b. The
// order of each sum along N depends on the kernel, N, K and the blocks of the scales alone.
struct GemmTOp {
  static constexpr std::string_view kName = "gemm_t";
  struct Params {
    TensorView x;  // [B, M, N] f32, bf16 or f16; last dimension contiguous
    TensorView w;  // [B, N, K] f32, f16, bf16, f8 or i8, [B, N, ⌈K/2⌉] kU4, or [B, N, K/values]
                   // blocks; last dimension contiguous, any alignment
    TensorView y;  // [B, M, K] f32, written; last dimension contiguous
    BlockScale w_scale = {};  // of an f8, i8 or u4 weight
  };
  struct Shape {
    int64_t b, m, n, k;
    DType x, w;
    int64_t scale_group = 0;  // BlockScale::ScaleGroup of a weight with scales; 0 without
    int64_t scale_rows = 0;   // BlockScale::rows of a weight with scales; 0 without
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) {
    const int64_t k = p.y.shape[2];
    return {p.x.shape[0],
            p.x.shape[1],
            p.w.shape[1],
            k,
            p.x.dtype,
            p.w.dtype,
            p.w_scale.scale.empty() ? 0 : p.w_scale.ScaleGroup(k),
            p.w_scale.scale.empty() ? 0 : p.w_scale.rows};
  }
  static OpWork WorkOf(const Params& p) {
    const Shape s = ShapeOf(p);
    return {2 * s.b * s.m * s.n * s.k, WeightBytes(p.w, p.w_scale, s.k)};
  }
};

// Rounds activations to 8 bits, symmetrically: per row and group of columns, scale = max|x| / 127
// and y = x · (127 / max|x|) rounded to nearest, ties to even; a group of zeros has scale 0. A
// group with NaN or infinity has scale NaN.
struct QuantizeRowsOp {
  static constexpr std::string_view kName = "quantize_rows";
  struct Params {
    TensorView x;      // [M, K] f32, last dimension contiguous
    TensorView y;      // [M, K] i8, written, last dimension contiguous
    TensorView scale;  // [M, ⌈K/group⌉] f32, written, last dimension contiguous
    int64_t group = 128;
  };
  struct Shape {
    int64_t m, k, group;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) { return {p.x.shape[0], p.x.shape[1], p.group}; }
};

// y[m,:] = x[m,:] · rsqrt(mean(x²) + eps) · w, in fp32 with one rounding. x and y may be the same.
struct RmsNormOp {
  static constexpr std::string_view kName = "rms_norm";
  struct Params {
    TensorView x;  // [M, D] f32, last dimension contiguous
    TensorView w;  // [D] f32, f16 or bf16
    TensorView y;  // [M, D] f32, written, last dimension contiguous
    float eps = 0;
  };
  struct Shape {
    int64_t m, d;
    DType w;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) { return {p.x.shape[0], p.x.shape[1], p.w.dtype}; }
};

// y[m,:] = (x[m,:] − mean(x)) · rsqrt(variance(x) + eps) · w + b, with the variance as the mean of
// squared differences. x and y may be the same. Source: Ba et al., Layer Normalization (arXiv
// 1607.06450), eq. 4.
struct LayerNormOp {
  static constexpr std::string_view kName = "layer_norm";
  struct Params {
    TensorView x;  // [M, D] f32, last dimension contiguous
    TensorView w;  // [D] f32, f16 or bf16
    TensorView b;  // [D] f32, f16 or bf16
    TensorView y;  // [M, D] f32, written, last dimension contiguous
    float eps = 0;
  };
  struct Shape {
    int64_t m, d;
    DType w, b;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) {
    return {p.x.shape[0], p.x.shape[1], p.w.dtype, p.b.dtype};
  }
};

// The angles of a step's rotary embedding: cos[t,j] = amplitude · cos(a) and sin[t,j] likewise,
// with a = positions[t] · frequency[j] in fp32. That product is what every published implementation
// computes; one in f64 would differ from all of them.
struct RopeAnglesOp {
  static constexpr std::string_view kName = "rope_angles";
  struct Params {
    std::span<const int32_t> positions;  // [T]
    TensorView frequency;                // [R/2] f32, radians per position
    double amplitude = 1;
    TensorView cos;  // [T, R/2] f32, written, contiguous
    TensorView sin;  // [T, R/2] f32, written, contiguous
  };
  struct Shape {
    int64_t t, r;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) { return {p.cos.shape[0], 2 * p.frequency.shape[0]}; }
};

// Rotates x[m,g,:] in place by the angles of row m. Interleaved: pairs (2j, 2j+1); else (j, j+R/2).
struct RopeOp {
  static constexpr std::string_view kName = "rope";
  struct Params {
    TensorView x;    // [M, G, R] f32, read and written; last dimension contiguous
    TensorView cos;  // [M, R/2] f32, contiguous
    TensorView sin;  // [M, R/2] f32, contiguous
    bool interleaved = true;
  };
  struct Shape {
    int64_t m, g, r;
    bool interleaved;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) {
    return {p.x.shape[0], p.x.shape[1], p.x.shape[2], p.interleaved};
  }
};

// Multiplies the queries of every token by its temperature, in fp32:
//
//   x[t,:] *= 1 + beta · ln(1 + ⌊positions[t]/period⌋)
//
// The factor is computed in f64 and rounded once; below position `period` it is 1, and x keeps its
// bytes. Source: Llama 4 (transformers, get_llama_4_attn_scale).
struct QueryTemperatureOp {
  static constexpr std::string_view kName = "query_temperature";
  struct Params {
    std::span<const int32_t> positions;  // [T], none negative
    double beta = 0;
    int64_t period = 1;  // above 0
    TensorView x;        // [T, W] f32, read and written; last dimension contiguous
  };
  struct Shape {
    int64_t t, w;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) { return {p.x.shape[0], p.x.shape[1]}; }
};

// y += x.
struct AddOp {
  static constexpr std::string_view kName = "add";
  struct Params {
    TensorView x;  // [M, D] f32, contiguous
    TensorView y;  // [M, D] f32, read and written, contiguous
  };
  struct Shape {
    int64_t m, d;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) { return {p.x.shape[0], p.x.shape[1]}; }
};

// The residual sum and the norm of it, h += x and y = RmsNorm(h), with the bytes of AddOp and then
// RmsNormOp.
struct AddRmsNormOp {
  static constexpr std::string_view kName = "add_rms_norm";
  struct Params {
    TensorView x;  // [M, D] f32, contiguous
    TensorView h;  // [M, D] f32, read and written, contiguous
    TensorView w;  // [D] f32, f16 or bf16
    TensorView y;  // [M, D] f32, written, last dimension contiguous; may be x
    float eps = 0;
  };
  struct Shape {
    int64_t m, d;
    DType w;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) { return {p.x.shape[0], p.x.shape[1], p.w.dtype}; }
};

// y[i,:] = x[ids[i],:]: as it is (tokens of an expert), or widened to f32 (embedding), from blocks
// with the bits of LoadElement, then multiplied by `scale` in f32.
struct GatherOp {
  static constexpr std::string_view kName = "gather";
  struct Params {
    TensorView x;  // [V, D] f32, f16, bf16 or i8, or [V, D/values] blocks; last dimension
                   // contiguous, any alignment
    std::span<const int32_t> ids;  // [M], each in [0, V)
    TensorView y;  // [M, D] of x's type, or f32 unless x is i8; of blocks f32; written, contiguous
    float scale = 1;  // 1 unless y is f32
  };
  struct Shape {
    int64_t m, d;
    DType x, y;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) {
    return {p.y.shape[0], p.y.shape[1], p.x.dtype, p.y.dtype};
  }
};

// y = x in the dtype of y: rounded to 16 bits, or copied. A stride of 0 in x repeats it.
struct CastOp {
  static constexpr std::string_view kName = "cast";
  struct Params {
    TensorView x;  // any shape, f32, last dimension contiguous
    TensorView y;  // same shape, f32, bf16 or f16, written, last dimension contiguous
  };
  struct Shape {
    int64_t elements;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) { return {p.x.elements()}; }
};

}  // namespace latte
