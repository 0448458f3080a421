#include "src/layers/embedding.h"

#include "src/kernels/params/gemm.h"
#include "src/kernels/registry.h"

namespace latte {

void Embed(const TensorView& table, const TensorView& h, StepContext& step, float scale) {
  Run<GatherOp>({table, step.tokens, h, scale}, step.exec);
}

}  // namespace latte
