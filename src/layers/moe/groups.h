// Mixture-of-experts layers of several groups of ranks. Each group has its own tokens, and all
// ranks share the routed experts. Every rank of step.expert_ranks calls it for every layer, with
// tokens or without.
//
// The tokens of a group are divided among its ranks, so that no token is sent twice. Then
//
//   whole experts      tokens ─▶ the ranks of the chosen experts ─▶ rows of experts ─▶ back to the
//                      sender, which adds them in the router's order. The group computes the shared
//                      expert.
//   shares of experts  tokens ─▶ all ranks; each computes its columns of all experts, also of the
//                      shared one, for all tokens ─▶ columns back to the group of each token.
//
// No sum is divided among ranks, so a group gets the bytes of a single rank (docs/ranks.md).
#pragma once

#include "src/layers/moe/moe.h"

namespace latte {

// As Forward of moe.h. Requires: step.expert_ranks, which have moe.ranks ranks. Shapes: x, y [T, D]
// f32; T is this group's number in step.group_tokens.
void ForwardOverGroups(const MoeLayer& moe, const TensorView& x, const TensorView& y,
                       StepContext& step);

// The same where all groups have the same tokens (StepContext::is_spread): each sends its part of
// them to the experts, and the groups exchange the finished rows. Shapes: x, y [T, D] f32; T is the
// sum of step.group_tokens.
void ForwardSpread(const MoeLayer& moe, const TensorView& x, const TensorView& y,
                   StepContext& step);

}  // namespace latte
