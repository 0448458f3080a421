// Matrix products and pointwise ops: what layers and backends share. Activations are f32; a product
// may take them rounded to bf16. Outputs are f32. Shapes are per call; "stride" is in elements.
#pragma once

#include <cstdint>
#include <span>

#include "src/tensor/tensor.h"

namespace latte {

// Scales of a weight that is quantised in blocks: element (i, j) of the weight means
// value · scale[(row_begin + i) / rows, (column_begin + j) / columns]. Slices and heads may begin
// inside a block. Source of the format: DeepSeek-V3 (arXiv 2412.19437) §3.3.2.
struct BlockScale {
  TensorView scale;  // [block rows, block columns] f32, contiguous; empty: the weight is plain
  int64_t rows = 128;
  int64_t columns = 128;
  int64_t row_begin = 0;     // place of W[0]'s first row in the grid, in elements
  int64_t column_begin = 0;  // likewise its first column
  int64_t batch_rows = 0;    // elements from W[b] to W[b+1]

  float At(int64_t b, int64_t i, int64_t j) const {
    return scale.Row<float>((row_begin + b * batch_rows + i) / rows)[(column_begin + j) / columns];
  }
};

// y[b,m,:] = W[b]·x[b,m,:] (+ bias): every output is the dot product of a weight row and an
// activation row. Sums along K run in one order that depends on the row of the registry and on K
// alone, never on M, B or threads.
struct LinearOp {
  static constexpr std::string_view kName = "linear";
  struct Params {
    TensorView x;     // [B, M, K] f32 or bf16; last dimension contiguous
    TensorView w;     // [B, N, K] f32, f16, bf16 or f8; last dimension contiguous, any alignment
    TensorView bias;  // [N] f32, contiguous; may be empty
    TensorView y;     // [B, M, N] f32, written; last dimension contiguous
    BlockScale w_scale = {};  // of an f8 weight
  };
  struct Shape {
    int64_t b, m, n, k;
    DType x, w;
  };
  static Shape ShapeOf(const Params& p) {
    return {p.x.shape[0], p.x.shape[1], p.w.shape[1], p.x.shape[2], p.x.dtype, p.w.dtype};
  }
};

// y[b,m,:] = W[b]ᵀ·x[b,m,:]: contracts over the rows of W, as q_nope·W_UK does on mapped kv_b. Sums
// along N run in index order, one fused or separate multiply-add per row (fixed per registry row).
struct LinearTOp {
  static constexpr std::string_view kName = "linear_t";
  struct Params {
    TensorView x;  // [B, M, N] f32 or bf16; last dimension contiguous
    TensorView w;  // [B, N, K] f32, f16, bf16 or f8; last dimension contiguous, any alignment
    TensorView y;  // [B, M, K] f32, written; last dimension contiguous
    BlockScale w_scale = {};  // of an f8 weight
  };
  struct Shape {
    int64_t b, m, n, k;
    DType x, w;
  };
  static Shape ShapeOf(const Params& p) {
    return {p.x.shape[0], p.x.shape[1], p.w.shape[1], p.w.shape[2], p.x.dtype, p.w.dtype};
  }
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
  };
  static Shape ShapeOf(const Params& p) { return {p.x.shape[0], p.x.shape[1], p.w.dtype}; }
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
  };
  static Shape ShapeOf(const Params& p) {
    return {p.x.shape[0], p.x.shape[1], p.x.shape[2], p.interleaved};
  }
};

// y = silu(gate) ⊙ up, silu(z) = z / (1 + e^−z). y may be gate.
struct SiluMulOp {
  static constexpr std::string_view kName = "silu_mul";
  struct Params {
    TensorView gate;  // [M, F] f32, contiguous
    TensorView up;    // [M, F] f32, contiguous
    TensorView y;     // [M, F] f32, written, contiguous
  };
  struct Shape {
    int64_t m, f;
  };
  static Shape ShapeOf(const Params& p) { return {p.gate.shape[0], p.gate.shape[1]}; }
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
  };
  static Shape ShapeOf(const Params& p) { return {p.x.shape[0], p.x.shape[1]}; }
};

// y[i,:] = x[ids[i],:], widened to f32 (embedding, tokens of an expert).
struct GatherOp {
  static constexpr std::string_view kName = "gather";
  struct Params {
    TensorView x;  // [V, D] f32, f16 or bf16; last dimension contiguous, any alignment
    std::span<const int32_t> ids;  // [M], each in [0, V)
    TensorView y;                  // [M, D] f32, written, contiguous
  };
  struct Shape {
    int64_t m, d;
    DType x;
  };
  static Shape ShapeOf(const Params& p) { return {p.y.shape[0], p.y.shape[1], p.x.dtype}; }
};

// y = x rounded to 16 bits.
struct CastOp {
  static constexpr std::string_view kName = "cast";
  struct Params {
    TensorView x;  // any shape, f32, contiguous
    TensorView y;  // same shape, bf16 or f16, written, contiguous
  };
  struct Shape {
    int64_t elements;
  };
  static Shape ShapeOf(const Params& p) { return {p.x.elements()}; }
};

}  // namespace latte
