// Predicts the time of a step as a sum of terms, whose costs come from a least-squares fit to
// measured steps. See docs/simulation.md.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"
#include "src/checkpoint/config/model_config.h"
#include "src/layers/path_groups.h"

namespace latte {

// The work of one sequence in a step.
struct PieceShape {
  int64_t count = 1;   // new tokens
  int64_t cached = 0;  // cached tokens before them
  MlaPath path = MlaPath::kAbsorbed;
};

struct StepShape {
  std::vector<PieceShape> pieces;
  int64_t drawn = 0;   // number of sampled tokens
  bool woken = false;  // threads slept before it, and caches may hold data of other programs

  int64_t tokens() const;
};

// The amounts depend on this and on the step.
struct StepModel {
  MoeDims moe = {};
  int64_t sparse_from = kNeverSparse;  // tokens from this position on choose their keys
};

// The terms, in the order of their costs.
inline constexpr std::array<std::string_view, 17> kStepTerms = {
    "step",            // 1
    "sequences",       // pieces
    "prompts",         // pieces of more than one token
    "tokens_to_16",    // new tokens: the first 16 of a step,
    "tokens_to_128",   //   the next 112,
    "tokens_beyond",   //   and the others
    "experts",         // routed experts that are expected to be chosen, and so read
    "decode_keys",     // cached tokens that pieces of one token attend to
    "absorbed_pairs",  // pairs of query and key of longer absorbed pieces
    "absorbed_keys",   // keys of these pieces
    "expanded_keys",   // cached and new tokens of latent pieces, which every piece expands
    "expanded_pairs",  // pairs of query and key of pieces with expanded keys
    "drawn",           // sampled tokens
    "woken",           // 1 in a step after idle time,
    "woken_tokens",    //   and its new tokens
    "sparse_tokens",   // tokens that choose their keys: each attends to equally many
    "scored_pairs",    // pairs of such a token and a key that its indexer scores
};
// Files of earlier versions end here. The costs of later terms are then 0.
inline constexpr size_t kRequiredStepTerms = 15;
using StepTerms = std::array<double, kStepTerms.size()>;

// The amount of each term in a step. A piece may cross sparse_from: its first tokens count by its
// path, the others in sparse_tokens and scored_pairs.
StepTerms TermsOf(const StepShape& step, const StepModel& model);

// The expected number of experts that `tokens` tokens choose if each chooses `chosen` of `experts`
// at random: E·(1 − (1 − K/E)^T).
double ExpectedExperts(int64_t tokens, const MoeDims& moe);

struct StepCost {
  StepTerms seconds = {};  // per unit of each term; never negative

  double Of(const StepShape& step, const StepModel& model) const;
};

// A step and how long it took.
struct MeasuredStep {
  StepShape shape;
  double seconds = 0;
};

// The non-negative costs with the least sum of squared relative errors.
// Requires: every step took some time.
StepCost FitStepCost(std::span<const MeasuredStep> steps, const StepModel& model);

// Costs apply to one model on one machine with one number of threads: `made_for` identifies them.
JsonOut ToJson(const StepCost& cost, const std::string& made_for);
// Errors: of reading and parsing; kCorrupt for a negative or missing cost; kInvalidArgument if they
// apply to something else.
[[nodiscard]] Result<StepCost> LoadStepCost(const std::string& path, const std::string& made_for);

}  // namespace latte
