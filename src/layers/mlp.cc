#include "src/layers/mlp.h"

#include "src/kernels/params/linear.h"
#include "src/kernels/registry.h"

namespace latte {

void Normalize(const RmsNorm& norm, const TensorView& x, const TensorView& y, StepContext& step) {
  Run<RmsNormOp>({x, norm.weight, y, static_cast<float>(norm.eps)}, step.exec);
}

void Forward(const Mlp& mlp, const TensorView& x, const TensorView& y, StepContext& step) {
  const Workspace::Scope scope(*step.workspace);
  const int64_t m = x.shape[0];
  const TensorView gate = step.workspace->Take(DType::kF32, {m, mlp.gate.outputs()});
  const TensorView up = step.workspace->Take(DType::kF32, {m, mlp.gate.outputs()});
  Multiply(mlp.gate, x, gate, step);
  Multiply(mlp.up, x, up, step);
  Run<SiluMulOp>({gate, up, gate}, step.exec);
  Multiply(mlp.down, RoundActivations(gate, step), y, step);
}

}  // namespace latte
