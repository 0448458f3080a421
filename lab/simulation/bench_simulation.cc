#include "lab/simulation/bench_simulation.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "lab/simulation/replay.h"
#include "src/base/json_out.h"
#include "src/jobs/bench/bench_timer.h"
#include "src/jobs/simulate/bench_steps.h"

namespace latte {
namespace {

// Median, minimum and maximum of each metric.
JsonOut Summary(const std::vector<JsonOut>& runs) {
  JsonOut out = JsonOut::object();
  for (const auto& [key, first] : runs.front().items()) {
    std::vector<double> values;
    for (const JsonOut& run : runs)
      if (run[key].is_number()) values.push_back(run[key].get<double>());
    if (values.empty()) {
      out[key] = nullptr;
      continue;
    }
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    out[key] = {{"median", Median(values)}, {"least", *least}, {"most", *most}};
  }
  return out;
}

// The ratios simulated / real of one run.
JsonOut Ratios(const JsonOut& simulated, const JsonOut& real) {
  JsonOut out = JsonOut::object();
  for (const char* key : {"output_tokens_per_s", "ttft_ms_p50", "ttft_ms_p99", "inter_token_ms_p50",
                          "inter_token_ms_p99", "end_to_end_ms_p50", "end_to_end_ms_p99"}) {
    const bool known =
        simulated[key].is_number() && real[key].is_number() && real[key].get<double>() > 0;
    out[key] = known ? JsonOut(simulated[key].get<double>() / real[key].get<double>()) : JsonOut();
  }
  return out;
}

Result<StepCost> Prices(const EngineParts& parts, const Settings& settings,
                        const JobProgress& progress) {
  LATTE_ASSIGN_OR_RETURN(
      const BenchedSteps steps,
      BenchSteps(*parts.model, settings, *parts.machine, {.quick = true}, progress));
  return steps.cost;
}

// Names the run instead of what it does.
JobProgress OfRun(const JobProgress& progress, int run, int runs) {
  if (!progress) return {};
  return [&progress, name = fmt::format("run {} of {}", run, runs)](
             int64_t done, int64_t total, std::string_view) { progress(done, total, name); };
}

}  // namespace

Status BenchSimulationOptions::Validate() const {
  if (runs >= 1 && runs <= 100) return {};
  return InvalidArgument(fmt::format("--runs: expected 1 to 100, found {}", runs));
}

Result<JsonOut> BenchSimulation(std::span<const TraceRequest> trace, const EngineParts& parts,
                                const Settings& settings, const BenchSimulationOptions& options) {
  LATTE_RETURN_IF_ERROR(options.Validate());
  std::vector<JsonOut> simulated;
  std::vector<JsonOut> real;
  std::vector<JsonOut> ratios;
  for (int run = 0; run < options.runs; ++run) {
    StepCost cost;
    if (options.cost) {
      cost = *options.cost;
    } else {
      LATTE_ASSIGN_OR_RETURN(
          cost, Prices(parts, settings, OfRun(options.measured, run + 1, options.runs)));
    }
    simulated.push_back(Simulate(trace, parts.model->config(), settings, cost).Metrics());
    LATTE_ASSIGN_OR_RETURN(
        const TraceResult served,
        ReplayTrace(trace, parts, settings, OfRun(options.served, run + 1, options.runs)));
    real.push_back(served.Metrics());
    ratios.push_back(Ratios(simulated.back(), real.back()));
  }
  return JsonOut{{"bench", "simulation"},
                 {"runs", options.runs},
                 {"simulated", Summary(simulated)},
                 {"real", Summary(real)},
                 {"ratio", Summary(ratios)}};
}

}  // namespace latte
