#include "lab/eval/eval.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lab/eval/eval_questions.h"
#include "lab/eval/mtp_acceptance.h"
#include "src/base/json_out.h"
#include "src/base/thread_pool.h"
#include "src/engine/core/complete.h"
#include "src/engine/core/engine_core.h"
#include "src/jobs/score.h"

namespace latte {
namespace {

constexpr int64_t kMaxCount = 1'000'000;
constexpr int64_t kStoryTokens = 256;  // a story must end within this many new tokens
constexpr int64_t kAnswerTokens = 8;
constexpr double kStoryTemperature = 0.8;
constexpr std::string_view kOpening = "Once upon a time";
constexpr int64_t kRecallDistances[] = {250, 500, 1000, 1500, 2000};

// Streams of random numbers: a new skill does not change the items of other skills.
enum EvalStream : uint64_t { kRecall = 1, kRecall4 = 2, kAddition = 3, kLoss = 4 };

struct Context {
  const EvalSubject& subject;
  const EvalOptions& options;
  Settings settings;               // for an item, except for its length
  std::vector<std::string> names;  // people who may have a key
};

// Identifies an item: number `index` of its bucket.
struct ItemId {
  size_t bucket = 0;
  int64_t index = 0;
};

struct Outcome {
  int64_t passed = 0;
  int64_t count = 1;
  double nats = 0;
  int64_t tokens = 0;
};

// A skill is an entry of kSkills and the function that runs one of its items.
struct Skill {
  std::string_view name;
  std::string_view what;
  int64_t default_count;                  // number of items per bucket
  std::vector<std::string> (*buckets)();  // may be null: one unnamed bucket
  bool loss;                              // measured in nats instead of passes
  Result<Outcome> (*item)(const Context& context, ItemId id);
};

Random ItemRandom(const Context& context, EvalStream stream, ItemId id) {
  const auto bucket = static_cast<uint64_t>(id.bucket);
  return Random(context.options.seed,
                (uint64_t{stream} << 48) | (bucket << 32) | static_cast<uint64_t>(id.index));
}

// Settings for an item of `tokens` tokens.
Result<Settings> ItemSettings(const Context& context, int64_t tokens) {
  const int64_t room = context.subject.model.config().max_position;
  if (tokens > room)
    return InvalidArgument(
        fmt::format("an item needs {} tokens, but the model's context is {}; leave the skill out "
                    "with --skills",
                    tokens, room));
  Settings settings = context.settings;
  settings.SizeForOne(tokens);
  return settings;
}

// Runs `request`, whose prompt is token ids, in an engine of its own.
Result<Completion> AnswerItem(const Context& context, Request request, const StepSink& on_step) {
  const int64_t tokens = static_cast<int64_t>(request.tokens.size()) + request.stop.max_tokens;
  LATTE_ASSIGN_OR_RETURN(const Settings settings, ItemSettings(context, tokens));
  const ComputeDevice& device = context.subject.device;
  const EngineParts parts{
      .model = &context.subject.model, .machine = &device.machine(), .host = &device.host()};
  LATTE_ASSIGN_OR_RETURN(const auto core, EngineCore::Create(parts, settings));
  return Complete(*core, std::move(request), on_step);
}

// Appends the text of the event's token to `text`.
void AppendToken(const Context& context, const TokenEvent* event, std::string& text) {
  if (event != nullptr && event->token) text += context.subject.tokenizer.TokenBytes(*event->token);
}

// Greedy text after the prompt, up to and including the first ".".
Result<Outcome> Ask(const Context& context, const Question& question) {
  Request request;
  request.tokens = question.prompt;
  request.sampling.temperature = 0;
  request.stop.max_tokens = kAnswerTokens;
  std::string text;
  const auto until_period = [&](const TokenEvent* event) {
    AppendToken(context, event, text);
    return text.find('.') == std::string::npos;
  };
  LATTE_ASSIGN_OR_RETURN(const Completion answer,
                         AnswerItem(context, std::move(request), until_period));
  return Outcome{.passed = text.substr(0, text.find('.') + 1) == question.answer ? 1 : 0,
                 .tokens = static_cast<int64_t>(question.prompt.size() + answer.tokens.size())};
}

Result<Outcome> StoryItem(const Context& context, ItemId id) {
  const Tokenizer& tokenizer = context.subject.tokenizer;
  Request request;
  LATTE_ASSIGN_OR_RETURN(request.tokens,
                         tokenizer.Encode(kOpening, {.add_bos = tokenizer.adds_bos()}));
  const size_t prompt_tokens = request.tokens.size();
  request.sampling.temperature = kStoryTemperature;
  request.sampling.seed = context.options.seed + static_cast<uint64_t>(id.index);
  request.stop.max_tokens = kStoryTokens;
  std::string text(kOpening);
  LATTE_ASSIGN_OR_RETURN(const Completion answer,
                         AnswerItem(context, std::move(request), [&](const TokenEvent* event) {
                           AppendToken(context, event, text);
                           return true;
                         }));
  const bool passed =
      answer.reason == FinishReason::kStop && context.subject.grammar.Parse(text).accepted;
  return Outcome{.passed = passed ? 1 : 0,
                 .tokens = static_cast<int64_t>(prompt_tokens + answer.tokens.size())};
}

Result<Outcome> RecallAmong(const Context& context, ItemId id, int64_t keys) {
  Random random = ItemRandom(context, keys == 1 ? kRecall : kRecall4, id);
  LATTE_ASSIGN_OR_RETURN(
      const Question question,
      RecallQuestion(context.subject.grammar, context.names, context.subject.tokenizer,
                     {kRecallDistances[id.bucket], keys}, random));
  return Ask(context, question);
}

Result<Outcome> RecallItem(const Context& context, ItemId id) {
  return RecallAmong(context, id, 1);
}

Result<Outcome> Recall4Item(const Context& context, ItemId id) {
  return RecallAmong(context, id, 4);
}

Result<Outcome> AdditionItem(const Context& context, ItemId id) {
  Random random = ItemRandom(context, kAddition, id);
  LATTE_ASSIGN_OR_RETURN(const Question question,
                         AdditionQuestion(context.subject.tokenizer, random));
  return Ask(context, question);
}

// The ids of a new story from BOS to EOS.
Result<std::vector<int32_t>> NewStory(const Context& context, ItemId id) {
  const Tokenizer& tokenizer = context.subject.tokenizer;
  const ModelConfig& config = context.subject.model.config();
  Random random = ItemRandom(context, kLoss, id);
  LATTE_ASSIGN_OR_RETURN(const std::string story, context.subject.grammar.Generate(random));
  LATTE_ASSIGN_OR_RETURN(auto ids, tokenizer.Encode(story, {.add_bos = tokenizer.adds_bos()}));
  if (!config.eos.empty()) ids.push_back(static_cast<int32_t>(config.eos.front()));
  return ids;
}

Result<Outcome> LossItem(const Context& context, ItemId id) {
  LATTE_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, NewStory(context, id));
  const auto tokens = static_cast<int64_t>(ids.size());
  LATTE_ASSIGN_OR_RETURN(const Settings settings, ItemSettings(context, tokens));
  LATTE_ASSIGN_OR_RETURN(
      const auto sequence,
      GivenSequence::Create(context.subject.model, context.subject.device.machine(), settings));
  LATTE_ASSIGN_OR_RETURN(const ScoreResult score,
                         Score(*sequence, ids, context.subject.model.config().vocab, {}));
  return Outcome{.count = tokens - 1, .nats = -score.total, .tokens = tokens};
}

Result<Outcome> MtpItem(const Context& context, ItemId id) {
  LATTE_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, NewStory(context, id));
  LATTE_ASSIGN_OR_RETURN(
      const MtpAcceptance found,
      MeasureMtpAcceptance(context.subject.model, context.subject.device.machine(), {&ids, 1},
                           context.settings));
  return Outcome{
      .passed = found.accepted, .count = found.drafted, .tokens = static_cast<int64_t>(ids.size())};
}

