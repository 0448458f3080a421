// A trace through the engine in real time.
#pragma once

#include <span>

#include "src/engine/engine_core.h"
#include "src/jobs/simulate/simulate.h"

namespace latte {

// A fresh engine over `parts`; one request goes through it before the trace begins, so that memory
// is there. Tokens are drawn at temperature 1; every answer has the length that the trace says.
// Errors: of EngineCore; kInvalidArgument for a request that it refuses for good.
[[nodiscard]] Result<ServedTrace> ServeTrace(std::span<const TraceRequest> trace,
                                             const EngineParts& parts, const Settings& settings);

}  // namespace latte
