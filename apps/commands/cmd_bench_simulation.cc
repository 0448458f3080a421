// latte bench steps, simulation: measures the costs that a simulation needs, and its accuracy.
#include "apps/commands/bench_command.h"
#include "apps/flags/trace_flags.h"
#include "apps/record_file.h"
#include "apps/terminal/progress.h"
#include "lab/simulation/bench_simulation.h"
#include "src/base/json_out.h"
#include "src/jobs/simulate/bench_steps.h"

namespace latte {
namespace {

struct StepsFlags {
  EngineChoice engine;
  BenchStepsOptions bench;
  std::string out;

  Result<JsonOut> Run(const JobProgress& progress) const {
    if (!out.empty()) LATTE_RETURN_IF_ERROR(MayReplace(out, StepCostFile()));
    LATTE_ASSIGN_OR_RETURN(const OpenedEngine opened, engine.Open());
    LATTE_ASSIGN_OR_RETURN(BenchedSteps benched,
                           BenchSteps(*opened.opened.model, opened.settings,
                                      opened.opened.device.machine(), bench, progress));
    if (out.empty()) return std::move(benched.record);
    LATTE_RETURN_IF_ERROR(WriteRecord(out, benched.record, StepCostFile()));
    return std::move(benched.record);
  }
};

struct SimulationFlags {
  EngineChoice engine;
  TraceFlags trace;
  CostFlags cost;
  int runs = BenchSimulationOptions().runs;

  Result<JsonOut> Run() const {
    BenchSimulationOptions options{.runs = runs};
    LATTE_RETURN_IF_ERROR(options.Validate());
    LATTE_ASSIGN_OR_RETURN(const OpenedEngine opened, engine.Open());
    LATTE_ASSIGN_OR_RETURN(const std::vector<TraceRequest> requests, trace.Trace(opened));
    LATTE_ASSIGN_OR_RETURN(options.cost, cost.Loaded(opened));
    // A line for each part of a run: its parts count different things.
    ProgressOfParts measured("steps");
    ProgressOfParts served("requests");
    options.measured = [&](int64_t done, int64_t total, std::string_view run) {
      served.End();
      measured.Show(done, total, fmt::format("{}, steps", run));
    };
    options.served = [&](int64_t done, int64_t total, std::string_view run) {
      measured.End();
      served.Show(done, total, fmt::format("{}, in real time", run));
    };
    const EngineParts parts{opened.opened.model.get(), &opened.opened.device.machine(), nullptr};
    return BenchSimulation(requests, parts, opened.settings, options);
  }
};

void AddSteps(const FlagSet& bench, BenchFlags& flags) {
  auto own = std::make_shared<StepsFlags>();
  const FlagSet sub =
      AddOne(bench, flags, "steps", "Time of an engine's steps, and the costs fitted to them",
             [own](const Machine&, const JobProgress& progress) { return own->Run(progress); });
  own->engine.Add(sub);
  sub.AddSwitch("--quick", own->bench.quick, "fewer steps, and three runs of each instead of nine");
  sub.Add("--out", own->out, "file to write, for `latte simulate --cost`").Value("FILE");
}

void AddSimulation(const FlagSet& bench, BenchFlags& flags) {
  auto own = std::make_shared<SimulationFlags>();
  const FlagSet sub =
      AddOne(bench, flags, "simulation", "A simulated trace compared with a run in real time",
             [own](const Machine&, const JobProgress&) { return own->Run(); });
  own->engine.Add(sub);
  own->trace.Add(sub);
  own->cost.Add(sub);
  sub.Add("--runs", own->runs, "runs in real time (default: 5)");
}

}  // namespace

void AddSimulationBenches(const FlagSet& bench, BenchFlags& flags) {
  AddSteps(bench, flags);
  AddSimulation(bench, flags);
}

}  // namespace latte
