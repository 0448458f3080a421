// Shared by the subcommands: registration, the flags of sampling, and opening a model.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "latte/options.h"
#include "latte/request.h"
#include "latte/status.h"

#include "apps/flags/field_flags.h"
#include "apps/flags/flag_set.h"
#include "apps/tell.h"
#include "src/base/json_out_fwd.h"
#include "src/checkpoint/model_files.h"
#include "src/engine/core/compute_device.h"
#include "src/engine/link/rank_world.h"
#include "src/engine/settings.h"
#include "src/models/model.h"

namespace latte {

// Adds a subcommand to `app`; returns what runs when it was chosen.
using CommandRun = std::function<Status()>;
struct Command {
  FlagSet flags;
  CommandRun run;
};

Command AddRun(const FlagSet& app);
Command AddBatch(const FlagSet& app);
Command AddServe(const FlagSet& app);
Command AddScore(const FlagSet& app);
Command AddInspect(const FlagSet& app);
Command AddTokenize(const FlagSet& app);
Command AddChat(const FlagSet& app);
Command AddEval(const FlagSet& app);
Command AddBench(const FlagSet& app);
Command AddSynth(const FlagSet& app);
Command AddQuantize(const FlagSet& app);
Command AddPull(const FlagSet& app);
Command AddList(const FlagSet& app);
Command AddSimulate(const FlagSet& app);
Command AddCompletion(const FlagSet& app);
Command AddHelp(const FlagSet& app);
Command AddVersion(const FlagSet& app);

// Prints name, version, build and parts of the program.
[[nodiscard]] Status PrintVersion();

// A model and what computes it.
struct OpenedModel {
  std::string dir;
  ComputeDevice device;
  std::unique_ptr<Model> model;
  MemoryRoom room;  // before the weights were read
};

// The seed of a command's answers.
struct UsedSeed {
  uint64_t value = 0;
  bool drawn = false;  // at random, because the user gave none
  bool used = true;    // tokens are sampled
};

// Says on standard error the seed that was drawn and used, so that the text can be had again.
void SayDrawn(const UsedSeed& seed);

// Adds -t,--threads with the default `preset`. 0 means one thread per CPU, as everywhere;
// `threads` has the number after parsing.
void AddThreads(const FlagSet& app, int& threads, int preset);

// The flags that decide how tokens are sampled.
class SamplingFlags {
 public:
  void Add(const FlagSet& app);
  // The recommendations of the checkpoint, overridden by variables and flags. The seed is random if
  // neither says one.
  // Errors: of LoadGenerationDefaults; kInvalidArgument naming the flag or the variable.
  [[nodiscard]] Result<SamplingParams> Params(const OpenedModel& opened) const;
  // For a request to a server: sets the fields that variables and flags set, and adds their names
  // to `chosen`. Errors: kInvalidArgument naming the flag or the variable.
  [[nodiscard]] Status ApplyTo(SamplingParams* params,
                               std::set<std::string, std::less<>>* chosen) const;
  // Of `params`, which Params made.
  UsedSeed Seed(const SamplingParams& params) const;

 private:
  StructFlags<SamplingParams> flags_;
};

// `ranks` outlive the model.
struct OpenOptions {
  const EngineOptions* drafts = nullptr;  // load the drafting layers that these options need
  bool check_weights = false;             // refuse weights that are not finite (--check-weights)
  std::string device = "cpu";             // as EngineOptions::device
  RankWorld* ranks = nullptr;  // this process leads them: the model is computed by all; null: alone
};
// Says on standard error, once, what of the model is not used, and before loading, whether weights
// are larger than available memory.
[[nodiscard]] Result<OpenedModel> OpenModel(const std::string& name,
                                            const OpenOptions& options = {});

// Says on standard error why a file of rates is ignored; nothing if `warning` is empty.
void WarnAboutRates(const std::string& warning);

// Says on standard error when the weights of the model in `dir` are larger than available memory.
// Weights that cannot be opened are an error only where they are loaded.
void WarnIfLarge(const std::string& dir, const ModelConfig& config);

// Sets the memory policy that --numa asks for. Errors: kInvalidArgument; kUnavailable for a policy
// that the system refuses.
[[nodiscard]] Status SetMemoryPolicy(const std::string& numa);

// Says on standard error that the system gave fewer threads than `asked` for; 0: the default.
void WarnIfFewer(int asked, int started);

// --check-weights of commands that open a model themselves.
class CheckWeightsFlag {
 public:
  void Add(const FlagSet& app);
  // Errors: kInvalidArgument naming the variable.
  [[nodiscard]] Result<bool> Get() const;

 private:
  StructFlags<EngineOptions> flags_;
};

// The text of `path`, a file or a pipe such as <(…), or of standard input for "-".
// Errors: of ReadFile; kCorrupt above 1 GiB.
[[nodiscard]] Result<std::string> ReadText(const std::string& path);

// "1,2,3" → ids. Errors: kInvalidArgument naming the piece that is no number.
[[nodiscard]] Result<std::vector<int32_t>> ParseIds(const std::string& text);

double PerSecond(int64_t tokens, double seconds);  // 0 for no time

}  // namespace latte
