#include "src/layers/embedding.h"

#include "src/kernels/params/gemm.h"
#include "src/kernels/registry.h"

namespace latte {

void Embed(const TensorView& table, const TensorView& h, StepContext& step) {
  Run<GatherOp>({table, step.tokens, h}, step.exec);
}

void Head(const RmsNorm& norm, const Linear& head, const TensorView& h, const TensorView& logits,
          StepContext& step) {
  const Workspace::Scope scope(*step.workspace);
  const TensorView normed = step.workspace->Take(DType::kF32, {h.shape[0], h.shape[1]});
  Normalize(norm, h, normed, step);
  Multiply(head, RoundActivations(normed, {&head}, step), logits, step);
}

}  // namespace latte
