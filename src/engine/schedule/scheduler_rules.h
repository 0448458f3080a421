// The scheduler's options, from an engine's settings.
#pragma once

#include "src/engine/schedule/scheduler.h"
#include "src/engine/settings.h"

namespace latte {

// All but pages_on_disk. Keeps copies of what it is given.
SchedulerOptions SchedulerRules(const Settings& settings, const MlaDims& dims);
// SchedulerOptions::share_generated.
bool SharesGenerated(const Settings& settings);

// The page bookkeeping that goes with them.
CacheManagerOptions CacheRules(const Settings& settings);

}  // namespace latte
