// The flags of an engine, and the report of its settings.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "latte/engine.h"
#include "latte/options.h"

#include "apps/flags/field_flags.h"
#include "apps/flags/flag_set.h"
#include "src/checkpoint/config/model_config.h"
#include "src/engine/attention_mode.h"

namespace latte {

// The parts of the engine that a command uses and others do not; their flags are added only then.
struct EngineUses {
  bool context = false;  // of one sequence: --context
  bool drafts = false;
  bool ranks = false;
  bool groups = false;  // of ranks, in a simulation: --dp and --dp-policy
};

class EngineFlags {
 public:
  // For many requests at once: a flag for every field of EngineOptions that has one.
  void AddAll(const FlagSet& app, const EngineUses& uses);
  // For one sequence at a time: how it is computed. The prefix cache is off.
  void AddForOneSequence(const FlagSet& app, const EngineUses& uses = {});

  // What flags say, else variables, else the file. Also sets the memory policy that --numa asks
  // for. Errors: kInvalidArgument naming the flag, variable or line that is wrong; of
  // SetMemoryPolicy.
  [[nodiscard]] Result<EngineOptions> Options(const std::string& model,
                                              const ConfigFile& file = {}) const;

  // The flags on the command line: "--threads".
  std::vector<std::string> Given() const;
  const StructFlags<EngineOptions>& fields() const { return flags_; }

 private:
  // Sets max_batch_tokens for one sequence. Errors: kInvalidArgument.
  [[nodiscard]] Status ApplyStep(EngineOptions& out) const;

  StructFlags<EngineOptions> flags_;
  std::optional<int64_t> step_tokens_;  // for one sequence: stands for max_batch_tokens
  std::string numa_ = "first-touch";
  std::vector<std::pair<std::string, Flag>> others_;  // --numa, --max-batch-tokens
};

// Says on standard error what of the model is not used.
void WarnOfUnused(const ModelConfig& config);
// Says on standard error that the model's indexer is not used under `mode`, if so.
void WarnIfDense(const ModelConfig& config, AttentionMode mode);

// WarnOfUnused and WarnIfDense; also how large cache and prefill workspace are. `config`: of the
// engine's model.
void Introduce(const Engine& engine, const ModelConfig& config);

}  // namespace latte
