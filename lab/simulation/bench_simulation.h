// Compares a simulated trace with the same trace served in real time.
#pragma once

#include <optional>
#include <span>

#include "src/engine/core/engine_core.h"
#include "src/jobs/job_progress.h"
#include "src/jobs/simulate/step_cost.h"
#include "src/jobs/simulate/trace.h"

namespace latte {

struct BenchSimulationOptions {
  int runs = 5;  // runs in real time
  // The step costs of every simulation. Not set: steps are measured again before every run, so a
  // change of the machine affects both.
  std::optional<StepCost> cost;
  JobProgress measured = {};  // of the steps of a run
  JobProgress served = {};    // of the requests of a run in real time
  // Errors: kInvalidArgument naming the flag.
  [[nodiscard]] Status Validate() const;
};

//   simulated, real   per metric: median, minimum and maximum of the runs
//   ratio             median, minimum and maximum of simulated / real, run by run, for the metrics
//                     that should agree: output_tokens_per_s, ttft_ms_p50, ttft_ms_p99,
//                     inter_token_ms_p50, inter_token_ms_p99, end_to_end_ms_p50 and
//                     end_to_end_ms_p99; null if no run has the metric
// Errors: of BenchSteps and ReplayTrace.
[[nodiscard]] Result<JsonOut> BenchSimulation(std::span<const TraceRequest> trace,
                                              const EngineParts& parts, const Settings& settings,
                                              const BenchSimulationOptions& options);

}  // namespace latte
