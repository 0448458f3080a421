#pragma once

#include <cstdint>

#include "src/kernels/cuda/params/types.h"

namespace latte::cuda {

// Activations [b, m, k] of a product.
struct ActivationParams {
  const void* data;
  const float* scale;  // [b, m, groups] of int8; null: scale 1
  int64_t batch, stride, scale_batch, scale_stride;
  int32_t group;  // activations of a scale
  Element type;
};

// How a weight [b, n, k] of any type lies in memory, with its scales (BlockScale of
// kernels/params/gemm.h). Weights that differ in their addresses alone have equal layouts.
struct WeightLayout {
  int64_t batch_bytes, row_bytes;       // from W[b] to W[b+1], from a row to the next
  int64_t scale_stride, zero_stride;    // from a row of blocks to the next, in elements
  int64_t row_begin, batch_rows;        // rows of the whole weight
  int32_t column_begin, rows, columns;  // rows, columns: of a block
  Element type, scale_type;

  bool operator==(const WeightLayout&) const = default;
};
struct WeightPointers {
  const void* data;
  const void* scale;          // null: scale 1
  const unsigned char* zero;  // null: the zero of the type
};

// One problem of GemmOp.
struct GemmParams {
  ActivationParams x;
  WeightPointers w, gate;  // a gate without data: none
  WeightLayout w_layout, gate_layout;
  const float* bias;  // [n]; may be null
  float* y;           // [b, m, n]
  int64_t y_batch, y_stride;
  int32_t m, n, k;
};

struct GemmTParams {
  ActivationParams x;  // [b, m, n]
  WeightPointers w;    // [b, n, k]
  WeightLayout w_layout;
  float* y;  // [b, m, k]
  int64_t y_batch, y_stride;
  int32_t m, n, k;
};

// Experts [begin, begin + count) of ExpertGemmOp, with weights of one layout.
struct ExpertGemmParams {
  static constexpr int kMostExperts = 80;

  const int32_t* first;  // [all experts + 1]
  ActivationParams x;    // [1, rows, k]
  WeightLayout w_layout, gate_layout;
  float* y;  // [rows, n]
  int64_t y_stride;
  int32_t begin, n, k;
  WeightPointers w[kMostExperts];     // without data: the expert is left out
  WeightPointers gate[kMostExperts];  // all without data: no gate
};

}  // namespace latte::cuda
