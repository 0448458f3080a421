// The flags of an engine, and what it says of itself.
#pragma once

#include <optional>
#include <string>

#include "latte/engine.h"
#include "latte/options.h"

#include "apps/flags/flag_set.h"

namespace latte {

class EngineFlags {
 public:
  // For many requests at once: a flag for every field of EngineOptions.
  void AddAll(const FlagSet& app);
  // For one sequence at a time: how it is computed. The prefix cache is off.
  void AddForOneSequence(const FlagSet& app);

  // Also sets the memory policy that --numa asks for, and says on standard error why a file of
  // rates is left aside. Errors: kInvalidArgument for --chunk and --prefill-workspace-tokens out of
  // range; of EngineOptions::Validate, Int8Activations and SetMemoryPolicy.
  [[nodiscard]] Result<EngineOptions> Options(const std::string& model) const;

 private:
  void AddArithmetic(const FlagSet& app);
  void AddSizes(const FlagSet& app);
  void AddQueue(const FlagSet& app);
  void AddPrefixes(const FlagSet& app);
  // Sets max_batch_tokens by --chunk. Errors: kInvalidArgument.
  [[nodiscard]] Status ApplyChunk(EngineOptions& out) const;

  EngineOptions options_;
  std::optional<int64_t> chunk_;  // for one sequence: stands for options_.max_batch_tokens
  std::string act_ = "int8";
  std::string numa_ = "first-touch";
  bool no_prefix_cache_ = false;
};

// Says on standard error what of the model is not used, and how large cache and prefill workspace
// are. Errors: of LoadModelConfig.
[[nodiscard]] Status Introduce(const Engine& engine);

}  // namespace latte
