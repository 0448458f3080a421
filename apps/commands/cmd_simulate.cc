// latte simulate: predicts how an engine would serve a trace, without computing tokens.
#include <functional>

#include <fmt/format.h>

#include "apps/flags/trace_flags.h"
#include "apps/terminal/progress.h"
#include "src/base/json_out.h"
#include "src/jobs/report/sweep.h"
#include "src/jobs/simulate/simulate.h"

namespace latte {
namespace {

struct SimulateFlags {
  EngineChoice engine;
  TraceFlags trace;
  CostFlags cost;
  std::vector<double> sweep;  // rates; empty: the rate of the trace
  bool json = false;
};

JsonOut MetricsOf(const OpenedEngine& engine, const std::vector<TraceRequest>& trace,
                  const StepCost& cost) {
  Progress shown("simulated", "requests");
  const TraceResult result = Simulate(trace, engine.opened.model->config(), engine.settings, cost,
                                      std::bind_front(&Progress::Show, &shown));
  shown.End();
  return result.Metrics();
}

// The same requests, but for their times, at each rate.
Status SweepCommand(SimulateFlags flags) {
  constexpr SweepKeys kKeys = {"output_tokens_per_s", "ttft_ms_p50", "ttft_ms_p99",
                               "inter_token_ms_p50", "inter_token_ms_p99"};
  if (!flags.trace.file.empty())
    return InvalidArgument("--sweep: a trace has its own times; leave --sweep or --trace out");
  if (flags.trace.shape.rate != TraceShape{}.rate)
    return InvalidArgument("--sweep: expected no --rate with it, found both");
  LATTE_ASSIGN_OR_RETURN(const OpenedEngine engine, flags.engine.Open());
  LATTE_ASSIGN_OR_RETURN(const StepCost cost, flags.cost.Cost(engine));
  JsonOut all = JsonOut::array();
  for (const double rate : flags.sweep) {
    flags.trace.shape.rate = rate;
    LATTE_ASSIGN_OR_RETURN(const std::vector<TraceRequest> trace, flags.trace.Trace(engine));
    all.push_back(MetricsOf(engine, trace, cost));
  }
  return Print(flags.json ? Dump(all) + "\n" : SweepTable(flags.sweep, all, kKeys));
}

Status SimulateCommand(const SimulateFlags& flags) {
  LATTE_ASSIGN_OR_RETURN(const OpenedEngine engine, flags.engine.Open());
  LATTE_ASSIGN_OR_RETURN(const std::vector<TraceRequest> trace, flags.trace.Trace(engine));
  LATTE_ASSIGN_OR_RETURN(const StepCost cost, flags.cost.Cost(engine));
  const JsonOut metrics = MetricsOf(engine, trace, cost);
  if (flags.json) return Print(Dump(metrics) + "\n");
  std::string table;
  for (const auto& [key, value] : metrics.items())
    table += value.is_number_float() ? fmt::format("{:<20} {:.3f}\n", key, value.get<double>())
                                     : fmt::format("{:<20} {}\n", key, Dump(value));
  return Print(table);
}

}  // namespace

Command AddSimulate(const FlagSet& app) {
  auto flags = std::make_shared<SimulateFlags>();
  const FlagSet sub = app.AddCommand(
      "simulate", "Predict how an engine would serve many requests, without computing tokens");
  flags->engine.Add(sub, {.groups = true});
  flags->trace.Add(sub);
  sub.AddParsed(
         "--sweep",
         [flags](const std::string& text) -> Status {
           LATTE_ASSIGN_OR_RETURN(flags->sweep, ParseSweep(text));
           return {};
         },
         "the trace at each of these rates instead, with commas between them: a row each, and "
         "charts "
         "of latency against throughput")
      .Value("RATES");
  flags->cost.Add(sub);
  sub.Group("Output").AddSwitch("--json", flags->json, "one JSON object instead of a table");
  return {sub, [flags] {
            return flags->sweep.empty() ? SimulateCommand(*flags) : SweepCommand(*flags);
          }};
}

}  // namespace latte
