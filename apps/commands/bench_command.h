// What the benches share: how one is registered, and the model it runs on.
#pragma once

#include <functional>

#include "apps/flags/command.h"
#include "src/base/json_out_fwd.h"

namespace latte {

using Bench = std::function<Result<JsonOut>(const Machine&)>;

// What was asked for; empty: nothing.
struct BenchFlags {
  Bench bench;
  bool json = false;
};

// `bench` runs when the subcommand is chosen.
FlagSet AddOne(const FlagSet& bench, BenchFlags& flags, const std::string& name,
               const std::string& what, Bench run);

// A model on disk, or random weights of a shape for the length of a run.
struct ModelChoice {
  std::string model = "tiny";
  std::string synthetic;

  void Add(const FlagSet& app);
  // The record of `bench`, with the model's name. Errors: of loading and of `bench`.
  [[nodiscard]] Result<JsonOut> Run(
      int threads, const std::function<Result<JsonOut>(const Model&)>& bench) const;
};

// Benches of the engine: batch, prefix, determinism.
void AddEngineBenches(const FlagSet& bench, BenchFlags& flags);

// Benches of the simulation: steps, simulation.
void AddServeBenches(const FlagSet& bench, BenchFlags& flags);

}  // namespace latte
