// Measures steps of many shapes and fits their costs for the simulation.
#pragma once

#include <string>

#include "src/base/json_out.h"
#include "src/engine/settings.h"
#include "src/jobs/job_progress.h"
#include "src/jobs/simulate/step_cost.h"
#include "src/models/model.h"

namespace latte {

struct BenchStepsOptions {
  bool quick = false;  // fewer steps, and three runs of each instead of nine
};

// The fitted costs and their data.
struct BenchedSteps {
  StepCost cost;
  JsonOut record;
};

// Runs the model over decode steps (1 … max_sequences, at three depths), prompt pieces (4 …
// max_batch_tokens, at three depths, by every path that the settings can choose), both together,
// and prompts after idle time, each with sampling at temperature 1; in a model that chooses keys,
// also decodes and prompt pieces beyond its top-k, as far as max_tokens. The cached rows repeat one
// page: speed does not depend on values.
//   made_for, microseconds       read by LoadStepCost
//   worst_error, median_error    of the fit, relative to the measurement
//   steps                        tokens, drawn, woken, pieces (groups of equal ones: how many,
//                                count, cached, path), us, fitted_us
// Errors: kExhausted if the cache does not fit.
[[nodiscard]] Result<BenchedSteps> BenchSteps(const Model& model, const Settings& settings,
                                              const Machine& machine,
                                              const BenchStepsOptions& options,
                                              const JobProgress& progress = {});

// Identifies the runs that the costs apply to: the shape of the model, the settings of its
// computation, and the instructions and threads of the machine.
std::string StepsMadeFor(const ModelConfig& config, const Settings& settings,
                         const Machine& machine);

}  // namespace latte
