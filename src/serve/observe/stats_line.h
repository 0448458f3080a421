// The line that a server logs periodically: its load and its speed.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "latte/engine.h"

#include "src/serve/observe/log.h"

namespace latte {

struct StatsSnapshot {
  std::chrono::steady_clock::time_point time;
  EngineStats engine;
  int64_t connections = 0;
};

// What happened between two snapshots, and the state at the second.
struct StatsFigures {
  int64_t running = 0;
  int64_t waiting = 0;
  double cache_percent = 0;             // pages in use
  double prompt_tokens_per_second = 0;  // computed ones, not those found in the prefix cache
  double generated_tokens_per_second = 0;
  std::optional<double> prefix_hit_percent;  // of the prompts begun; none: none was begun
  int64_t connections = 0;

  // Nothing runs, waits or was computed.
  bool idle() const;
};

StatsFigures CompareStats(const StatsSnapshot& before, const StatsSnapshot& after);

// Fields of the log line, rates and shares with one decimal.
std::vector<LogField> StatsFields(const StatsFigures& figures);

// Chooses what to log. An idle server logs one line, then nothing until it has work again.
class StatsLine {
 public:
  explicit StatsLine(const StatsSnapshot& start) : last_(start) {}
  std::optional<StatsFigures> Next(const StatsSnapshot& now);

 private:
  StatsSnapshot last_;
  bool was_idle_ = true;
};

}  // namespace latte
