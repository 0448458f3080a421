#include "src/layers/norm.h"

#include "src/kernels/params/gemm.h"
#include "src/kernels/registry.h"

namespace latte {

void Normalize(const LayerNorm& norm, const TensorView& x, const TensorView& y, StepContext& step) {
  Run<LayerNormOp>({x, norm.weight, norm.bias, y, static_cast<float>(norm.eps)}, step.exec);
}

void Normalize(const RmsNorm& norm, const TensorView& x, const TensorView& y, StepContext& step) {
  Run<RmsNormOp>({x, norm.weight, y, static_cast<float>(norm.eps)}, step.exec);
}

void AddAndNormalize(const RmsNorm& norm, const TensorView& x, const TensorView& h,
                     const TensorView& y, StepContext& step) {
  Run<AddRmsNormOp>({x, h, norm.weight, y, static_cast<float>(norm.eps)}, step.exec);
}

}  // namespace latte
