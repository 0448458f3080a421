// Runs a trace through the engine's own scheduler and page management with a simulated clock, which
// the expected cost of each step advances. Computes no tokens.
#pragma once

#include <span>
#include <vector>

#include "src/checkpoint/config/model_config.h"
#include "src/engine/settings.h"
#include "src/jobs/job_progress.h"
#include "src/jobs/simulate/replay_metrics.h"
#include "src/jobs/simulate/step_cost.h"
#include "src/jobs/simulate/trace.h"

namespace latte {

// The result of a trace; requests in the order of the trace.
struct TraceResult {
  std::vector<RequestTimes> requests;
  TraceCounts counts;

  JsonOut Metrics() const;
};

// With settings.options.dp groups, each has its own scheduler and cache, and the engine's own
// choice gives them the requests. Every answer has the length given by the trace. Requests that
// arrive while the queue is full are refused, as in the engine. `progress`: in requests that have
// ended or were refused; its time does not count. Requires: `trace` is sorted by arrival and fits
// the settings.
TraceResult Simulate(std::span<const TraceRequest> trace, const ModelConfig& config,
                     const Settings& settings, const StepCost& cost,
                     const JobProgress& progress = {});

}  // namespace latte
