// The steps of a mixture-of-experts layer on one rank: the router's choice, and the rows of
// experts.
#pragma once

#include <optional>
#include <span>

#include "src/layers/moe/moe.h"

namespace latte {

// Tokens and the experts that they chose.
struct RoutedTokens {
  TensorView x;                // [M, D] f32
  std::span<int32_t> experts;  // [M·K], best first
  std::span<float> weights;    // [M·K]

  int64_t count() const { return x.shape[0]; }
};

// x [M, D] f32, with room in the workspace for M·K experts and weights.
RoutedTokens WithRoom(const MoeLayer& moe, const TensorView& x, StepContext& step);

// The router's choice for x [M, D] f32.
RoutedTokens Route(const MoeLayer& moe, const TensorView& x, StepContext& step);

// The tokens of each expert, contiguous and in token order.
struct Grouping {
  std::span<int32_t> first;  // [E+1] rows of expert e are [first[e], first[e+1])
  std::span<int32_t> token;  // [T·K] token of a row
  std::span<int32_t> row;    // [T·K] row of (token, k)
};

// experts: [T·K], each in [0, E).
Grouping GroupByExpert(std::span<const int32_t> experts, int64_t e, int64_t k, StepContext& step);

// The rows of the routed experts, or of the shared one.
struct ExpertRows {
  std::span<const int32_t> first;  // of Grouping, from this rank's first expert on; empty: shared
  Activations x;
  TensorView inner, y;
};

// The shared expert over all M tokens of x. y [M, this rank's share of D] f32.
ExpertRows SharedExpert(const MoeLayer& moe, const Activations& x, const TensorView& y,
                        StepContext& step);

// This rank's routed experts over their rows, which are tokens of x. token: of each row. first: of
// Grouping, from this rank's first expert on. y [rows, D, or this rank's share of D] f32. Empty:
// there is no row or no expert.
std::optional<ExpertRows> RoutedExperts(const MoeLayer& moe, const Activations& x,
                                        std::span<const int32_t> first,
                                        std::span<const int32_t> token, const TensorView& y,
                                        StepContext& step);

// All experts, each over its own rows, in two passes. Weights of chosen experts are read once. The
// ranks of step.tensor_ranks that share experts call it together.
void RunExperts(const MoeLayer& moe, const std::optional<ExpertRows>& shared,
                const std::optional<ExpertRows>& routed, StepContext& step);

struct RowsOfExperts {
  TensorView y;              // [M·K, width] f32: of the experts that this rank has
  std::span<int32_t> row;    // [M·K] row of (token, k)
  std::span<int32_t> first;  // [E+1] rows of expert e are [first[e], first[e+1])
};

// Every expert that a token chose over its rows, as far as this rank has it, and the shared expert,
// whose columns go to `share` [M, this rank's share of D] f32. width: D with whole experts, else
// that share. The ranks of step.tensor_ranks have the experts and call it together with the same
// tokens.
RowsOfExperts ComputeExperts(const MoeLayer& moe, const RoutedTokens& tokens,
                             const TensorView& share, int64_t width, StepContext& step);

}  // namespace latte
