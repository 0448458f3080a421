#include "src/layers/moe/experts.h"

#include "src/kernels/params/gemm.h"
#include "src/kernels/params/moe.h"
#include "src/kernels/registry.h"
#include "src/layers/ranks.h"
#include "src/tensor/transfer.h"

namespace latte {
namespace {

std::span<int32_t> TakeInts(Workspace& workspace, int64_t count) {
  const TensorView view = workspace.Take(DType::kI32, {count});
  return {view.Ptr<int32_t>(), static_cast<size_t>(count)};
}

RouteOp::Params RouteParams(const MoeLayer& moe, const TensorView& logits,
                            const RoutedTokens& tokens) {
  RouteOp::Params p;
  p.logits = logits;
  p.bias = moe.bias.view();
  p.experts = tokens.experts;
  p.weights = tokens.weights;
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

// The rows `ids` of x, copied to the workspace.
Activations GatherTokens(const Activations& x, std::span<const int32_t> ids, StepContext& step) {
  const auto rows_of = [&](const TensorView& from) {
    if (from.empty()) return from;
    const auto count = static_cast<int64_t>(ids.size());
    const TensorView rows = step.workspace->Take(from.dtype, {count, from.shape[1]});
    Run<GatherOp>({from, ids, rows}, step.exec);
    return rows;
  };
  return {rows_of(x.plain), rows_of(x.codes), rows_of(x.scale)};
}

// The forms of x that the up projections take: rounded once for all experts.
Activations RoundForAll(const MoeLayer& moe, const TensorView& x, StepContext& step) {
  std::vector<const Linear*> ups;
  if (!moe.experts.empty()) ups.push_back(&moe.experts[0].up);
  if (moe.has_shared) ups.push_back(&moe.shared.up);
  return RoundActivations(x, ups, step);
}

}  // namespace

RoutedTokens WithRoom(const MoeLayer& moe, const TensorView& x, StepContext& step) {
  Workspace& workspace = *step.workspace;
  const int64_t pairs = x.shape[0] * moe.dims.chosen;
  const std::span<int32_t> experts = TakeInts(workspace, pairs);
  const TensorView weights = workspace.Take(DType::kF32, {pairs});
  return {x, experts, {weights.Ptr<float>(), static_cast<size_t>(pairs)}};
}

RoutedTokens Route(const MoeLayer& moe, const TensorView& x, StepContext& step) {
  const TensorView logits = step.workspace->Take(DType::kF32, {x.shape[0], moe.dims.experts});
  MultiplyExactly(moe.router, x, logits, step);
  const RoutedTokens tokens = WithRoom(moe, x, step);
  Run<RouteOp>(RouteParams(moe, logits, tokens), step.exec);
  return tokens;
}

Grouping GroupByExpert(std::span<const int32_t> experts, int64_t e, int64_t k, StepContext& step) {
  Workspace& workspace = *step.workspace;
  const auto pairs = static_cast<int64_t>(experts.size());
  const Grouping g{TakeInts(workspace, e + 1), TakeInts(workspace, pairs),
                   TakeInts(workspace, pairs)};
  Run<GroupByExpertOp>({experts, k, g.first, g.token, g.row}, step.exec);
  return g;
}

ExpertBatch SharedExpert(const MoeLayer& moe, const Activations& x, const TensorView& y,
                         StepContext& step) {
  const int64_t rows = y.shape[0];
  return {{{&moe.shared, 0, rows}},
          x,
          step.workspace->Take(DType::kF32, {rows, moe.shared.up.outputs()}),
          y};
}

ExpertBatch RoutedExperts(const MoeLayer& moe, const Activations& x, std::span<const int32_t> first,
                          std::span<const int32_t> token, const TensorView& y, StepContext& step) {
  ExpertBatch out;
  for (size_t i = 0; i < moe.experts.size(); ++i)
    if (first[i] < first[i + 1]) out.experts.push_back({&moe.experts[i], first[i], first[i + 1]});
  if (out.experts.empty()) return out;
  out.x = GatherTokens(x, token, step);
  out.inner = step.workspace->Take(DType::kF32, {y.shape[0], moe.experts[0].up.outputs()});
  out.y = y;
  out.whole = moe.whole_experts;
  return out;
}

void RunExperts(std::span<const ExpertBatch> batches, StepContext& step) {
  std::vector<Product> products;
  for (const ExpertBatch& b : batches)
    for (const ExpertRows& e : b.experts)
      products.push_back(
          {&e.mlp->up, &e.mlp->gate, b.x.Rows(e.begin, e.end), b.inner.Slice(0, e.begin, e.end)});
  Multiply(products, step);
  products.clear();
  for (const ExpertBatch& b : batches) {
    if (b.experts.empty()) continue;
    std::vector<const Linear*> down;  // their formats may differ
    for (const ExpertRows& e : b.experts) down.push_back(&e.mlp->down);
    const int64_t width = b.experts.front().mlp->down.inputs();
    const TensorView all = b.whole ? b.inner : GatherColumns(b.inner, width, step);
    const Activations inner = RoundActivations(all, down, step);
    for (const ExpertRows& e : b.experts)
      products.push_back(
          {&e.mlp->down, nullptr, inner.Rows(e.begin, e.end), b.y.Slice(0, e.begin, e.end)});
  }
  Multiply(products, step);
}

RowsOfExperts ComputeExperts(const MoeLayer& moe, const RoutedTokens& tokens,
                             const TensorView& share, int64_t width, StepContext& step) {
  RowsOfExperts out;
  const auto pairs = std::ssize(tokens.experts);
  const Grouping groups = GroupByExpert(tokens.experts, moe.dims.experts, moe.dims.chosen, step);
  out.first = CopyToHost(groups.first, step.workspace->device(), step.exec.stream);
  out.row = groups.row;
  out.y = step.workspace->Take(DType::kF32, {pairs, width});
  const Activations x = RoundForAll(moe, tokens.x, step);
  std::vector<ExpertBatch> all;
  // The expert with the most rows first: while one thread computes it, others read weights.
  if (moe.has_shared) all.push_back(SharedExpert(moe, x, share, step));
  all.push_back(RoutedExperts(moe, x,
                              std::span(out.first).subspan(static_cast<size_t>(moe.first_expert)),
                              groups.token, out.y, step));
  RunExperts(all, step);
  return out;
}

}  // namespace latte
