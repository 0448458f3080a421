// A simulated trace beside the same trace served in real time.
#pragma once

#include <optional>
#include <span>

#include "src/engine/engine_core.h"
#include "src/jobs/simulate/step_cost.h"
#include "src/jobs/simulate/trace.h"

namespace latte {

struct BenchSimulationOptions {
  int runs = 5;  // in real time
  // What every simulation takes; none: steps are measured anew before every run, so that a machine
  // that changes does so for both.
  std::optional<StepCost> cost;
  // Errors: kInvalidArgument naming the flag.
  [[nodiscard]] Status Validate() const;
};

// simulated, real   per metric: median, least and most of the runs
// ratio             median, least and most of simulated ÷ real, run by run, for what is to agree:
//                   output_tokens_per_s, ttft_ms_p50, ttft_ms_p99, inter_token_ms_p50,
//                   inter_token_ms_p99, end_to_end_ms_p50 and end_to_end_ms_p99; null where no run
//                   has one
// Errors: of BenchSteps and ServeTrace.
[[nodiscard]] Result<JsonOut> BenchSimulation(std::span<const TraceRequest> trace,
                                              const EngineParts& parts, const Settings& settings,
                                              const BenchSimulationOptions& options);

}  // namespace latte
