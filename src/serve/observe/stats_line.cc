#include "src/serve/observe/stats_line.h"

#include <fmt/format.h>

namespace latte {
namespace {

double PerSecond(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

double Percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

std::string StatsLine(const EngineStats& before, const EngineStats& now, double seconds) {
  const int64_t prompt = now.prompt_tokens - before.prompt_tokens;
  return fmt::format(
      "prompt {:.1f} tokens/s, generation {:.1f} tokens/s, running {}, waiting {}, cache {:.1f} %, "
      "prefix hits {:.1f} %, preempted {}",
      PerSecond(prompt, seconds),
      PerSecond(now.generated_tokens - before.generated_tokens, seconds), now.running, now.waiting,
      Percent(now.pages_used, now.pages_total),
      Percent(now.cached_tokens - before.cached_tokens, prompt),
      now.preemptions - before.preemptions);
}

bool IsBusy(const EngineStats& before, const EngineStats& now) {
  return now.running > 0 || now.waiting > 0 || now.computed_tokens != before.computed_tokens;
}

}  // namespace latte
