#include "src/kernels/cuda/launch/launch.h"

namespace latte::cuda {

namespace {

// Norms the rows of `x`; y = x is allowed.
RmsNormParams ParamsOf(const TensorView& x, const TensorView& w, const TensorView& y, float eps) {
  RmsNormParams out = {};
  out.x = x.Ptr<const float>();
  out.w = w.data;
  out.y = y.Ptr<float>();
  out.x_stride = x.stride[0];
  out.y_stride = y.stride[0];
  out.m = static_cast<int32_t>(x.shape[0]);
  out.d = static_cast<int32_t>(x.shape[1]);
  out.w_type = w.dtype;
  out.eps = eps;
  return out;
}

}  // namespace

void LaunchRmsNorm(const RmsNormOp::Params& p, const Exec& exec) {
  const RmsNormParams out = ParamsOf(p.x, p.w, p.y, p.eps);
  KernelsOf(exec).Launch<KernelId::kRmsNorm>(WarpsGrid(out.m), out, exec.stream);
}

void LaunchAddRmsNorm(const AddRmsNormOp::Params& p, const Exec& exec) {
  RmsNormParams out = ParamsOf(p.x, p.w, p.y, p.eps);
  out.h = p.h.Ptr<float>();
  KernelsOf(exec).Launch<KernelId::kRmsNorm>(WarpsGrid(out.m), out, exec.stream);
}

void LaunchLayerNorm(const LayerNormOp::Params& p, const Exec& exec) {
  LayerNormParams out = {};
  out.x = p.x.Ptr<const float>();
  out.w = p.w.data;
  out.b = p.b.data;
  out.y = p.y.Ptr<float>();
  out.x_stride = p.x.stride[0];
  out.y_stride = p.y.stride[0];
  out.m = static_cast<int32_t>(p.x.shape[0]);
  out.d = static_cast<int32_t>(p.x.shape[1]);
  out.w_type = p.w.dtype;
  out.b_type = p.b.dtype;
  out.eps = p.eps;
  KernelsOf(exec).Launch<KernelId::kLayerNorm>(WarpsGrid(out.m), out, exec.stream);
}

}  // namespace latte::cuda
