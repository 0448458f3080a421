// A trace through the engine's own scheduler and page bookkeeping, with a clock that steps move by
// what they are expected to cost. Nothing is computed.
#pragma once

#include <span>
#include <vector>

#include "src/checkpoint/config/model_config.h"
#include "src/engine/settings.h"
#include "src/jobs/simulate/replay_metrics.h"
#include "src/jobs/simulate/step_cost.h"
#include "src/jobs/simulate/trace.h"

namespace latte {

// What became of a trace; requests in its order.
struct ServedTrace {
  std::vector<RequestTimes> requests;
  ServeCounts counts;

  JsonOut Metrics() const;
};

// Every answer has the length that the trace says. Requests that come while the queue is full are
// refused, as the engine does. Requires: `trace` is sorted by arrival and fits the settings.
ServedTrace Simulate(std::span<const TraceRequest> trace, const ModelConfig& config,
                     const Settings& settings, const StepCost& cost);

}  // namespace latte