std::vector<std::string> RecallBuckets() {
  std::vector<std::string> out;
  for (const int64_t distance : kRecallDistances) out.push_back(std::to_string(distance));
  return out;
}

constexpr Skill kSkills[] = {
    {"stories", "sampled stories that obey the grammar", 200, nullptr, false, StoryItem},
    {"recall", "a key told once, asked so many tokens later", 50, RecallBuckets, false, RecallItem},
    {"recall4", "four keys told, one of them asked", 50, RecallBuckets, false, Recall4Item},
    {"addition", "sums that the training left out", 200, nullptr, false, AdditionItem},
    {"mtp", "drafted tokens that the model would have said, new stories", 200, nullptr, false,
     MtpItem},
    {"loss", "cross-entropy of new stories", 200, nullptr, true, LossItem},
};

// Without names, all skills that the model supports: some models do not draft.
Result<std::vector<const Skill*>> Chosen(const std::vector<std::string>& names,
                                         const Model& model) {
  std::vector<const Skill*> out;
  for (const Skill& skill : kSkills) {
    const bool named = std::find(names.begin(), names.end(), skill.name) != names.end();
    if (named || (names.empty() && (skill.item != MtpItem || model.drafts())))
      out.push_back(&skill);
  }
  for (const std::string& name : names) {
    const auto all = EvalSkills();
    if (std::find(all.begin(), all.end(), name) == all.end())
      return InvalidArgument(
          fmt::format("--skills: expected some of {}, found '{}'", fmt::join(all, ","), name));
  }
  return out;
}

