// Measures steps of many shapes and prices them for the simulation.
#pragma once

#include <string>

#include "src/base/json_out.h"
#include "src/engine/settings.h"
#include "src/jobs/simulate/step_cost.h"
#include "src/models/model.h"

namespace latte {

struct BenchStepsOptions {
  bool quick = false;  // fewer steps, and three runs of each instead of nine
};

// Prices, and what they came from.
struct BenchedSteps {
  StepCost cost;
  JsonOut record;
};

// Runs the model over decodes (1 … max_sequences, at three depths), prompt pieces (4 …
// max_batch_tokens, at three depths, by every path that the settings can choose), both together,
// and prompts after idleness, each with its draws at temperature 1. Cached rows are those of one
// page, over and over: speed does not depend on values.
//   made_for, microseconds   what LoadStepCost reads
//   worst_error, median_error   of the fit, relative to what was measured
//   steps   tokens, drawn, woken, pieces (of equal ones: how many, count, cached, path), us,
//           fitted_us
// Errors: kExhausted when the cache does not fit.
[[nodiscard]] Result<BenchedSteps> BenchSteps(const Model& model, const Settings& settings,
                                              const Machine& machine,
                                              const BenchStepsOptions& options);

// What prices are good for: the model's shape, how it is computed, and the machine's instructions
// and threads.
std::string StepsMadeFor(const ModelConfig& config, const Settings& settings,
                         const Machine& machine);

}  // namespace latte
