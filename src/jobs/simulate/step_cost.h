// How long a step takes: a sum of terms with a meaning, each priced by a least-squares fit to steps
// that were measured. docs/simulation.md.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"
#include "src/checkpoint/config/model_config.h"
#include "src/layers/step_context.h"

namespace latte {

// What one sequence computes in a step.
struct PieceShape {
  int64_t count = 1;   // new tokens
  int64_t cached = 0;  // before them
  MlaPath path = MlaPath::kAbsorbed;
};

struct StepShape {
  std::vector<PieceShape> pieces;
  int64_t drawn = 0;   // tokens
  bool woken = false;  // threads slept before it, and caches may hold other programs' lines

  int64_t tokens() const;
};

// The terms, in the order of their prices.
inline constexpr std::array<std::string_view, 15> kStepTerms = {
    "step",            // 1
    "sequences",       // pieces
    "prompts",         // pieces of more than one token
    "tokens_to_16",    // new tokens: the first 16 of a step,
    "tokens_to_128",   //   the next 112,
    "tokens_beyond",   //   and the others
    "experts",         // routed experts that are expected to be chosen, so read
    "decode_keys",     // cached tokens that single tokens attend to
    "absorbed_pairs",  // pairs of query and key of absorbed pieces of more tokens
    "absorbed_keys",   // keys of those pieces
    "expanded_keys",   // cached and new tokens of latent pieces, expanded in every piece
    "expanded_pairs",  // pairs of query and key of pieces with expanded keys
    "drawn",           // tokens drawn
    "woken",           // 1 in a step after idleness,
    "woken_tokens",    //   and its new tokens
};
using StepTerms = std::array<double, kStepTerms.size()>;

// How much of each term a step has.
StepTerms TermsOf(const StepShape& step, const MoeDims& moe);

// Experts that `tokens` tokens are expected to choose when each takes `chosen` of `experts` at
// random: E·(1 − (1 − K/E)^T).
double ExpectedExperts(int64_t tokens, const MoeDims& moe);

struct StepCost {
  StepTerms seconds = {};  // per unit of each term; never negative

  double Of(const StepShape& step, const MoeDims& moe) const;
};

// A step and how long it took.
struct MeasuredStep {
  StepShape shape;
  double seconds = 0;
};

// The prices with the least sum of squared relative errors, none of them negative.
// Requires: every step took some time.
StepCost FitStepCost(std::span<const MeasuredStep> steps, const MoeDims& moe);

// Prices are of one model on one machine with so many threads: `made_for` says which.
JsonOut ToJson(const StepCost& cost, const std::string& made_for);
// Errors: of reading and parsing; kCorrupt for a price that is negative or missing;
// kInvalidArgument when they were made for something else.
[[nodiscard]] Result<StepCost> LoadStepCost(const std::string& path, const std::string& made_for);

}  // namespace latte
