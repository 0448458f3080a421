// What a model can do, in numbers that do not depend on taste: `latte eval` judges cache formats,
// kernels and ways to generate by them. The skills are those that models/tiny was trained on; they
// say nothing of models that were trained on other texts. Not a benchmark of speed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"
#include "src/engine/settings.h"
#include "src/jobs/eval/story_grammar.h"
#include "src/models/model.h"
#include "src/text/tokenizer.h"

namespace latte {

// Everything an item needs; all of it outlives the evaluation.
struct EvalSubject {
  const Model& model;
  const Machine& machine;
  const Tokenizer& tokenizer;
  const StoryGrammar& grammar;
};

struct EvalOptions {
  std::vector<std::string> skills;  // empty: all
  std::optional<int64_t> count;     // items of each bucket; without it, each skill's own default
  uint64_t seed = 1;                // of stories' first sample; other skills draw their items by it
  // One item runs on one thread and has an engine of its own; engine.threads items run at once.
  // Ignored: the model, and all that limits lengths, sequences and memory.
  EngineOptions engine;
  // Told what the user should know of the settings (Settings::rates_warning). May be empty.
  std::function<void(const std::string&)> warn;
};

struct EvalTally {
  std::string name;    // of a skill or a bucket
  int64_t items = 0;   // what was asked, sampled or read
  int64_t passed = 0;  // of `count`
  int64_t count = 0;   // what an item counts for: itself, or the tokens that it predicts
};

struct SkillReport {
  EvalTally total;
  std::vector<EvalTally> buckets;   // empty, or parts that add up to the total
  std::optional<double> nats = {};  // sum over `count`, of a skill that measures a loss instead
  int64_t tokens = 0;               // prompts and answers
  std::string_view what;            // one line for people
};

// Called after each item, from any thread but never from two at once.
using EvalProgress = std::function<void(std::string_view skill, int64_t done, int64_t items)>;

// The names of all skills, in the order in which they run.
std::vector<std::string_view> EvalSkills();

// Runs the skills; mtp without being named only where the model drafts. Equal arguments give equal
// reports, whatever the number of threads. Errors: kInvalidArgument for an unknown skill, a count
// out of range, or an item that does not fit into the model's context; of EngineCore, Complete and
// the grammar.
[[nodiscard]] Result<std::vector<SkillReport>> Evaluate(const EvalSubject& subject,
                                                        const EvalOptions& options,
                                                        const EvalProgress& progress = {});

// {skill: {"items", "passed", "count", "share", "buckets": [{"name", …}], "seed", "tokens"}}; a
// loss has "nats_per_token" in place of "passed" and "share".
JsonOut EvalJson(const std::vector<SkillReport>& reports, uint64_t seed);

// The same as lines for people.
std::string EvalTable(const std::vector<SkillReport>& reports);

}  // namespace latte
