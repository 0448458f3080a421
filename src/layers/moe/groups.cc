#include "src/layers/moe/groups.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "src/kernels/params/gemm.h"
#include "src/kernels/params/moe.h"
#include "src/kernels/registry.h"
#include "src/layers/moe/exchange.h"
#include "src/layers/moe/experts.h"
#include "src/layers/ranks.h"

namespace latte {
namespace {

// The received pairs (token, expert) of this rank's experts, in the order of senders, tokens and
// choices.
struct OwnPairs {
  std::vector<int32_t> expert;    // [P] number among this rank's
  std::vector<int32_t> token;     // [P] row of the received tokens
  std::vector<int64_t> of_ranks;  // [ranks] pairs of each sender
};

OwnPairs FindOwnPairs(const MoeLayer& moe, const ReceivedTokens& received) {
  OwnPairs out;
  const auto end = moe.first_expert + std::ssize(moe.experts);
  const int64_t k = moe.dims.chosen;
  int64_t token = 0;
  for (const int64_t count : received.counts) {
    const auto before = std::ssize(out.token);
    for (int64_t i = token * k; i < (token + count) * k; ++i) {
      const int64_t e = received.tokens.experts[static_cast<size_t>(i)];
      if (e < moe.first_expert || e >= end) continue;
      out.expert.push_back(static_cast<int32_t>(e - moe.first_expert));
      out.token.push_back(static_cast<int32_t>(i / k));
    }
    token += count;
    out.of_ranks.push_back(std::ssize(out.token) - before);
  }
  return out;
}

TensorView RowsAt(const TensorView& from, std::span<const int32_t> rows, StepContext& step) {
  const TensorView out = step.workspace->Take(from.dtype, {std::ssize(rows), from.shape[1]});
  if (!rows.empty()) Run<GatherOp>({from, rows, out}, step.exec);
  return out;
}

// Rows of this rank's experts over `pairs`, in the order of pairs [P, D] f32. Writes the columns of
// the shared expert over x, the tokens of the group, to `share`.
TensorView ComputeOwnPairs(const MoeLayer& moe, const ReceivedTokens& received,
                           const OwnPairs& pairs, const TensorView& x, const TensorView& share,
                           StepContext& step) {
  std::optional<ExpertRows> shared;
  if (moe.has_shared && x.shape[0] > 0)
    shared = SharedExpert(moe, RoundActivations(x, {&moe.shared.up}, step), share, step);
  if (pairs.token.empty()) {
    RunExperts(moe, shared, std::nullopt, step);
    return step.workspace->Take(DType::kF32, {0, x.shape[1]});
  }
  const Grouping groups =
      GroupByExpert(pairs.expert, std::ssize(moe.experts), /*k=*/1, step);  // "tokens" are pairs
  std::vector<int32_t> token;
  for (const int32_t pair : groups.token) token.push_back(pairs.token[static_cast<size_t>(pair)]);
  const TensorView y = step.workspace->Take(DType::kF32, {std::ssize(pairs.token), x.shape[1]});
  const Activations rounded = RoundActivations(received.tokens.x, {&moe.experts.front().up}, step);
  RunExperts(moe, shared, RoutedExperts(moe, rounded, groups.first, token, y, step), step);
  return RowsAt(y, groups.row, step);
}

void ForwardWholeExperts(const MoeLayer& moe, const TokenShares& shares, const RoutedTokens& own,
                         const TensorView& x, const TensorView& y, StepContext& step) {
  const int64_t rank = step.expert_ranks->rank();
  const ReceivedTokens received = SendTokens(moe, own, shares, step.expert_exchange, step);
  const OwnPairs pairs = FindOwnPairs(moe, received);
  const TensorView share = ShareOf(y, step);
  const TensorView rows = ComputeOwnPairs(moe, received, pairs, x, share, step);
  std::vector<int32_t> row_of_pair(own.experts.size());
  const TensorView arrived = ReturnRows(moe, rows, pairs.of_ranks, own, row_of_pair, step);
  if (x.shape[0] == 0) return;
  if (moe.has_shared) GatherShares(share, y, step);
  const std::vector<int64_t> begins = shares.BeginsInGroup(rank);
  const int64_t begin = shares.Begin(rank) - shares.GroupBegin(rank);
  if (own.count() > 0)
    Run<CombineOp>({arrived, row_of_pair, own.weights, moe.dims.chosen,
                    y.Slice(0, begin, begin + own.count()), /*add=*/moe.has_shared},
                   step.exec);
  if (shares.ranks_per_group() > 1) GatherRows(y, begins, *step.tensor_ranks);
}

void ForwardSharesOfExperts(const MoeLayer& moe, const TokenShares& shares, const RoutedTokens& own,
                            const TensorView& y, StepContext& step) {
  const ReceivedTokens received = SendTokens(moe, own, shares, step.expert_exchange, step);
  const RoutedTokens& all = received.tokens;
  StepContext together = step;  // all ranks as one group
  together.tensor_ranks = step.expert_ranks;
  together.expert_ranks = nullptr;
  const RankShare part{step.expert_ranks->rank(), moe.ranks};
  const TensorView share = step.workspace->Take(DType::kF32, {all.count(), part.Of(y.shape[1])});
  const RowsOfExperts rows = ComputeExperts(moe, all, share, share.shape[1], together);
  Run<CombineOp>({rows.y, rows.row, all.weights, moe.dims.chosen, share, /*add=*/moe.has_shared},
                 step.exec);
  ReturnColumns(share, y, shares, step);
}

}  // namespace

void ForwardOverGroups(const MoeLayer& moe, const TensorView& x, const TensorView& y,
                       StepContext& step) {
  const int64_t rank = step.expert_ranks->rank();
  const TokenShares shares(step.group_tokens, step.expert_ranks->size());
  LATTE_CHECK(moe.ranks == shares.ranks(), "{} ranks have the experts of a layer for {}", moe.ranks,
              shares.ranks());
  const int64_t in_group = step.tensor_ranks == nullptr ? 1 : step.tensor_ranks->size();
  LATTE_CHECK(in_group == shares.ranks_per_group(), "a group of {} ranks for {}", in_group,
              shares.ranks_per_group());
  LATTE_CHECK(x.shape[0] == shares.GroupCount(rank), "{} tokens in a group of {}", x.shape[0],
              shares.GroupCount(rank));
  const int64_t begin = shares.Begin(rank) - shares.GroupBegin(rank);
  const RoutedTokens own = Route(moe, x.Slice(0, begin, begin + shares.Count(rank)), step);
  if (moe.whole_experts) return ForwardWholeExperts(moe, shares, own, x, y, step);
  ForwardSharesOfExperts(moe, shares, own, y, step);
}

void ForwardSpread(const MoeLayer& moe, const TensorView& x, const TensorView& y,
                   StepContext& step) {
  std::vector<int64_t> begins = {0};
  for (const int64_t count : step.group_tokens) begins.push_back(begins.back() + count);
  const auto group = static_cast<size_t>(step.cache_ranks->rank());
  const int64_t begin = begins[group];
  const int64_t end = begins[group + 1];
  ForwardOverGroups(moe, x.Slice(0, begin, end), y.Slice(0, begin, end), step);
  GatherRows(y, begins, *step.cache_ranks);
}

}  // namespace latte
