#include <algorithm>

#include "src/base/math.h"
#include "src/kernels/cuda/launch/launch.h"

namespace latte::cuda {
namespace {

constexpr int64_t kColumns = 4;     // of a block of Gemm
constexpr int64_t kRowsAtOnce = 8;  // of a block of Gemm
constexpr int64_t kLanes = 128;

// Where x, w and y [B, rows, columns] lie, and their types.
template <class Params>
Params OperandsOf(const TensorView& x, const TensorView& w, const TensorView& y) {
  Params out = {};
  out.x = x.data;
  out.w = w.data;
  out.y = y.Ptr<float>();
  out.x_batch = x.stride[0];
  out.x_stride = x.stride[1];
  out.w_batch = w.stride[0];
  out.w_stride = w.stride[1];
  out.y_batch = y.stride[0];
  out.y_stride = y.stride[1];
  out.m = static_cast<int32_t>(x.shape[1]);
  out.n = static_cast<int32_t>(w.shape[1]);
  out.x_type = ElementOf(x.dtype);
  out.w_type = ElementOf(w.dtype);
  return out;
}

void LaunchProblem(const GemmProblem& p, const Exec& exec) {
  auto out = OperandsOf<GemmParams>(p.x, p.w, p.y);
  out.gate = p.gate.empty() ? nullptr : p.gate.data;
  out.bias = p.bias.empty() ? nullptr : p.bias.Ptr<const float>();
  out.k = static_cast<int32_t>(p.x.shape[2]);
  const Grid grid = {CeilDiv(p.w.shape[1], kColumns) * CeilDiv(p.x.shape[1], kRowsAtOnce),
                     p.x.shape[0]};
  KernelsOf(exec).Launch<KernelId::kGemm>(grid, out, exec.stream);
}

}  // namespace

void LaunchGemm(const GemmOp::Params& p, const Exec& exec) {
  for (const GemmProblem& problem : p.problems) LaunchProblem(problem, exec);
}

void LaunchGemmT(const GemmTOp::Params& p, const Exec& exec) {
  auto out = OperandsOf<GemmTParams>(p.x, p.w, p.y);
  out.k = static_cast<int32_t>(p.y.shape[2]);
  const Grid grid = {CeilDiv(p.y.shape[2], kLanes) * p.x.shape[1], p.x.shape[0]};
  KernelsOf(exec).Launch<KernelId::kGemmT>(grid, out, exec.stream);
}

void LaunchExpertGemm(const ExpertGemmOp::Params& p, const Exec& exec) {
  LaunchGemm({p.shared}, exec);
  const auto has_weights = [](const ExpertWeights& e) { return !e.w.empty(); };
  const auto one = std::ranges::find_if(p.experts, has_weights);
  if (one == p.experts.end() || p.x.shape[0] == 0) return;
  ExpertGemmParams out = {};
  out.first = p.first.data();
  out.x = p.x.data;
  out.y = p.y.Ptr<float>();
  out.x_stride = p.x.stride[0];
  out.y_stride = p.y.stride[0];
  out.w_stride = one->w.stride[0];
  out.n = static_cast<int32_t>(one->w.shape[0]);
  out.k = static_cast<int32_t>(p.x.shape[1]);
  out.x_type = ElementOf(p.x.dtype);
  out.w_type = ElementOf(one->w.dtype);
  constexpr size_t kMost = ExpertGemmParams::kMostExperts;
  for (size_t begin = 0; begin < p.experts.size(); begin += kMost) {
    const size_t count = std::min(kMost, p.experts.size() - begin);
    out.begin = static_cast<int32_t>(begin);
    for (size_t i = 0; i < count; ++i) {
      const ExpertWeights& expert = p.experts[begin + i];
      out.w[i] = expert.w.empty() ? nullptr : expert.w.data;
      out.gate[i] = expert.gate.empty() ? nullptr : expert.gate.data;
    }
    const Grid grid = {CeilDiv(int64_t{out.n}, kColumns), static_cast<int64_t>(count)};
    KernelsOf(exec).Launch<KernelId::kExpertGemm>(grid, out, exec.stream);
  }
}

}  // namespace latte::cuda
