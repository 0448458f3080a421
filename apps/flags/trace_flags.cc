#include "apps/flags/trace_flags.h"

#include "src/base/limits/memory.h"
#include "src/jobs/simulate/bench_steps.h"

namespace latte {

void EngineChoice::Add(CLI::App& app) {
  app.add_option("MODEL", model, "model (default: tiny)");
  flags.AddAll(app);
}

Result<OpenedEngine> EngineChoice::Open() const {
  OpenedEngine out;
  LATTE_ASSIGN_OR_RETURN(const EngineOptions options, flags.Options(model));
  LATTE_ASSIGN_OR_RETURN(out.opened,
                         OpenModel(options.model, {.check_weights = options.check_weights}));
  LATTE_ASSIGN_OR_RETURN(out.settings, Settle(options, out.opened.model->config(),
                                              out.opened.machine, {AvailableMemory()}));
  WarnAboutRates(out.settings.rates_warning);
  return out;
}

void TraceFlags::Add(CLI::App& app) {
  app.add_option("--trace", file,
                 "a file of requests, one JSON object per line (docs/simulation.md)");
  app.add_option("--requests", shape.requests, "requests of a random trace (default: 100)");
  app.add_option("--rate", shape.rate, "arrivals per second; 0: all at once (default: 1)");
  app.add_option("--prompt-mean", shape.prompt_mean, "mean length of prompts (default: 256)");
  app.add_option("--prompt-sigma", shape.prompt_sigma,
                 "spread of the logarithm of their length (default: 0.5)");
  app.add_option("--output-mean", shape.output_mean, "mean length of answers (default: 64)");
  app.add_option("--output-sigma", shape.output_sigma,
                 "spread of the logarithm of their length (default: 0.5)");
  app.add_option("--shared-prefix", shape.shared_prefix,
                 "tokens before each prompt that its group shares (default: 0)");
  app.add_option("--prefix-groups", shape.prefix_groups, "groups of prompts (default: 1)");
  app.add_option("--seed", shape.seed, "same seed, same trace (default: 0)");
}

Result<std::vector<TraceRequest>> TraceFlags::Trace(const OpenedEngine& engine) const {
  const TraceLimits limits{engine.opened.model->config().vocab, engine.settings.options.max_tokens};
  return file.empty() ? MakeTrace(shape, limits) : LoadTrace(file, shape, limits);
}

void CostFlags::Add(CLI::App& app) {
  app.add_option("--cost", file,
                 "prices of steps from `latte bench steps --out` (default: measured here)");
}

Result<std::optional<StepCost>> CostFlags::Loaded(const OpenedEngine& engine) const {
  if (file.empty()) return std::nullopt;
  return LoadStepCost(
      file, StepsMadeFor(engine.opened.model->config(), engine.settings, engine.opened.machine));
}

Result<StepCost> CostFlags::Cost(const OpenedEngine& engine) const {
  LATTE_ASSIGN_OR_RETURN(const std::optional<StepCost> loaded, Loaded(engine));
  if (loaded) return *loaded;
  LATTE_ASSIGN_OR_RETURN(
      const BenchedSteps benched,
      BenchSteps(*engine.opened.model, engine.settings, engine.opened.machine, {.quick = true}));
  return benched.cost;
}

}  // namespace latte
