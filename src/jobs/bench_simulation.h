// A simulated trace beside the same trace served in real time.
#pragma once

#include <span>

#include "src/engine/engine_core.h"
#include "src/jobs/step_cost.h"
#include "src/jobs/trace.h"

namespace latte {

struct BenchSimulationOptions {
  int runs = 5;  // in real time
  // Errors: kInvalidArgument naming the flag.
  [[nodiscard]] Status Validate() const;
};

// simulated    metrics of the simulation
// real         per metric: median, least and most of the runs
// ratio        simulated ÷ median for what is to agree: output_tokens_per_s, ttft_ms_p50,
//              ttft_ms_p99, inter_token_ms_p50, inter_token_ms_p99, end_to_end_ms_p50 and
//              end_to_end_ms_p99; null where there is no median
// Errors: of ServeTrace.
[[nodiscard]] Result<JsonOut> BenchSimulation(std::span<const TraceRequest> trace,
                                              const EngineParts& parts, const Settings& settings,
                                              const StepCost& cost,
                                              const BenchSimulationOptions& options);

}  // namespace latte
