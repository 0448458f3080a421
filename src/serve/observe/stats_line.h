// The line of statistics that the log gets every few seconds.
#pragma once

#include <optional>
#include <string>

#include "latte/engine.h"

namespace latte {

// What happened between two readings, `seconds` apart: throughput, sequences, cache, hit rate.
std::string StatsLine(const EngineStats& before, const EngineStats& now, double seconds);

// Whether anything ran between them, or runs now: an idle server writes no lines.
bool IsBusy(const EngineStats& before, const EngineStats& now);

}  // namespace latte
