// The memory plan of an engine, before its weights are loaded.
#pragma once

#include "latte/options.h"
#include "latte/status.h"

#include "src/checkpoint/model_files.h"
#include "src/serve/memory_plan.h"

namespace latte {

// Errors: of ComputeDevice::Open, Checkpoint::Open and ResolveOptions: kExhausted where weights,
// workspace and two pages do not fit.
[[nodiscard]] Result<MemoryPlan> PlanEngine(const EngineOptions& options, const ModelFiles& files);

}  // namespace latte
