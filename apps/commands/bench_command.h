// Code that the benches share: registration, and the model that a bench runs on.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "apps/flags/command.h"
#include "src/base/json_out_fwd.h"
#include "src/jobs/job_progress.h"

namespace latte {

using Bench = std::function<Result<JsonOut>(const Machine&, const JobProgress&)>;

// Flags of `latte bench` that apply to every bench; empty: not given.
struct BenchFlags {
  std::function<Result<JsonOut>(const Machine&)> bench;
  std::function<Status(bool json)> own;  // a bench that prints its record itself
  bool json = false;
};

// Adds a subcommand; `run` runs, and its progress is shown in `noun`, if the user chooses it.
FlagSet AddOne(const FlagSet& bench, BenchFlags& flags, const std::string& name,
               const std::string& what, Bench run, const std::string& noun = "steps");

// A subcommand whose flags set `options`.
template <class Options>
struct AddedBench {
  FlagSet flags;
  Options* options;  // as long as the command
};

// AddOne for a bench with options. `run(options, machine, progress)` returns the record.
template <class Options, class Run>
AddedBench<Options> AddBench(const FlagSet& bench, BenchFlags& flags, const std::string& name,
                             const std::string& what, Run run, const std::string& noun = "steps") {
  auto own = std::make_shared<Options>();
  return {AddOne(
              bench, flags, name, what,
              [own, run](const Machine& machine, const JobProgress& progress) {
                return run(*own, machine, progress);
              },
              noun),
          own.get()};
}

// A model on disk, or a temporary model of a shape with random weights.
struct ModelChoice {
  std::string model = "tiny";
  std::string synthetic;

  void Add(const FlagSet& app);
  using BenchOfModel = std::function<Result<JsonOut>(const Model&, const ComputeDevice&)>;

  // Loads the model and runs `bench`; returns its record with the model's name. options: threads
  // make random weights, the device computes. ranks: the group that computes the model, which this
  // process leads; null: alone. Errors: of loading and of `bench`.
  [[nodiscard]] Result<JsonOut> Run(const EngineOptions& options, const BenchOfModel& bench,
                                    RankWorld* ranks = nullptr) const;
};

// Benches of the engine: batch, prefix, determinism.
void AddEngineBenches(const FlagSet& bench, BenchFlags& flags);

// Benches of the simulation: steps, simulation.
void AddSimulationBenches(const FlagSet& bench, BenchFlags& flags);

// The bench of a server: serve.
void AddServeBench(const FlagSet& bench, BenchFlags& flags);

}  // namespace latte
