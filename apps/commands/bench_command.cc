#include "apps/commands/bench_command.h"

#include <csignal>
#include <functional>
#include <memory>

#include "apps/terminal/interrupts.h"
#include "apps/terminal/progress.h"
#include "lab/synth/synth.h"
#include "src/base/json_out.h"
#include "src/models/registry.h"

namespace latte {

namespace {

// The files are deleted as soon as all ranks have loaded them, so none remain however the bench
// ends.
Result<std::unique_ptr<Model>> LoadSynthetic(const std::string& text, int threads,
                                             const Device& device, RankWorld* ranks) {
  LATTE_ASSIGN_OR_RETURN(const SynthSpec spec, ParseSynthSpec(text));
  LATTE_ASSIGN_OR_RETURN(const Interrupts interrupts, Interrupts::Catch({SIGINT, SIGTERM, SIGHUP}));
  Result<std::unique_ptr<Model>> loaded = [&]() -> Result<std::unique_ptr<Model>> {
    ThreadPool pool(threads);
    Progress shown("synthetic weights");
    LATTE_ASSIGN_OR_RETURN(const TemporarySynth folder,
                           TemporarySynth::Make(
                               spec, pool, [&] { return interrupts.TakeFirst(); },
                               std::bind_front(&Progress::Show, &shown)));
    shown.End();
    ModelOptions options;
    options.device = &device;
    if (ranks == nullptr) return LoadModel(folder.dir(), options);
    LATTE_RETURN_IF_ERROR(ranks->AnnounceModel(folder.dir(), options));
    return ranks->Share(LoadModel(folder.dir(), options));
  }();
  interrupts.Release();
  return loaded;
}

}  // namespace

FlagSet AddOne(const FlagSet& bench, BenchFlags& flags, const std::string& name,
               const std::string& what, Bench run, const std::string& noun) {
  const FlagSet sub = bench.AddCommand(name, what);
  sub.Group("Output").AddSwitch("--json", flags.json, "one JSON object instead of a table");
  const auto show_and_run = [name, noun, run = std::move(run)](const Machine& machine) {
    Progress shown("bench " + name, noun);
    return run(machine, shown.ForMeasurements());
  };
  sub.OnChosen([&flags, show_and_run] { flags.bench = show_and_run; });
  return sub;
}

void ModelChoice::Add(const FlagSet& app) {
  app.Add("MODEL", model, "model, also as -m MODEL (default: tiny)");
  app.Add("--synthetic", synthetic,
          "use random weights of a shape, such as v2-lite:layers=4,dtype=int8");
}

Result<JsonOut> ModelChoice::Run(const EngineOptions& options, const BenchOfModel& bench,
                                 RankWorld* ranks) const {
  const auto named = [&](const Model& loaded, const ComputeDevice& device,
                         const std::string& name) -> Result<JsonOut> {
    LATTE_ASSIGN_OR_RETURN(JsonOut record, bench(loaded, device));
    record["model"] = name;
    return record;
  };
  if (synthetic.empty()) {
    LATTE_ASSIGN_OR_RETURN(const OpenedModel opened,
                           OpenModel(model, {.device = options.device, .ranks = ranks}));
    return named(*opened.model, opened.device, model);
  }
  LATTE_ASSIGN_OR_RETURN(const ComputeDevice device, ComputeDevice::Open(options.device));
  LATTE_ASSIGN_OR_RETURN(const std::unique_ptr<Model> loaded,
                         LoadSynthetic(synthetic, options.threads, device.device(), ranks));
  return named(*loaded, device, synthetic);
}

}  // namespace latte
