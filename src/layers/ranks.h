// Ranks that compute a step together, and their communicators.
//
// The ranks of a tensor-parallel group share the weights: each holds the rows of some heads, of
// some inner columns of the MLPs, and of some outputs of W_O, of the down projections and of the LM
// head. Hidden states are whole on every rank. A product that needs the columns of all ranks
// gathers them first:
//
//   x ─ W_Q, W_KV of own heads ─ attention ─▶ o of own heads ─ gather ─▶ o ─ own rows of W_O ─▶ own
//   columns of y ─ gather ─▶ y
//
// No sum is divided among ranks, so every number has the bytes of a single rank, unless the number
// of heads or outputs selects another kernel (docs/ranks.md). This costs more traffic than partial
// sums: per layer and token H·V + D numbers of attention and F + D of the MLP, instead of D and D.
#pragma once

#include <optional>
#include <string_view>

#include "latte/status.h"

#include "src/layers/linear.h"
#include "src/tensor/key_owner.h"

namespace latte {

// What one rank of a group of equals holds: part `index` of `count`.
struct RankShare {
  int64_t index = 0;
  int64_t count = 1;
  // Routed experts: each rank has some of them whole, not a part of each (expert parallelism).
  bool whole_experts = false;

  // Of rows in units of `unit`, such as the rows of a head.
  WeightSlice Rows(int64_t unit = 1) const {
    return {index, count, WeightSlice::Along::kRows, unit};
  }
  int64_t Of(int64_t size) const { return Rows().End(size) - Rows().Begin(size); }
};

// The parts of a model that a rank holds.
struct ModelShare {
  RankShare group;  // of everything but routed experts: its part of its group of ranks
  RankShare
      experts;  // of routed experts: its part of all ranks; equal to `group` if there is one group
  // Of the heads that have queries and weights of kv_b here. Ranks that divide the cache have the
  // same heads, so there are fewer parts than ranks of the group. None: `group`.
  std::optional<RankShare> heads = {};
};

// ModelShare::heads of a rank whose group has parts of the cache on `cache_ranks` neighbours each.
inline RankShare HeadShare(const RankShare& group, int64_t cache_ranks) {
  return {group.index / cache_ranks, group.count / cache_ranks};
}

// The keys that this rank has.
KeyOwner OwnerOf(const StepContext& step);

// The text of an option. Errors: kInvalidArgument listing the choices.
[[nodiscard]] Result<ExpertExchange> ParseExpertExchange(std::string_view text);
std::string_view Name(ExpertExchange exchange);

// The columns of all of `ranks`, in their order: [M, N] f32 in the workspace, or `mine` itself if
// there is one rank. Every one of them calls it. Shapes: mine [M, this rank's share of N] f32,
// contiguous. unit: of the shares.
TensorView GatherColumns(const TensorView& mine, int64_t n, Communicator& ranks, StepContext& step,
                         int64_t unit = 1);
// The same over StepContext::tensor_ranks; `mine` itself if this rank is alone.
TensorView GatherColumns(const TensorView& mine, int64_t n, StepContext& step);

// Writes the parts of `ranks` ranks, one after the other, side by side in y [M, N] f32. parts: M·N
// f32, [M, rank's share of N in units of `unit`] of each rank.
void JoinColumns(const TensorView& parts, int64_t ranks, int64_t unit, const TensorView& y,
                 StepContext& step);

// As Apply, but `linear` has this rank's share of the N outputs. Every rank of the step calls it.
// Shapes: x [M, K] f32, y [M, N] f32.
void ApplyShared(const Linear& linear, const TensorView& x, const TensorView& y, StepContext& step);

// Fills y [M, W] f32 from the rows of all of `ranks`, each of which has written its own: rank r has
// rows [begins[r], begins[r + 1]), begins [ranks + 1]. Every one of them calls it.
void GatherRows(const TensorView& y, std::span<const int64_t> begins, Communicator& ranks);

// Where this rank's share of y [M, N] goes: [M, share of N] f32 in the workspace, or y itself if
// this rank is alone.
TensorView ShareOf(const TensorView& y, StepContext& step);

// Fills y from the shares of all ranks. Requires: `share` is ShareOf(y, step).
void GatherShares(const TensorView& share, const TensorView& y, StepContext& step);

}  // namespace latte
