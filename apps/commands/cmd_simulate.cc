// latte simulate: predicts how an engine would serve a trace, without computing tokens.
#include <functional>

#include <fmt/format.h>

#include "apps/flags/trace_flags.h"
#include "apps/terminal/progress.h"
#include "src/base/json_out.h"
#include "src/jobs/simulate/simulate.h"

namespace latte {
namespace {

struct SimulateFlags {
  EngineChoice engine;
  TraceFlags trace;
  CostFlags cost;
  bool json = false;
};

Status SimulateCommand(const SimulateFlags& flags) {
  LATTE_ASSIGN_OR_RETURN(const OpenedEngine engine, flags.engine.Open());
  LATTE_ASSIGN_OR_RETURN(const std::vector<TraceRequest> trace, flags.trace.Trace(engine));
  LATTE_ASSIGN_OR_RETURN(const StepCost cost, flags.cost.Cost(engine));
  Progress shown("simulated", "requests");
  const JsonOut metrics = Simulate(trace, engine.opened.model->config(), engine.settings, cost,
                                   std::bind_front(&Progress::Show, &shown))
                              .Metrics();
  shown.End();
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
  flags->engine.Add(sub);
  flags->trace.Add(sub);
  flags->cost.Add(sub);
  sub.Group("Output").AddSwitch("--json", flags->json, "one JSON object instead of a table");
  return {sub, [flags] { return SimulateCommand(*flags); }};
}

}  // namespace latte
