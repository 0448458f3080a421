#include "src/layers/lm_head.h"

#include "src/layers/ranks.h"

namespace latte {

void LmHead(const RmsNorm& norm, const Linear& head, const TensorView& h, const TensorView& logits,
            StepContext& step) {
  const Workspace::Scope scope(*step.workspace);
  const TensorView normed = step.workspace->Take(DType::kF32, {h.shape[0], h.shape[1]});
  Normalize(norm, h, normed, step);
  ApplyShared(head, normed, logits, step);
}

}  // namespace latte
