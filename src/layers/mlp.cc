#include "src/layers/mlp.h"

namespace latte {

void Forward(const Mlp& mlp, const TensorView& x, const TensorView& y, StepContext& step) {
  const Workspace::Scope scope(*step.workspace);
  const TensorView inner = step.workspace->Take(DType::kF32, {x.shape[0], mlp.up.outputs()});
  const Product up{&mlp.up, &mlp.gate, RoundActivations(x, {&mlp.up}, step), inner};
  Multiply({&up, 1}, step);
  Multiply(mlp.down, RoundActivations(inner, {&mlp.down}, step), y, step);
}

}  // namespace latte
