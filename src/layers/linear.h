// A weight matrix and how it is multiplied. The weight is a view into the mapped checkpoint, whole
// or a slice of it (one rank's rows or columns), so loading copies nothing.
#pragma once

#include "src/kernels/params/linear.h"
#include "src/layers/step_context.h"
#include "src/tensor/tensor.h"

namespace latte {

// How the values of a weight are stored. Grows by block scales and packing; plain values need
// neither.
struct QuantFormat {
  DType value = DType::kBF16;
  int64_t block_rows = 128;  // of the f32 scales that f8 values have
  int64_t block_columns = 128;
};

// Where a weight lives: experts may stay in host memory while attention runs elsewhere.
enum class DevicePlace { kCpu };

// Part `index` of `count` equal parts of a weight, along its outputs (rows) or its inputs
// (columns).
struct WeightSlice {
  enum class Along { kRows, kColumns };
  int64_t index = 0;
  int64_t count = 1;
  Along along = Along::kRows;
};

// Immutable after loading.
struct Linear {
  TensorView weight;  // [N, K], last dimension contiguous, any alignment
  Tensor bias;        // [N] f32; empty when there is none
  Tensor scale;  // [⌈rows/block_rows⌉, ⌈columns/block_columns⌉] f32 of the whole weight; empty when
                 // plain
  QuantFormat format;
  DevicePlace place = DevicePlace::kCpu;
  int64_t row_begin = 0;  // where `weight` begins in the whole weight, when it is a slice
  int64_t column_begin = 0;

  int64_t outputs() const { return weight.shape[0]; }
  int64_t inputs() const { return weight.shape[1]; }
  // The scales as products take them; `row_begin` is the first row used, `batch_rows` the step from
  // head to head.
  BlockScale Scale(int64_t row_begin = 0, int64_t batch_rows = 0) const;
};

// `weight` cut to the slice. Requires: the sliced dimension divides by slice.count.
TensorView CutWeight(const TensorView& weight, const WeightSlice& slice);

// x as a matrix product takes it: x itself under f32 arithmetic, else a 16-bit copy in the
// workspace.
TensorView RoundActivations(const TensorView& x, StepContext& step);

// y = x·Wᵀ + bias with x already rounded. Shapes: x [M, K], y [M, N] f32.
void Multiply(const Linear& linear, const TensorView& x, const TensorView& y, StepContext& step);

}  // namespace latte
