// Loads of rising rates: throughput against latency.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"

namespace latte {

// "1,2,4.5": requests per second, each above 0; at most 35. Errors: kInvalidArgument naming
// --sweep.
[[nodiscard]] Result<std::vector<double>> ParseSweep(std::string_view text);

// The keys of a report that a sweep shows.
struct SweepKeys {
  std::string_view tokens_per_s;
  std::string_view ttft_median, ttft_p99;  // milliseconds to the first token
  std::string_view gap_median, gap_p99;    // milliseconds between tokens
};

// A row for each report, and charts of both latencies against tokens per second. The reports belong
// to the rates; a value may be null. Marks in the charts are the first column of the table.
std::string SweepTable(const std::vector<double>& rates, const JsonOut& reports,
                       const SweepKeys& keys);

}  // namespace latte
