#include "src/jobs/simulate/replay_metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "src/base/json_out.h"
#include "src/base/timer.h"

namespace latte {
namespace {

// Percentile of sorted seconds in milliseconds, nearest rank; null if there are none.
JsonOut NearestRankMs(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return nullptr;
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<size_t>(rank, 1) - 1] * 1e3;
}

void AddPercentiles(JsonOut& out, const std::string& name, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  out[name + "_p50"] = NearestRankMs(seconds, 0.50);
  out[name + "_p90"] = NearestRankMs(seconds, 0.90);
  out[name + "_p99"] = NearestRankMs(seconds, 0.99);
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  out[name + "_mean"] =
      seconds.empty() ? JsonOut() : JsonOut(sum * 1e3 / static_cast<double>(seconds.size()));
}

}  // namespace

void TraceCounts::Note(int64_t waiting, double seconds, int64_t pages) {
  waiting_seconds += static_cast<double>(waiting) * seconds;
  waiting_peak = std::max(waiting_peak, waiting);
  pages_peak = std::max(pages_peak, pages);
}

JsonOut MetricsJson(std::span<const RequestTimes> requests, const TraceCounts& counts) {
  std::vector<double> first;
  std::vector<double> gaps;
  std::vector<double> all;
  double end = 0;
  double prompt_tokens = 0;
  double output_tokens = 0;
  for (const RequestTimes& r : requests) {
    if (r.token_s.empty()) continue;
    first.push_back(r.token_s.front() - r.arrival_s);
    all.push_back(r.token_s.back() - r.arrival_s);
    for (size_t i = 1; i < r.token_s.size(); ++i) gaps.push_back(r.token_s[i] - r.token_s[i - 1]);
    end = std::max(end, r.token_s.back());
    prompt_tokens += static_cast<double>(r.prompt_tokens);
    output_tokens += static_cast<double>(r.token_s.size());
  }
  JsonOut out{{"requests", all.size()},
              {"refused", requests.size() - all.size()},
              {"duration_s", end},
              {"output_tokens_per_s", PerSecond(output_tokens, end)},
              {"total_tokens_per_s", PerSecond(prompt_tokens + output_tokens, end)},
              {"requests_per_s", PerSecond(static_cast<double>(all.size()), end)}};
  AddPercentiles(out, "ttft_ms", std::move(first));
  AddPercentiles(out, "inter_token_ms", std::move(gaps));
  AddPercentiles(out, "end_to_end_ms", std::move(all));
  out["waiting_mean"] = PerSecond(counts.waiting_seconds, end);
  out["waiting_peak"] = counts.waiting_peak;
  out["pages_peak"] = counts.pages_peak;
  out["pages_total"] = counts.pages_total;
  out["preemptions"] = counts.preemptions;
  out["prefix_hit_tokens"] = counts.prefix_hit_tokens;
  out["steps"] = counts.steps;
  out["step_s"] = counts.step_seconds;
  if (counts.groups > 1)
    out["idle_share"] = 1 - PerSecond(counts.group_seconds,
                                      static_cast<double>(counts.groups) * counts.step_seconds);
  out["real_s"] = counts.real_seconds;
  return out;
}

}  // namespace latte
