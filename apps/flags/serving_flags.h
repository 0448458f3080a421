// The flags of an engine that serves many requests: one for every field of EngineOptions.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "latte/engine.h"
#include "latte/options.h"

namespace latte {

class ServingFlags {
 public:
  void Add(CLI::App& app);

  // Also sets the memory policy that --numa asks for.
  // Errors: of EngineOptions::Validate; of Int8Activations and SetMemoryPolicy.
  [[nodiscard]] Result<EngineOptions> Options(const std::string& model) const;

 private:
  void AddArithmetic(CLI::App& app);
  void AddSizes(CLI::App& app);
  void AddQueue(CLI::App& app);
  void AddPrefixes(CLI::App& app);

  EngineOptions options_;
  std::string act_ = "int8";
  std::string numa_ = "first-touch";
  bool no_prefix_cache_ = false;
};

// Says on standard error what of the model is not used, and how large cache and prefill workspace
// are. Errors: of LoadModelConfig.
[[nodiscard]] Status Introduce(const Engine& engine);

}  // namespace latte
