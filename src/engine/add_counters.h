// Sums of what several engines have done.
#pragma once

#include "latte/engine.h"

namespace latte {

// Adds counts of requests and tokens; not the state after the last step, steps and times.
inline void AddCounters(const EngineStats& from, EngineStats& to) {
  to.requests_finished += from.requests_finished;
  to.requests_failed += from.requests_failed;
  to.requests_cancelled += from.requests_cancelled;
  to.preemptions += from.preemptions;
  to.prompt_tokens += from.prompt_tokens;
  to.cached_tokens += from.cached_tokens;
  to.disk_tokens += from.disk_tokens;
  to.computed_tokens += from.computed_tokens;
  to.generated_tokens += from.generated_tokens;
  to.drafted_tokens += from.drafted_tokens;
  to.accepted_tokens += from.accepted_tokens;
}

}  // namespace latte
