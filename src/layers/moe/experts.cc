#include "src/layers/moe/experts.h"

#include <algorithm>
#include <vector>

#include "src/base/file.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/params/moe.h"
#include "src/kernels/registry.h"
#include "src/layers/ranks.h"

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

void RequestMatrix(const TensorView& matrix) {
  if (matrix.empty()) return;
  const int64_t row = matrix.stride[0] * SizeOf(matrix.dtype);
  ReadAhead({matrix.data, static_cast<size_t>(matrix.shape[0] * row)});
}

// Experts with tokens are read from disk while the first of them are computed, and not page by page
// as they are touched.
void RequestExperts(const MoeLayer& moe, std::span<const int32_t> first) {
  for (size_t e = 0; e < moe.experts.size(); ++e) {
    if (first[e] == first[e + 1]) continue;
    for (const Linear* const linear :
         {&moe.experts[e].gate, &moe.experts[e].up, &moe.experts[e].down})
      RequestMatrix(linear->matrix.weight);
  }
}

// The weights of one projection.
Product WeightsOf(const Mlp& mlp, Linear Mlp::*projection) {
  const bool gated = projection == &Mlp::up;
  return {&(mlp.*projection), gated ? &mlp.gate : nullptr, {}, {}};
}

// One projection of the routed experts.
struct RoutedProduct {
  std::span<const int32_t> first;
  Activations x;
  TensorView y;
};

// One projection of all experts. The shared one is computed with the routed ones of its format.
void MultiplyExperts(const MoeLayer& moe, Linear Mlp::*projection,
                     std::span<const ExpertTable> tables, const std::optional<Product>& shared,
                     const std::optional<RoutedProduct>& routed, StepContext& step) {
  bool shared_left = shared && shared->y.elements() > 0;
  for (const ExpertTable& table : routed ? tables : std::span<const ExpertTable>()) {
    const Product example = WeightsOf(moe.experts[table.example], projection);
    const GemmInput in = InputFor(*example.linear, routed->x);
    GemmProblem of_shared;
    ExpertGemmOp::Params p = {.experts = table.weights,
                              .first = routed->first,
                              .x = in.x,
                              .y = routed->y,
                              .x_scale = in.scale,
                              .x_group = in.group};
    if (shared_left && InOneCall(*shared, example)) {
      of_shared = ProblemOf(*shared);
      p.shared = {&of_shared, 1};
      shared_left = false;
    }
    Run<ExpertGemmOp>(p, step.exec);
  }
  if (shared_left) Multiply({&*shared, 1}, step);
}

}  // namespace

void Tabulate(MoeLayer& moe) {
  const auto tables_of = [&](Linear Mlp::*projection) {
    std::vector<ExpertTable> out;
    for (size_t e = 0; e < moe.experts.size(); ++e) {
      const Product expert = WeightsOf(moe.experts[e], projection);
      if (expert.linear->matrix.weight.empty()) continue;  // more ranks than outputs
      auto table = std::ranges::find_if(out, [&](const ExpertTable& t) {
        return InOneCall(WeightsOf(moe.experts[t.example], projection), expert);
      });
      if (table == out.end())
        table = out.insert(out.end(), {std::vector<ExpertWeights>(moe.experts.size()), e});
      ExpertWeights& own = table->weights[e];
      own = {.w = expert.linear->matrix.weight, .w_scale = expert.linear->Scale()};
      if (expert.gate == nullptr) continue;
      own.gate = expert.gate->matrix.weight;
      own.gate_scale = expert.gate->Scale();
    }
    return out;
  };
  moe.up_tables = tables_of(&Mlp::up);
  moe.down_tables = tables_of(&Mlp::down);
}

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

ExpertRows SharedExpert(const MoeLayer& moe, const Activations& x, const TensorView& y,
                        StepContext& step) {
  return {{}, x, step.workspace->Take(DType::kF32, {y.shape[0], moe.shared.up.outputs()}), y};
}

std::optional<ExpertRows> RoutedExperts(const MoeLayer& moe, const Activations& x,
                                        std::span<const int32_t> first,
                                        std::span<const int32_t> token, const TensorView& y,
                                        StepContext& step) {
  if (moe.experts.empty() || token.empty()) return std::nullopt;
  const int64_t width = moe.experts[0].up.outputs();
  return ExpertRows{first.first(moe.experts.size() + 1), GatherTokens(x, token, step),
                    step.workspace->Take(DType::kF32, {y.shape[0], width}), y};
}

void RunExperts(const MoeLayer& moe, const std::optional<ExpertRows>& shared,
                const std::optional<ExpertRows>& routed, StepContext& step) {
  if (moe.larger_than_memory && routed) RequestExperts(moe, routed->first);
  std::optional<Product> of_shared;
  if (shared) of_shared = {&moe.shared.up, &moe.shared.gate, shared->x, shared->inner};
  std::optional<RoutedProduct> of_routed;
  if (routed) of_routed = {routed->first, routed->x, routed->inner};
  MultiplyExperts(moe, &Mlp::up, moe.up_tables, of_shared, of_routed, step);
  if (shared) {
    const TensorView all = GatherColumns(shared->inner, moe.shared.down.inputs(), step);
    of_shared = {&moe.shared.down, nullptr, RoundActivations(all, {&moe.shared.down}, step),
                 shared->y};
  }
  if (routed) {
    const TensorView all = moe.whole_experts
                               ? routed->inner
                               : GatherColumns(routed->inner, moe.experts[0].down.inputs(), step);
    std::vector<const Linear*> down;  // their formats may differ
    for (const ExpertTable& table : moe.down_tables)
      down.push_back(&moe.experts[table.example].down);
    of_routed = {routed->first, RoundActivations(all, down, step), routed->y};
  }
  MultiplyExperts(moe, &Mlp::down, moe.down_tables, of_shared, of_routed, step);
}

RowsOfExperts ComputeExperts(const MoeLayer& moe, const RoutedTokens& tokens,
                             const TensorView& share, int64_t width, StepContext& step) {
  RowsOfExperts out;
  const auto pairs = std::ssize(tokens.experts);
  const Grouping groups = GroupByExpert(tokens.experts, moe.dims.experts, moe.dims.chosen, step);
  out.first = groups.first;
  out.row = groups.row;
  out.y = step.workspace->Take(DType::kF32, {pairs, width});
  const Activations x = RoundForAll(moe, tokens.x, step);
  std::optional<ExpertRows> shared;
  if (moe.has_shared) shared = SharedExpert(moe, x, share, step);
  const std::span<const int32_t> own_first =
      out.first.subspan(static_cast<size_t>(moe.first_expert));
  RunExperts(moe, shared, RoutedExperts(moe, x, own_first, groups.token, out.y, step), step);
  return out;
}

}  // namespace latte
