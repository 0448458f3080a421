#include "src/layers/mlp.h"

#include "src/kernels/params/gemm.h"
#include "src/kernels/registry.h"

namespace latte {

void Normalize(const RmsNorm& norm, const TensorView& x, const TensorView& y, StepContext& step) {
  Run<RmsNormOp>({x, norm.weight, y, static_cast<float>(norm.eps)}, step.exec);
}

void AddAndNormalize(const RmsNorm& norm, const TensorView& x, const TensorView& h,
                     const TensorView& y, StepContext& step) {
  Run<AddRmsNormOp>({x, h, norm.weight, y, static_cast<float>(norm.eps)}, step.exec);
}

void Forward(const Mlp& mlp, const TensorView& x, const TensorView& y, StepContext& step) {
  const Workspace::Scope scope(*step.workspace);
  const TensorView inner = step.workspace->Take(DType::kF32, {x.shape[0], mlp.up.outputs()});
  const Product up{&mlp.up, &mlp.gate, RoundActivations(x, {&mlp.up}, step), inner};
  Multiply({&up, 1}, step);
  Multiply(mlp.down, RoundActivations(inner, {&mlp.down}, step), y, step);
}

}  // namespace latte
