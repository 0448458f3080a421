// Runs a trace through the engine in real time.
#pragma once

#include <span>

#include "src/engine/core/engine_core.h"
#include "src/jobs/simulate/simulate.h"

namespace latte {

// Uses a fresh engine over `parts`. One request runs before the trace begins, so memory is already
// allocated. Tokens are sampled at temperature 1; every answer has the length given by the trace.
// `progress`: in requests that have ended or were refused, between steps; the clock stands still
// meanwhile. Errors: of EngineCore; kInvalidArgument for a request that the engine refuses
// permanently.
[[nodiscard]] Result<TraceResult> ReplayTrace(std::span<const TraceRequest> trace,
                                              const EngineParts& parts, const Settings& settings,
                                              const JobProgress& progress = {});

}  // namespace latte
