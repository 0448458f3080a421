// What the files of `latte bench` share.
#pragma once

#include <functional>
#include <string>

#include "apps/command.h"
#include "src/base/json.h"

namespace latte {

using Bench = std::function<Result<JsonOut>(const Machine&)>;

// What was asked for; empty: nothing.
struct BenchFlags {
  Bench bench;
  bool json = false;
};

// A benchmark of that name; `run` is kept in `flags` when it is chosen.
CLI::App* AddOne(CLI::App& bench, BenchFlags& flags, const std::string& name,
                 const std::string& what, Bench run);

// Those of whole engines.
void AddBenchSteps(CLI::App& bench, BenchFlags& flags);
void AddBenchSimulation(CLI::App& bench, BenchFlags& flags);

}  // namespace latte
