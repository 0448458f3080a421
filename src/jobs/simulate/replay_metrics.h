// The metrics of a trace, the same for simulated and real time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/base/json_out_fwd.h"

namespace latte {

// The times of one request, in seconds since the trace began.
struct RequestTimes {
  double arrival_s = 0;
  int64_t prompt_tokens = 0;
  std::vector<double> token_s;  // the time of each token of the answer; empty: refused
};

// Counters of a run.
struct TraceCounts {
  int64_t steps = 0;
  int64_t preemptions = 0;
  int64_t prefix_hit_tokens = 0;
  int64_t pages_total = 0;
  int64_t pages_peak = 0;      // maximum number of pages in use by sequences
  int64_t waiting_peak = 0;    // maximum length of the queue
  double waiting_seconds = 0;  // integral of the queue's length over time
  double step_seconds = 0;     // spent in steps
  int64_t groups = 1;          // of ranks, which step together
  double group_seconds = 0;  // the sum of each group's own part of step_seconds; of several groups
  double real_seconds = 0;   // total, by the clock

  // Records that the queue had `waiting` requests for `seconds` and that `pages` were in use.
  void Note(int64_t waiting, double seconds, int64_t pages);
};

// Keys: requests, refused, duration_s (from 0 to the last token), output_tokens_per_s,
// total_tokens_per_s (including prompts), requests_per_s; p50, p90, p99 and mean of ttft_ms
// (arrival to first token), inter_token_ms (gaps within an answer), end_to_end_ms (arrival to last
// token); waiting_mean, waiting_peak, pages_peak, pages_total, preemptions, prefix_hit_tokens,
// steps, step_s, real_s; of several groups also idle_share: the part of the groups' time in steps
// that they waited for the slowest. Percentiles are values that occurred (nearest rank).
JsonOut MetricsJson(std::span<const RequestTimes> requests, const TraceCounts& counts);

}  // namespace latte
