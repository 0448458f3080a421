// What the subcommands share: how one is registered, the flags of sampling, and opening a model.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "latte/request.h"
#include "latte/status.h"

#include "apps/flags/flag_set.h"
#include "src/models/model.h"
#include "src/text/tokenizer.h"

namespace latte {

// Adds a subcommand to `app`; returns what runs when it was chosen.
using CommandRun = std::function<Status()>;
struct Command {
  FlagSet flags;
  CommandRun run;
};

Command AddRun(const FlagSet& app);
Command AddBatch(const FlagSet& app);
Command AddScore(const FlagSet& app);
Command AddInspect(const FlagSet& app);
Command AddTokenize(const FlagSet& app);
Command AddChat(const FlagSet& app);
Command AddEval(const FlagSet& app);
Command AddBench(const FlagSet& app);
Command AddSynth(const FlagSet& app);
Command AddQuantize(const FlagSet& app);
Command AddSimulate(const FlagSet& app);

// A model and the machine it runs on.
struct OpenedModel {
  std::string dir;
  Machine machine;
  std::unique_ptr<Model> model;
};

// The flags that decide how tokens are drawn.
struct SamplingFlags {
  std::optional<double> temperature;
  std::optional<int64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::string logit_bias;
  uint64_t seed = 0;

  void Add(const FlagSet& app);
  // What the checkpoint recommends, overridden by what the user says.
  // Errors: of LoadGenerationDefaults; kInvalidArgument naming the flag.
  [[nodiscard]] Result<SamplingParams> Params(const OpenedModel& opened) const;
};

struct OpenOptions {
  bool mtp = false;            // load the drafting layer too
  bool check_weights = false;  // refuse weights that are not finite (--check-weights)
};
// Says on standard error, once, what of the model is not used, and before loading, whether weights
// are larger than available memory.
[[nodiscard]] Result<OpenedModel> OpenModel(const std::string& name,
                                            const OpenOptions& options = {});

// Says on standard error why a file of rates is left aside (MachineRates).
void WarnAboutRates(Isa isa);

// Says on standard error when the weights of the model in `dir` are larger than available memory. A
// folder that cannot be opened is left to whoever needs what is in it.
void WarnIfLarge(const std::string& dir);

// What --act says: whether activations of int4 and int8 weights become int8.
// Errors: kInvalidArgument.
[[nodiscard]] Result<bool> Int8Activations(const std::string& act);

// Sets the memory policy that --numa asks for. Errors: kInvalidArgument; kUnavailable for a policy
// that the system refuses.
[[nodiscard]] Status SetMemoryPolicy(const std::string& numa);

// Says on standard error that the system gave fewer threads than `asked` for; 0: the default.
void WarnIfFewer(int asked, int started);

// Adds --check-weights.
void AddCheckWeights(const FlagSet& app, bool& check_weights);

// The text of `path`, or of standard input for "-". Errors: of ReadFile; kCorrupt above 1 GiB.
[[nodiscard]] Result<std::string> ReadText(const std::string& path);

// "1,2,3" → ids. Errors: kInvalidArgument naming the piece that is no number.
[[nodiscard]] Result<std::vector<int32_t>> ParseIds(const std::string& text);

// "5:1.5,7:-100" → tokens and what is added to their logits.
// Errors: kInvalidArgument naming the piece that is no such pair.
[[nodiscard]] Result<std::vector<std::pair<int32_t, float>>> ParseLogitBias(std::string_view text);

// An error that begins with a field ("top_p: …") begins with its flag instead ("--top-p: …").
[[nodiscard]] Status NameFlag(Status status);

double PerSecond(int64_t tokens, double seconds);  // 0 for no time

// Writes to standard output and flushes. Errors: kUnavailable when the reader is gone.
[[nodiscard]] Status Print(std::string_view text);

}  // namespace latte
