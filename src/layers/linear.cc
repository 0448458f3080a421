#include "src/layers/linear.h"

#include "src/kernels/params/linear.h"
#include "src/kernels/registry.h"

namespace latte {
namespace {

// A matrix as a batch of one.
TensorView Batched(const TensorView& m) {
  TensorView out = m;
  out.rank = 3;
  out.shape = {1, m.shape[0], m.shape[1]};
  out.stride = {m.shape[0] * m.stride[0], m.stride[0], m.stride[1]};
  return out;
}

}  // namespace

BlockScale Linear::Scale(int64_t first_row, int64_t batch_rows) const {
  return {scale.view(),          format.block_rows, format.block_columns,
          row_begin + first_row, column_begin,      batch_rows};
}

TensorView CutWeight(const TensorView& weight, const WeightSlice& slice) {
  const int dim = slice.along == WeightSlice::Along::kRows ? 0 : 1;
  const int64_t size = weight.shape[static_cast<size_t>(dim)];
  LATTE_CHECK(size % slice.count == 0, "{} in {} parts", size, slice.count);
  const int64_t part = size / slice.count;
  return weight.Slice(dim, slice.index * part, (slice.index + 1) * part);
}

TensorView RoundActivations(const TensorView& x, StepContext& step) {
  if (step.arithmetic == DType::kF32) return x;
  const TensorView rounded = step.workspace->Take(step.arithmetic, {x.shape[0], x.shape[1]});
  Run<CastOp>({x, rounded}, step.exec);
  return rounded;
}

void Multiply(const Linear& linear, const TensorView& x, const TensorView& y, StepContext& step) {
  Run<LinearOp>(
      {Batched(x), Batched(linear.weight), linear.bias.view(), Batched(y), linear.Scale()},
      step.exec);
}

}  // namespace latte