// Runs `count` items of each bucket in parallel; the outcomes are ordered by bucket. None:
// interrupted.
Result<std::vector<Outcome>> RunItems(const Context& context, const Skill& skill, size_t buckets,
                                      int64_t count, const JobProgress& progress) {
  const int64_t items = static_cast<int64_t>(buckets) * count;
  std::vector<Outcome> outcomes(static_cast<size_t>(items));
  std::atomic<bool> failed = false;
  std::atomic<bool> interrupted = false;
  std::mutex mutex;  // protects the variables below
  Status first_error;
  int64_t done = 0;
  ThreadPool pool(context.options.engine.threads);
  pool.ParallelFor(items, [&](int64_t i) {
    if (failed || interrupted) return;
    if (context.options.interrupted && context.options.interrupted()) {
      interrupted = true;
      return;
    }
    const ItemId id = {static_cast<size_t>(i / count), i % count};
    Result<Outcome> outcome = skill.item(context, id);
    const std::lock_guard lock(mutex);
    if (!outcome) {
      if (!failed) first_error = tl::unexpected(outcome.error());
      failed = true;
      return;
    }
    outcomes[static_cast<size_t>(i)] = *outcome;
    if (progress) progress(++done, items, skill.name);
  });
  if (!first_error) {
    Error& error = first_error.error();
    return Fail(error.code, fmt::format("eval {}: {}", skill.name, error.message));
  }
  if (interrupted) outcomes.clear();
  return outcomes;
}

SkillReport Add(const Skill& skill, const std::vector<std::string>& labels,
                const std::vector<Outcome>& outcomes) {
  SkillReport report;
  report.total.name = skill.name;
  report.what = skill.what;
  for (const std::string& label : labels) report.buckets.push_back({.name = label});
  if (skill.loss) report.nats = 0.0;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const auto add = [&outcome = outcomes[i]](EvalTally& tally) {
      ++tally.items;
      tally.passed += outcome.passed;
      tally.count += outcome.count;
    };
    add(report.total);
    if (!labels.empty()) add(report.buckets[i * labels.size() / outcomes.size()]);
    if (report.nats) *report.nats += outcomes[i].nats;
    report.tokens += outcomes[i].tokens;
  }
  return report;
}

