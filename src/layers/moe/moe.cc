#include "src/layers/moe/moe.h"

#include <vector>

#include "src/kernels/params/moe.h"
#include "src/kernels/registry.h"
#include "src/layers/moe/experts.h"
#include "src/layers/moe/groups.h"
#include "src/layers/ranks.h"
#include "src/tensor/transfer.h"

namespace latte {
namespace {

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
  const Workspace::Scope scope(*step.workspace);
  if (step.is_spread) return ForwardSpread(moe, x, y, step);
  if (step.expert_ranks != nullptr) return ForwardOverGroups(moe, x, y, step);
  const RoutedTokens tokens = Route(moe, x, step);
  const TensorView share = ShareOf(y, step);
  // Whole experts give rows of y, shares of experts give the columns of this rank.
  const TensorView& summed = moe.whole_experts ? y : share;
  const RowsOfExperts rows = ComputeExperts(moe, tokens, share, summed.shape[1], step);
  if (moe.whole_experts) {
    if (moe.has_shared) GatherShares(share, y, step);
    // Ranks exchange rows in host memory, so the host may read how many each has.
    const std::vector<int32_t> first =
        CopyToHost(rows.first, step.workspace->device(), step.exec.stream);
    GatherRows(rows.y, BeginsOfRanks(moe, first), *step.tensor_ranks);
  }
  Run<CombineOp>(
      {rows.y, rows.row, tokens.weights, moe.dims.chosen, summed, /*add=*/moe.has_shared},
      step.exec);
  if (!moe.whole_experts) GatherShares(share, y, step);
}

}  // namespace latte
