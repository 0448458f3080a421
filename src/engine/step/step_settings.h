// A runner and its steps for the settings of an engine: the same on all ranks.
#pragma once

#include "src/engine/settings.h"
#include "src/engine/step/runner.h"

namespace latte {

RunnerOptions OptionsOfRunner(const Settings& settings);

// The largest step of an engine, of any kind. groups: of ranks, as `followers` has them.
StepCapacity CapacityOf(const Settings& settings, int64_t groups = 1);
StepCapacity CapacityOf(const Settings& settings, const StepAnnouncer* followers);

// At least what the steps of an engine take on a device that is not the host, besides the prefill
// workspace: scratch memory, hidden states, logits, the step itself. `options`: max_tokens 0 is the
// model's.
int64_t DeviceStepBytes(const ModelConfig& config, const EngineOptions& options);

// Rows of drafting layers that are written by one step, roughly: as many as a step has tokens.
inline constexpr int64_t kDraftRowsAtOnce = 512;
// The most of them.
int64_t DraftRowsPerStep(const Settings& settings);

}  // namespace latte
