// Measures what a model can do with objective tests: `latte eval` compares cache formats, kernels
// and generation methods. The skills are the ones that models/tiny was trained on; they say nothing
// about models trained on other texts. Not a speed benchmark.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "lab/eval/story_grammar.h"
#include "src/base/json_out_fwd.h"
#include "src/engine/core/compute_device.h"
#include "src/engine/settings.h"
#include "src/jobs/job_progress.h"
#include "src/models/model.h"
#include "src/text/tokenizer.h"

namespace latte {

// The data that every item needs; it outlives the evaluation.
struct EvalSubject {
  const Model& model;
  const ComputeDevice& device;
  const Tokenizer& tokenizer;
  const StoryGrammar& grammar;
};

struct EvalOptions {
  std::vector<std::string> skills;  // empty: all
  std::optional<int64_t> count;     // items per bucket; not set: the default of each skill
  uint64_t seed = 1;                // first sample of the stories; random seed of the other skills
  // One item runs on one thread with an engine of its own; engine.threads items run in parallel.
  // The model and the limits of lengths, sequences and memory are ignored.
  EngineOptions engine;
  // Told what the user should know of the settings (Settings::rates_warning). May be empty.
  std::function<void(const std::string&)> warn;
  // Asked before each item, from any thread; true ends the evaluation. May be empty.
  std::function<bool()> interrupted;
};

struct EvalTally {
  std::string name;    // of a skill or a bucket
  int64_t items = 0;   // items that were run
  int64_t passed = 0;  // out of `count`
  int64_t count = 0;   // sum of the weights of the items: 1, or the number of predicted tokens
};

struct SkillReport {
  EvalTally total;
  std::vector<EvalTally> buckets;   // empty, or parts that add up to the total
  std::optional<double> nats = {};  // for a skill that measures a loss: sum over `count`
  int64_t tokens = 0;               // of prompts and answers
  std::string_view what;            // a one-line description
};

// The names of all skills, in the order in which they run.
std::vector<std::string_view> EvalSkills();

// Runs the skills; an interrupted one and those after it are not in the result. "mtp" runs by
// default only if the model drafts. Equal arguments give equal reports for any number of threads.
// `progress`: after each item, with the skill; from any thread.
// Errors: kInvalidArgument for an unknown skill, a count out of range, or an item that does not fit
// in the model's context; of EngineCore, Complete and the grammar.
[[nodiscard]] Result<std::vector<SkillReport>> Evaluate(const EvalSubject& subject,
                                                        const EvalOptions& options,
                                                        const JobProgress& progress = {});

// {"items", "passed", "count", "share"}
JsonOut TallyJson(const EvalTally& tally);

// {skill: {"items", "passed", "count", "share", "buckets": [{"name", …}], "seed", "tokens"}}; a
// loss has "nats_per_token" instead of "passed" and "share".
JsonOut EvalJson(const std::vector<SkillReport>& reports, uint64_t seed);

// The same as a text table.
std::string EvalTable(const std::vector<SkillReport>& reports);

}  // namespace latte
