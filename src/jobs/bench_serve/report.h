// From the recorded times of a load to its figures, under the names that `vllm bench serve` gives
// them in its result file. Pure.
#pragma once

#include <string>

#include "src/base/json_out_fwd.h"
#include "src/jobs/bench_serve/load.h"
#include "src/jobs/bench_serve/options.h"

namespace latte {

// Times in milliseconds, of successful requests. For X of ttft (sent to first token), tpot (mean
// gap of one answer, between its first and last token), itl (each gap between pieces of text), e2el
// (sent to last token): mean_X_ms, median_X_ms, std_X_ms, p90_X_ms, p95_X_ms, p99_X_ms; null
// without a value. Percentiles are interpolated, as numpy does.
//
// Also: event_delay, how much longer than the median gap of its answer a gap was; send_delay, how
// much later than due a request was sent; min_, max_ and ratio_ of stream_rate, tokens per second
// of one answer from its first token on; errors, a list of {kind, count, message}.
JsonOut ServeReport(const LoadResult& load, const Goodput& goodput);

// The same for people.
std::string ServeTable(const JsonOut& report);

}  // namespace latte
