#include "apps/flags/trace_flags.h"

#include "apps/terminal/progress.h"
#include "src/base/limits/memory.h"
#include "src/jobs/simulate/bench_steps.h"

namespace latte {

void EngineChoice::Add(const FlagSet& app, const EngineUses& uses) {
  app.Add("MODEL", model, "model, also as -m MODEL (default: tiny)");
  flags.AddAll(app, uses);
}

Result<OpenedEngine> EngineChoice::Open() const {
  OpenedEngine out;
  LATTE_ASSIGN_OR_RETURN(const EngineOptions options, flags.Options(model));
  if (NamesGpu(options.device))
    return Unsupported(fmt::format(
        "--device: expected cpu, because the costs of steps are not modelled on GPUs, found {}",
        options.device));
  LATTE_ASSIGN_OR_RETURN(out.opened,
                         OpenModel(options.model, {.check_weights = options.check_weights}));
  LATTE_ASSIGN_OR_RETURN(
      out.settings, ResolveOptions(options, out.opened.model->config(), out.opened.device.machine(),
                                   {AvailableMemory()}));
  WarnAboutRates(out.settings.rates_warning);
  return out;
}

void TraceFlags::Add(const FlagSet& command) {
  const FlagSet app = command.Group("Trace");
  app.Add("--trace", file, "a file of requests, one JSON object per line (docs/simulation.md)")
      .Value("FILE");
  app.Add("--requests", shape.requests, "requests of a random trace (default: 100)");
  app.Add("--rate", shape.rate, "arrivals per second; 0: all at once (default: 1)");
  app.Add("--prompt-mean", shape.prompt_mean, "mean length of prompts (default: 256)");
  app.Add("--prompt-sigma", shape.prompt_sigma,
          "spread of the logarithm of their length (default: 0.5)");
  app.Add("--output-mean", shape.output_mean, "mean length of answers (default: 64)");
  app.Add("--output-sigma", shape.output_sigma,
          "spread of the logarithm of their length (default: 0.5)");
  app.Add("--shared-prefix", shape.shared_prefix,
          "tokens before each prompt that its group shares (default: 0)");
  app.Add("--prefix-groups", shape.prefix_groups, "groups of prompts (default: 1)");
  app.Add("-s,--seed", shape.seed,
          "same seed, same trace; fixed, so that runs compare (default: 0)");
}

Result<std::vector<TraceRequest>> TraceFlags::Trace(const OpenedEngine& engine) const {
  const TraceLimits limits{engine.opened.model->config().vocab, engine.settings.options.max_tokens};
  return file.empty() ? MakeTrace(shape, limits) : LoadTrace(file, shape, limits);
}

void CostFlags::Add(const FlagSet& app) {
  app.Add("--cost", file,
          "prices of steps from `latte bench steps --out` (default: measured first, which takes "
          "minutes for a large model)")
      .Value("FILE");
}

Result<std::optional<StepCost>> CostFlags::Loaded(const OpenedEngine& engine) const {
  if (file.empty()) return std::nullopt;
  return LoadStepCost(file, StepsMadeFor(engine.opened.model->config(), engine.settings,
                                         engine.opened.device.machine()));
}

Result<StepCost> CostFlags::Cost(const OpenedEngine& engine) const {
  LATTE_ASSIGN_OR_RETURN(const std::optional<StepCost> loaded, Loaded(engine));
  if (loaded) return *loaded;
  Progress shown("prices of steps", "steps");
  LATTE_ASSIGN_OR_RETURN(
      const BenchedSteps benched,
      BenchSteps(*engine.opened.model, engine.settings, engine.opened.device.machine(),
                 {.quick = true}, shown.ForMeasurements()));
  return benched.cost;
}

}  // namespace latte
