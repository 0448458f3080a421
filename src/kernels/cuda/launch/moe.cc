#include "src/base/math.h"
#include "src/kernels/cuda/launch/launch.h"

namespace latte::cuda {

void LaunchRoute(const RouteOp::Params& p, const Exec& exec) {
  RouteParams out = {};
  out.logits = p.logits.Ptr<const float>();
  out.bias = p.bias.empty() ? nullptr : p.bias.Ptr<const float>();
  out.experts = p.experts.data();
  out.weights = p.weights.data();
  out.logits_stride = p.logits.stride[0];
  out.e = static_cast<int32_t>(p.logits.shape[1]);
  out.chosen = static_cast<int32_t>(p.chosen);
  out.groups = static_cast<int32_t>(p.groups);
  out.groups_kept = static_cast<int32_t>(p.groups_kept);
  out.sigmoid = p.score == RouterScore::kSigmoid ? 1 : 0;
  out.top2_sum = p.group_score == GroupScore::kTop2Sum ? 1 : 0;
  out.normalize = p.normalize ? 1 : 0;
  out.scale = p.scale;
  const int64_t shared = (2 * p.logits.shape[1] + p.groups) * int64_t{sizeof(float)};
  KernelsOf(exec).Launch<KernelId::kRoute>({p.logits.shape[0]}, out, exec.stream, shared);
}

void LaunchGroupByExpert(const GroupByExpertOp::Params& p, const Exec& exec) {
  GroupByExpertParams out = {};
  out.experts = p.experts.data();
  out.first = p.first.data();
  out.token = p.token.data();
  out.row = p.row.data();
  out.pairs = static_cast<int32_t>(p.experts.size());
  out.chosen = static_cast<int32_t>(p.chosen);
  out.e = static_cast<int32_t>(p.first.size()) - 1;
  const int64_t shared = std::ssize(p.first) * int64_t{sizeof(int32_t)};
  KernelsOf(exec).Launch<KernelId::kGroupByExpert>({1}, out, exec.stream, shared);
}

void LaunchCombine(const CombineOp::Params& p, const Exec& exec) {
  CombineParams out = {};
  out.x = p.x.Ptr<const float>();
  out.rows = p.rows.data();
  out.weights = p.weights.data();
  out.y = p.y.Ptr<float>();
  out.chosen = static_cast<int32_t>(p.chosen);
  out.d = static_cast<int32_t>(p.y.shape[1]);
  out.add = p.add ? 1 : 0;
  KernelsOf(exec).Launch<KernelId::kCombine>({LanesGrid(p.y.shape[1]).x * p.y.shape[0]}, out,
                                             exec.stream);
}

}  // namespace latte::cuda