double Share(const EvalTally& tally) {
  return static_cast<double>(tally.passed) / static_cast<double>(tally.count);
}

std::string TallyLine(std::string_view name, const EvalTally& tally) {
  return fmt::format("{:<10} {:>6} of {:<6} {:>5.1f} %", name, tally.passed, tally.count,
                     100 * Share(tally));
}

double NatsPerToken(const SkillReport& report) {
  return *report.nats / static_cast<double>(report.total.count);
}

}  // namespace

std::vector<std::string_view> EvalSkills() {
  std::vector<std::string_view> out;
  for (const Skill& skill : kSkills) out.push_back(skill.name);
  return out;
}

Result<std::vector<SkillReport>> Evaluate(const EvalSubject& subject, const EvalOptions& options,
                                          const JobProgress& progress) {
  LATTE_RETURN_IF_ERROR(options.engine.Validate());
  if (options.count && (*options.count < 1 || *options.count > kMaxCount))
    return InvalidArgument(
        fmt::format("--count: expected a number in [1, {}], found {}", kMaxCount, *options.count));
  LATTE_ASSIGN_OR_RETURN(const auto skills, Chosen(options.skills, subject.model));
  LATTE_ASSIGN_OR_RETURN(
      Settings settings,
      ResolveOptionsForOne(options.engine, subject.model.config(), subject.device.machine(), 1));
  if (options.warn) options.warn(settings.rates_warning);
  settings.options.threads = 1;
  settings.options.prefix_cache = false;
  Context context{subject, options, std::move(settings), {}};
  LATTE_ASSIGN_OR_RETURN(context.names, subject.grammar.Values("hero", "name"));
  std::vector<SkillReport> reports;
  for (const Skill* skill : skills) {
    const auto labels = skill->buckets ? skill->buckets() : std::vector<std::string>();
    const int64_t count = options.count.value_or(skill->default_count);
    LATTE_ASSIGN_OR_RETURN(
        const auto outcomes,
        RunItems(context, *skill, std::max<size_t>(labels.size(), 1), count, progress));
    if (outcomes.empty()) break;
    reports.push_back(Add(*skill, labels, outcomes));
  }
  return reports;
}

JsonOut TallyJson(const EvalTally& tally) {
  return {{"items", tally.items},
          {"passed", tally.passed},
          {"count", tally.count},
          {"share", Share(tally)}};
}

JsonOut EvalJson(const std::vector<SkillReport>& reports, uint64_t seed) {
  JsonOut out = JsonOut::object();
  for (const SkillReport& report : reports) {
    JsonOut one = TallyJson(report.total);
    if (report.nats) {
      one.erase("passed");
      one.erase("share");
      one["nats_per_token"] = NatsPerToken(report);
    }
    one["seed"] = seed;
    one["tokens"] = report.tokens;
    if (!report.buckets.empty()) one["buckets"] = JsonOut::array();
    for (const EvalTally& bucket : report.buckets) {
      JsonOut part = {{"name", bucket.name}};
      part.update(TallyJson(bucket));
      one["buckets"].push_back(std::move(part));
    }
    out[report.total.name] = std::move(one);
  }
  return out;
}

std::string EvalTable(const std::vector<SkillReport>& reports) {
  std::string out;
  for (const SkillReport& report : reports) {
    const std::string& name = report.total.name;
    const std::string line =
        report.nats ? fmt::format("{:<10} {:>10.4f} nats/token", name, NatsPerToken(report))
                    : TallyLine(name, report.total);
    out += fmt::format("{:<37}{}\n", line, report.what);
    for (const EvalTally& bucket : report.buckets)
      out += TallyLine("  " + bucket.name, bucket) + "\n";
  }
  return out;
}

}  // namespace latte
