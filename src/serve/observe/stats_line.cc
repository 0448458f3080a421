#include "src/serve/observe/stats_line.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/base/timer.h"

namespace latte {
namespace {

double PerSecond(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(std::max<int64_t>(count, 0)) / seconds : 0;
}

double Percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

double OneDecimal(double value) { return std::round(value * 10) / 10; }

}  // namespace

bool StatsFigures::idle() const {
  return running == 0 && waiting == 0 && prompt_tokens_per_second == 0 &&
         generated_tokens_per_second == 0;
}

StatsFigures CompareStats(const StatsSnapshot& before, const StatsSnapshot& after) {
  const EngineStats& a = before.engine;
  const EngineStats& b = after.engine;
  const double seconds = Seconds(after.time - before.time);
  const int64_t generated = b.generated_tokens - a.generated_tokens;
  const int64_t begun = b.prompt_tokens - a.prompt_tokens;
  StatsFigures out;
  out.running = b.running;
  out.waiting = b.waiting;
  out.cache_percent = Percent(b.pages_used, b.pages_total);
  // Nearly every generated token is computed by the step after it; the rest are prompts.
  out.prompt_tokens_per_second =
      PerSecond(b.computed_tokens - a.computed_tokens - generated, seconds);
  out.generated_tokens_per_second = PerSecond(generated, seconds);
  if (begun > 0) out.prefix_hit_percent = Percent(b.cached_tokens - a.cached_tokens, begun);
  out.connections = after.connections;
  return out;
}

std::vector<LogField> StatsFields(const StatsFigures& figures) {
  std::vector<LogField> fields = {
      {"running", figures.running},
      {"waiting", figures.waiting},
      {"cache_percent", OneDecimal(figures.cache_percent)},
      {"prompt_tokens_per_s", OneDecimal(figures.prompt_tokens_per_second)},
      {"generated_tokens_per_s", OneDecimal(figures.generated_tokens_per_second)},
  };
  if (figures.prefix_hit_percent)
    fields.push_back({"prefix_hit_percent", OneDecimal(*figures.prefix_hit_percent)});
  fields.push_back({"connections", figures.connections});
  return fields;
}

std::optional<StatsFigures> StatsLine::Next(const StatsSnapshot& now) {
  const StatsFigures figures = CompareStats(std::exchange(last_, now), now);
  const bool was_idle = std::exchange(was_idle_, figures.idle());
  if (was_idle && figures.idle()) return std::nullopt;
  return figures;
}

}  // namespace latte
