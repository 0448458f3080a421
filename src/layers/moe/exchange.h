// Tokens of several groups of ranks on their way to experts, and rows of experts on their way back.
#pragma once

#include <span>
#include <vector>

#include "src/comm/communicator.h"
#include "src/layers/moe/experts.h"

namespace latte {

// Which of the tokens of all groups, in order, each rank sends: a group's tokens are divided among
// its ranks.
class TokenShares {
 public:
  // group_tokens: [groups]; each group has as many of the `ranks` ranks.
  TokenShares(std::span<const int64_t> group_tokens, int64_t ranks);

  int64_t ranks() const { return std::ssize(begins_) - 1; }
  int64_t ranks_per_group() const { return ranks_per_group_; }
  int64_t total() const { return begins_.back(); }
  int64_t most() const;  // that a rank sends
  int64_t Begin(int64_t rank) const { return begins_[static_cast<size_t>(rank)]; }
  int64_t Count(int64_t rank) const { return Begin(rank + 1) - Begin(rank); }
  // The first token of the rank's group, and the number of its tokens.
  int64_t GroupBegin(int64_t rank) const { return Begin(FirstOfGroup(rank)); }
  int64_t GroupCount(int64_t rank) const {
    return Begin(FirstOfGroup(rank) + ranks_per_group_) - GroupBegin(rank);
  }
  // Where the tokens of each rank of the group begin within the group, and the end.
  std::vector<int64_t> BeginsInGroup(int64_t rank) const;

 private:
  int64_t FirstOfGroup(int64_t rank) const { return rank / ranks_per_group_ * ranks_per_group_; }

  int64_t ranks_per_group_ = 1;
  std::vector<int64_t> begins_;  // [ranks + 1]
};

// The form in which kAuto exchanges `tokens` tokens of all groups, D numbers each. A function of
// its arguments alone, so that all ranks choose alike.
//
//   gather      a rank receives all tokens, in one exchange
//   all-to-all  it receives those that chose one of its experts, in two: the numbers of tokens go
//               first. If all experts are equally likely, and a rank has S of E, a token chooses
//               one of them with the probability 1 − Π_{i<K} (E − S − i) / (E − i).
ExpertExchange CheaperExchange(const MoeDims& dims, int64_t d, int64_t tokens, int64_t ranks);

// Tokens that a rank has received, in the order of their senders and as these have them.
struct ReceivedTokens {
  RoutedTokens tokens;
  std::vector<int64_t> counts;  // [ranks] of each sender
};

// Sends this rank's tokens to the ranks that need them: to all, or with kAllToAll to the ranks that
// have the chosen experts. Every rank of step.expert_ranks calls it. x travels in f32: it is
// rounded where it arrives, to the same bytes.
ReceivedTokens SendTokens(const MoeLayer& moe, const RoutedTokens& own, const TokenShares& shares,
                          ExpertExchange exchange, StepContext& step);

// Returns rows of whole experts to the ranks that sent their tokens. rows: [M, D] f32, to_ranks[r]
// of them for rank r in turn, each in the order of its tokens and, for a token, of its choices.
// Returns the rows of `own` tokens [T·K, D], and writes the row of each (t, k) to
// row_of_pair[t·K + k]. Every rank of step.expert_ranks
// calls it.
TensorView ReturnRows(const MoeLayer& moe, const TensorView& rows,
                      std::span<const int64_t> to_ranks, const RoutedTokens& own,
                      std::span<int32_t> row_of_pair, StepContext& step);

// Fills y [T, D] f32, the tokens of this rank's group, from the columns that all ranks have
// computed for the tokens of all groups. share: [tokens of all groups, this rank's share of D] f32.
// Every rank of step.expert_ranks calls it.
void ReturnColumns(const TensorView& share, const TensorView& y, const TokenShares& shares,
                   StepContext& step);

}  // namespace latte
