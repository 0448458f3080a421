#include "src/layers/moe/moe.h"

#include <vector>

#include "src/kernels/params/gemm.h"
#include "src/kernels/params/moe.h"
#include "src/kernels/registry.h"
#include "src/layers/ranks.h"
#include "src/tensor/transfer.h"

namespace latte {
namespace {

// The tokens of each expert, contiguous and in token order.
struct Grouping {
  std::span<int32_t> first;  // [E+1] rows of expert e are [first[e], first[e+1])
  std::span<int32_t> token;  // [T·K] token of a row
  std::span<int32_t> row;    // [T·K] row of (token, k)
};

std::span<int32_t> TakeInts(Workspace& workspace, int64_t count) {
  const TensorView view = workspace.Take(DType::kI32, {count});
  return {view.Ptr<int32_t>(), static_cast<size_t>(count)};
}

Grouping GroupByExpert(std::span<const int32_t> experts, const MoeDims& dims, StepContext& step) {
  Workspace& workspace = *step.workspace;
  const auto pairs = static_cast<int64_t>(experts.size());
  const Grouping g{TakeInts(workspace, dims.experts + 1), TakeInts(workspace, pairs),
                   TakeInts(workspace, pairs)};
  Run<GroupByExpertOp>({experts, dims.chosen, g.first, g.token, g.row}, step.exec);
  return g;
}

RouteOp::Params RouteParams(const MoeLayer& moe, const TensorView& logits,
                            std::span<int32_t> experts, std::span<float> weights) {
  RouteOp::Params p;
  p.logits = logits;
  p.bias = moe.bias.view();
  p.experts = experts;
  p.weights = weights;
  p.chosen = moe.dims.chosen;
  p.groups = moe.dims.router == Router::kGreedy ? 1 : moe.dims.groups;
  p.groups_kept = moe.dims.groups_kept;
  p.score = moe.dims.scoring == Scoring::kSigmoid ? RouterScore::kSigmoid : RouterScore::kSoftmax;
  p.group_score = moe.dims.router == Router::kNoauxTc ? GroupScore::kTop2Sum : GroupScore::kMax;
  p.normalize = moe.dims.normalize;
  const bool scaled = !moe.dims.normalize || moe.dims.scale_normalized;
  p.scale = scaled ? static_cast<float>(moe.dims.scale) : 1.0f;
  return p;
}

// An expert and its rows in the matrices of its group.
struct ExpertRows {
  const Mlp* mlp;
  int64_t begin, end;
};

// Experts of equal width, whose rows are in the same matrices.
struct ExpertGroup {
  std::vector<ExpertRows> experts;
  Activations x;
  TensorView inner, y;
  bool whole = false;  // not shared by ranks
};

// All experts, each over its own rows, in two passes. Weights of chosen experts are read once.
void RunExperts(std::span<const ExpertGroup> groups, StepContext& step) {
  std::vector<Product> products;
  for (const ExpertGroup& g : groups)
    for (const ExpertRows& e : g.experts)
      products.push_back(
          {&e.mlp->up, &e.mlp->gate, g.x.Rows(e.begin, e.end), g.inner.Slice(0, e.begin, e.end)});
  Multiply(products, step);
  products.clear();
  for (const ExpertGroup& g : groups) {
    std::vector<const Linear*> down;  // their formats may differ
    for (const ExpertRows& e : g.experts) down.push_back(&e.mlp->down);
    const int64_t width = g.experts.front().mlp->down.inputs();
    const TensorView all = g.whole ? g.inner : GatherColumns(g.inner, width, step);
    const Activations inner = RoundActivations(all, down, step);
    for (const ExpertRows& e : g.experts)
      products.push_back(
          {&e.mlp->down, nullptr, inner.Rows(e.begin, e.end), g.y.Slice(0, e.begin, e.end)});
  }
  Multiply(products, step);
}

// The rows `ids` of x, copied to the workspace.
Activations Gather(const Activations& x, std::span<const int32_t> ids, StepContext& step) {
  const auto rows_of = [&](const TensorView& from) {
    if (from.empty()) return from;
    const auto count = static_cast<int64_t>(ids.size());
    const TensorView rows = step.workspace->Take(from.dtype, {count, from.shape[1]});
    Run<GatherOp>({from, ids, rows}, step.exec);
    return rows;
  };
  return {rows_of(x.plain), rows_of(x.codes), rows_of(x.scale)};
}

// This rank's experts that were chosen. `first`: of Grouping, on the host, which names the weights of each
// product.
std::vector<ExpertRows> TouchedExperts(const MoeLayer& moe, std::span<const int32_t> first) {
  std::vector<ExpertRows> out;
  for (size_t i = 0; i < moe.experts.size(); ++i) {
    const size_t e = static_cast<size_t>(moe.first_expert) + i;
    if (first[e] < first[e + 1]) out.push_back({&moe.experts[i], first[e], first[e + 1]});
  }
  return out;
}

// The first row of each rank's experts, and the end.
std::vector<int64_t> BeginsOfRanks(const MoeLayer& moe, std::span<const int32_t> first) {
  std::vector<int64_t> out;
  for (int64_t rank = 0; rank <= moe.ranks; ++rank) {
    const WeightSlice slice = RankShare{rank, moe.ranks}.Rows();
    out.push_back(first[static_cast<size_t>(slice.Begin(moe.dims.experts))]);
  }
  return out;
}

}  // namespace

void Forward(const MoeLayer& moe, const TensorView& x, const TensorView& y, StepContext& step) {
  Workspace& workspace = *step.workspace;
  const Workspace::Scope scope(workspace);
  const int64_t t = x.shape[0];
  const int64_t pairs = t * moe.dims.chosen;

  const TensorView logits = workspace.Take(DType::kF32, {t, moe.dims.experts});
  MultiplyExactly(moe.router, x, logits, step);
  const std::span<int32_t> experts = TakeInts(workspace, pairs);
  const TensorView weights = workspace.Take(DType::kF32, {pairs});
  const std::span<float> weight_span(weights.Ptr<float>(), static_cast<size_t>(pairs));
  Run<RouteOp>(RouteParams(moe, logits, experts, weight_span), step.exec);

  const Grouping groups = GroupByExpert(experts, moe.dims, step);
  const std::vector<int32_t> first = CopyToHost(groups.first, workspace.device(), step.exec.stream);
  const TensorView share = ShareOf(y, step);
  // Whole experts give rows of y, shares of experts give the columns of this rank.
  const TensorView& summed = moe.whole_experts ? y : share;
  const TensorView out = workspace.Take(DType::kF32, {pairs, summed.shape[1]});

  std::vector<const Linear*> ups;
  if (!moe.experts.empty()) ups.push_back(&moe.experts[0].up);
  if (moe.has_shared) ups.push_back(&moe.shared.up);
  const Activations rounded = RoundActivations(x, ups, step);  // once for all experts
  const auto inner_of = [&](const Mlp& mlp, int64_t count) {
    return workspace.Take(DType::kF32, {count, mlp.up.outputs()});
  };
  std::vector<ExpertGroup> all;
  // The expert with the most rows first: while one thread computes it, others read weights.
  if (moe.has_shared)
    all.push_back({{{&moe.shared, 0, t}}, rounded, inner_of(moe.shared, t), share});
  std::vector<ExpertRows> touched = TouchedExperts(moe, first);
  if (!touched.empty())
    all.push_back({std::move(touched), Gather(rounded, groups.token, step),
                   inner_of(moe.experts[0], pairs), out, moe.whole_experts});
  RunExperts(all, step);
  if (moe.whole_experts) {
    if (moe.has_shared) GatherShares(share, y, step);
    GatherRows(out, BeginsOfRanks(moe, first), step);
  }
  Run<CombineOp>({out, groups.row, weight_span, moe.dims.chosen, summed, /*add=*/moe.has_shared},
                 step.exec);
  if (!moe.whole_experts) GatherShares(share, y, step);
}

}  // namespace latte
