#include <algorithm>
#include <optional>

#include "src/base/math.h"
#include "src/kernels/cuda/launch/launch.h"

namespace latte::cuda {
namespace {

constexpr int64_t kColumns = 4;     // of a block of Gemm
constexpr int64_t kRowsAtOnce = 8;  // of a block of Gemm
constexpr int64_t kLanes = 128;

// Activations [B, M, K] with their scales [B, M, groups], which may be empty.
ActivationParams ActivationsOf(const TensorView& x, const TensorView& scale, int64_t group) {
  ActivationParams out = {};
  out.data = x.data;
  out.batch = x.stride[0];
  out.stride = x.stride[1];
  out.type = x.dtype;
  if (scale.empty()) return out;
  out.scale = scale.Ptr<const float>();
  out.scale_batch = scale.stride[0];
  out.scale_stride = scale.stride[1];
  out.group = static_cast<int32_t>(group);
  return out;
}

WeightPointers PointersOf(const TensorView& w, const BlockScale& s) {
  if (w.empty()) return {};
  return {.data = w.data,
          .scale = s.scale.empty() ? nullptr : s.scale.data,
          .zero = s.zero.empty() ? nullptr : s.zero.Ptr<const unsigned char>()};
}

// The layout of a weight [B, N, K]; zeros for none.
WeightLayout LayoutOf(const TensorView& w, const BlockScale& s) {
  WeightLayout out = {};
  if (w.empty()) return out;
  out.batch_bytes = w.stride[0] * SizeOf(w.dtype);
  out.row_bytes = w.stride[1] * SizeOf(w.dtype);
  out.type = w.dtype;
  if (s.scale.empty()) return out;
  out.scale_stride = s.scale.stride[0];
  out.zero_stride = s.zero.empty() ? 0 : s.zero.stride[0];
  out.row_begin = s.row_begin;
  out.batch_rows = s.batch_rows;
  out.column_begin = static_cast<int32_t>(s.column_begin);
  out.rows = static_cast<int32_t>(s.rows);
  out.columns = static_cast<int32_t>(s.columns);
  out.scale_type = s.scale.dtype;
  return out;
}

void LaunchProblem(const GemmProblem& p, const Exec& exec) {
  GemmParams out = {};
  out.x = ActivationsOf(p.x, p.x_scale, p.x_group);
  out.w = PointersOf(p.w, p.w_scale);
  out.gate = PointersOf(p.gate, p.gate_scale);
  out.w_layout = LayoutOf(p.w, p.w_scale);
  out.gate_layout = LayoutOf(p.gate, p.gate_scale);
  out.bias = p.bias.empty() ? nullptr : p.bias.Ptr<const float>();
  out.y = p.y.Ptr<float>();
  out.y_batch = p.y.stride[0];
  out.y_stride = p.y.stride[1];
  out.m = static_cast<int32_t>(p.x.shape[1]);
  out.n = static_cast<int32_t>(p.w.shape[1]);
  out.k = static_cast<int32_t>(p.x.shape[2]);
  const Grid grid = {CeilDiv(p.w.shape[1], kColumns) * CeilDiv(p.x.shape[1], kRowsAtOnce),
                     p.x.shape[0]};
  KernelsOf(exec).Launch<KernelId::kGemm>(grid, out, exec.stream);
}

struct ExpertLayouts {
  WeightLayout w, gate;
  bool operator==(const ExpertLayouts&) const = default;
};

// An expert's matrices are batches of one: the stride of a batch is nothing that it has.
ExpertLayouts LayoutsOf(const ExpertWeights& e) {
  const auto layout = [](const TensorView& w, const BlockScale& s) {
    WeightLayout out = LayoutOf(w.empty() ? w : BatchOfOne(w), s);
    out.batch_bytes = out.batch_rows = 0;
    return out;
  };
  return {layout(e.w, e.w_scale), layout(e.gate, e.gate_scale)};
}

// The first of `experts`, up to the most of one launch, whose weights, if there are any, have one
// layout.
std::span<const ExpertWeights> OfOneLayout(std::span<const ExpertWeights> experts) {
  std::optional<ExpertLayouts> first;
  const size_t most = std::min<size_t>(experts.size(), ExpertGemmParams::kMostExperts);
  for (size_t i = 0; i < most; ++i) {
    if (experts[i].w.empty()) continue;
    const ExpertLayouts own = LayoutsOf(experts[i]);
    if (first.value_or(own) != own) return experts.first(i);
    first = own;
  }
  return experts.first(most);
}

}  // namespace

void LaunchGemm(const GemmOp::Params& p, const Exec& exec) {
  for (const GemmProblem& problem : p.problems) LaunchProblem(problem, exec);
}

void LaunchGemmT(const GemmTOp::Params& p, const Exec& exec) {
  GemmTParams out = {};
  out.x = ActivationsOf(p.x, TensorView(), 0);
  out.w = PointersOf(p.w, p.w_scale);
  out.w_layout = LayoutOf(p.w, p.w_scale);
  out.y = p.y.Ptr<float>();
  out.y_batch = p.y.stride[0];
  out.y_stride = p.y.stride[1];
  out.m = static_cast<int32_t>(p.x.shape[1]);
  out.n = static_cast<int32_t>(p.w.shape[1]);
  out.k = static_cast<int32_t>(p.y.shape[2]);
  const Grid grid = {CeilDiv(p.y.shape[2], kLanes) * p.x.shape[1], p.x.shape[0]};
  KernelsOf(exec).Launch<KernelId::kGemmT>(grid, out, exec.stream);
}

void LaunchExpertGemm(const ExpertGemmOp::Params& p, const Exec& exec) {
  LaunchGemm({p.shared}, exec);
  if (p.x.shape[0] == 0) return;
  ExpertGemmParams out = {};
  out.first = p.first.data();
  out.x = ActivationsOf(BatchOfOne(p.x), p.x_scale.empty() ? p.x_scale : BatchOfOne(p.x_scale),
                        p.x_group);
  out.y = p.y.Ptr<float>();
  out.y_stride = p.y.stride[0];
  out.n = static_cast<int32_t>(p.y.shape[1]);
  out.k = static_cast<int32_t>(p.x.shape[1]);
  for (size_t begin = 0; begin < p.experts.size();) {
    const std::span<const ExpertWeights> experts = OfOneLayout(p.experts.subspan(begin));
    out.begin = static_cast<int32_t>(begin);
    for (size_t i = 0; i < experts.size(); ++i) {
      const ExpertWeights& expert = experts[i];
      out.w[i] = PointersOf(expert.w, expert.w_scale);
      out.gate[i] = PointersOf(expert.gate, expert.gate_scale);
      if (expert.w.empty()) continue;
      const ExpertLayouts layouts = LayoutsOf(expert);
      out.w_layout = layouts.w;
      out.gate_layout = layouts.gate;
    }
    const Grid grid = {CeilDiv(int64_t{out.n}, kColumns), std::ssize(experts)};
    KernelsOf(exec).Launch<KernelId::kExpertGemm>(grid, out, exec.stream);
    begin += experts.size();
  }
}

}  // namespace latte::cuda
