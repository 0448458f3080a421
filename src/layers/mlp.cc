#include "src/layers/mlp.h"

#include "src/layers/ranks.h"

namespace latte {

void Forward(const Mlp& mlp, const TensorView& x, const TensorView& y, StepContext& step) {
  const Workspace::Scope scope(*step.workspace);
  const TensorView inner = step.workspace->Take(DType::kF32, {x.shape[0], mlp.up.outputs()});
  const Product up{&mlp.up, &mlp.gate, RoundActivations(x, {&mlp.up}, step), inner};
  Multiply({&up, 1}, step);
  const TensorView all = GatherColumns(inner, mlp.down.inputs(), step);
  ApplyShared(mlp.down, all, y, step);
}

}  // namespace latte
