// clang-format off
// The mixture-of-experts layer: router, routed experts, shared experts.
//
//   y = Σ_k w_k · Expert_{e_k}(x) + Shared(x)
//
// Tokens are grouped by expert, so the weights of every chosen expert are read once per step. Sums
// run in the order of k, so the result of a token does not depend on other tokens.
// If several groups of ranks share the experts (step.expert_ranks), they compute them together
// (groups.h). Source: DeepSeek-V3 (arXiv 2412.19437) §2.1.2.
// clang-format on
#pragma once

#include <vector>

#include "src/checkpoint/config/model_config.h"
#include "src/kernels/params/moe.h"
#include "src/layers/mlp.h"
#include "src/layers/ranks.h"

namespace latte {

// One projection of the experts that one call can compute; experts that are stored otherwise have
// no weights here.
struct ExpertTable {
  std::vector<ExpertWeights> weights;  // of each expert of MoeLayer
  size_t example = 0;                  // an expert that has weights
};

// Immutable after loading.
struct MoeLayer {
  MoeDims dims;
  Linear router;  // [E, D]; multiplied in fp32 always
  Tensor bias;    // [E] f32, e_score_correction_bias; empty when the router has none
  // Of all ranks, this one's share of each expert; or, with whole_experts, the experts from
  // first_expert on.
  std::vector<Mlp> experts;
  std::vector<ExpertTable> up_tables, down_tables;  // views of `experts`, by Tabulate
  bool whole_experts = false;
  bool larger_than_memory = false;  // the model: pages of chosen experts are requested at once
  int64_t first_expert = 0;
  int64_t ranks = 1;  // that have the experts
  bool has_shared = false;
  Mlp shared;  // one MLP of width shared·width
};

// Fills the tables of the layer, once its experts are complete.
void Tabulate(MoeLayer& moe);

// Writes y from x. Shapes: x [T, D] f32 (normed hidden), y [T, D] f32.
void Forward(const MoeLayer& moe, const TensorView& x, const TensorView& y, StepContext& step);

}  // namespace latte
