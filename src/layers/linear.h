// A weight matrix and its products with activations. The weight is a view into the mapped
// checkpoint, whole or a slice (one rank's rows or columns); loading copies nothing.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "src/checkpoint/formats/common/loaded_matrix.h"
#include "src/kernels/params/gemm.h"
#include "src/layers/step_context.h"
#include "src/tensor/tensor.h"

namespace latte {

// Part `index` of `count` parts of a weight, along its outputs (rows) or its inputs (columns).
// Parts are whole multiples of `unit` and differ by at most one unit.
struct WeightSlice {
  enum class Along { kRows, kColumns };
  int64_t index = 0;
  int64_t count = 1;
  Along along = Along::kRows;
  int64_t unit = 1;

  // Where the part begins; its end is where the next one begins. Requires: `size` divides by the
  // unit.
  int64_t Begin(int64_t size) const { return BeginOf(index, size); }
  int64_t End(int64_t size) const { return BeginOf(index + 1, size); }

 private:
  int64_t BeginOf(int64_t part, int64_t size) const { return size / unit * part / count * unit; }
};

// Immutable after loading.
struct Linear {
  LoadedMatrix matrix;
  Tensor bias;  // [N] f32; empty when there is none

  int64_t outputs() const { return matrix.rows(); }
  int64_t inputs() const { return matrix.columns(); }
  // Whether products with it take activations quantised to int8: weights of 4- and 8-bit integers.
  bool takes_int8() const { return matrix.is_integer(); }
  // The scales as the GEMM ops take them. `row_begin` is the first row in use, `batch_rows` the
  // distance from head to head.
  BlockScale Scale(int64_t row_begin = 0, int64_t batch_rows = 0) const;
};

// Activations in the forms that products take: x itself under f32 arithmetic, x rounded to 16 bits,
// or x quantised to int8 by rows and groups of kActivationGroup columns.
inline constexpr int64_t kActivationGroup = 128;
struct Activations {
  TensorView plain;  // [M, K] f32, bf16 or f16; empty if no product takes it
  TensorView codes;  // [M, K] i8; empty if no product takes it
  TensorView scale;  // [M, ⌈K/group⌉] f32, scales of codes

  Activations Rows(int64_t begin, int64_t end) const;
};

// Converts x [M, K] f32 to the forms that these products take under step.arithmetic and
// step.int8_activations; without products, only `plain`. New tensors live in the workspace.
Activations RoundActivations(const TensorView& x, std::span<const Linear* const> products,
                             StepContext& step);
inline Activations RoundActivations(const TensorView& x,
                                    std::initializer_list<const Linear*> products,
                                    StepContext& step) {
  return RoundActivations(x, std::span(products.begin(), products.size()), step);
}

// y = x·Wᵀ + bias; with a gate y = silu(x·Gᵀ) ⊙ (x·Wᵀ). Shapes: x [M, K], y [M, N] f32.
struct Product {
  const Linear* linear = nullptr;
  const Linear* gate = nullptr;  // same shape, and LoadedMatrix::IsReadWith linear; may be null
  Activations x;
  TensorView y;
};

// What such a product reads of x: its codes with their scales, or its plain form.
struct GemmInput {
  TensorView x, scale;
  int64_t group = 0;
};
GemmInput InputFor(const Linear& linear, const Activations& x);

GemmProblem ProblemOf(const Product& product);

// Whether one call can compute products with both weights: one kernel is selected for a call.
bool InOneCall(const Product& a, const Product& b);

// Several products in one call; products of equal dtypes run in one pass.
void Multiply(std::span<const Product> products, StepContext& step);
void Multiply(const Linear& linear, const Activations& x, const TensorView& y, StepContext& step);

// y = x·Wᵀ + bias, with x rounded as this product takes it. Shapes: x [M, K] f32, y [M, N] f32.
void Apply(const Linear& linear, const TensorView& x, const TensorView& y, StepContext& step);

// y = x·Wᵀ + bias with activations that are not rounded. Shapes: x [M, K] f32, y [M, N] f32.
void MultiplyExactly(const Linear& linear, const TensorView& x, const TensorView& y,
                     StepContext& step);

}  // namespace latte
