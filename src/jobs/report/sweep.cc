#include "src/jobs/report/sweep.h"

#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "src/base/json_out.h"
#include "src/jobs/report/chart.h"
#include "src/jobs/report/record_table.h"

namespace latte {
namespace {

constexpr std::string_view kSweepMarks = "123456789abcdefghijklmnopqrstuvwxyz";

double SweepValue(const JsonOut& report, std::string_view key) {
  const JsonOut& value = report[std::string(key)];
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::string SweepChart(const JsonOut& reports, std::string_view tokens_key, std::string_view key,
                       std::string_view title) {
  std::vector<ChartPoint> points;
  for (const JsonOut& report : reports)
    points.push_back(
        {SweepValue(report, tokens_key), SweepValue(report, key), kSweepMarks[points.size()]});
  const std::string chart = Chart(points, "tokens/s", title);
  return chart.empty() ? "" : "\n" + chart;
}

}  // namespace

Result<std::vector<double>> ParseSweep(std::string_view text) {
  std::vector<double> rates;
  for (std::string_view rest = text; !text.empty();) {
    const std::string_view one = rest.substr(0, rest.find(','));
    double rate = 0;
    const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), rate);
    if (error != std::errc() || end != one.data() + one.size() || !(rate > 0) ||
        !std::isfinite(rate))
      return InvalidArgument(fmt::format(
          "--sweep: expected rates above 0 with commas between them, found '{}'", text));
    rates.push_back(rate);
    if (one.size() == rest.size()) break;
    rest.remove_prefix(one.size() + 1);
  }
  if (rates.empty() || rates.size() > kSweepMarks.size())
    return InvalidArgument(
        fmt::format("--sweep: expected 1 to {} rates, found {}", kSweepMarks.size(), rates.size()));
  return rates;
}

std::string SweepTable(const std::vector<double>& rates, const JsonOut& reports,
                       const SweepKeys& keys) {
  JsonOut rows = JsonOut::object();
  for (size_t i = 0; i < reports.size(); ++i) {
    const auto of = [&](std::string_view key) { return reports[i][std::string(key)]; };
    rows[std::string(1, kSweepMarks[i])] = {
        {"requests/s", rates[i]},          {"tokens/s", of(keys.tokens_per_s)},
        {"TTFT ms", of(keys.ttft_median)}, {"p99 ", of(keys.ttft_p99)},
        {"TPOT ms", of(keys.gap_median)},  {"p99", of(keys.gap_p99)}};
  }
  return RecordTable({{"sweep", std::move(rows)}}) +
         SweepChart(reports, keys.tokens_per_s, keys.ttft_p99, "time to the first token, p99, ms") +
         SweepChart(reports, keys.tokens_per_s, keys.gap_p99, "time between tokens, p99, ms");
}

}  // namespace latte
