// latte eval: measures what a model can do.
#include <atomic>
#include <csignal>
#include <functional>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/flags/command.h"
#include "apps/flags/engine_flags.h"
#include "apps/terminal/interrupts.h"
#include "apps/terminal/progress.h"
#include "lab/eval/eval.h"
#include "lab/eval/judge_texts.h"
#include "src/base/file.h"
#include "src/base/json_out.h"
#include "src/checkpoint/model_files.h"
#include "src/checkpoint/model_path.h"

namespace latte {
namespace {

struct EvalFlags {
  std::string model = "tiny";
  std::optional<std::string> texts;
  std::vector<std::string> skills;
  std::optional<int64_t> count;
  uint64_t seed = 1;
  bool json = false;
  EngineFlags engine;
  // Other flags that only a run of the model uses.
  std::vector<std::pair<std::string, Flag>> of_run;
};

// The story grammar of the model in `dir`. It is read before the weights, which may be large.
Result<StoryGrammar> LoadGrammar(const std::string& dir) {
  const std::string path = dir + "/story_grammar.json";
  if (!IsRegularFile(path))
    return NotFound(
        fmt::format("{}: not found; eval tests the skills of tiny and of models trained like it, "
                    "whose folders contain this file",
                    path));
  return StoryGrammar::Load(path);
}

Status PrintReport(const EvalFlags& flags, const EngineOptions& engine,
                   const std::vector<SkillReport>& reports) {
  if (!flags.json)
    return Print(fmt::format("{}: attention {} ({}), seed {}\n{}", flags.model, engine.attention,
                             engine.dtype, flags.seed, EvalTable(reports)));
  int64_t tokens = 0;
  for (const SkillReport& report : reports) tokens += report.tokens;
  const JsonOut out = {{"model", flags.model},  {"attention", engine.attention},
                       {"dtype", engine.dtype}, {"seed", flags.seed},
                       {"tokens", tokens},      {"skills", EvalJson(reports, flags.seed)}};
  return Print(Dump(out) + "\n");
}

// The texts of BOS and EOS, which an engine may have left in texts.
Result<std::vector<std::string>> LoadMarks(const std::string& dir) {
  LATTE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, LoadTokenizer(dir));
  std::vector<std::string> out;
  for (const std::optional<int32_t> id : {tokenizer.bos_id(), tokenizer.eos_id()})
    if (id) out.emplace_back(tokenizer.TokenBytes(*id));
  return out;
}

Status CheckNoFlagOfRun(const EvalFlags& flags) {
  std::vector<std::string> given = flags.engine.Given();
  for (const auto& [name, flag] : flags.of_run)
    if (flag.given()) given.push_back(name);
  if (given.empty()) return {};
  return InvalidArgument(
      fmt::format("{}: expected no such flag together with --texts, which does not run the model",
                  given.front()));
}

// --texts: judges without the weights.
Status JudgeCommand(const EvalFlags& flags) {
  LATTE_RETURN_IF_ERROR(CheckNoFlagOfRun(flags));
  LATTE_ASSIGN_OR_RETURN(const std::string dir, ResolveModelPath(flags.model));
  LATTE_ASSIGN_OR_RETURN(const StoryGrammar grammar, LoadGrammar(dir));
  LATTE_ASSIGN_OR_RETURN(const std::vector<std::string> marks, LoadMarks(dir));
  LATTE_ASSIGN_OR_RETURN(const std::string lines, ReadText(*flags.texts));
  const std::string where = *flags.texts == "-" ? "standard input" : *flags.texts;
  LATTE_ASSIGN_OR_RETURN(const JudgedTexts judged, JudgeTexts(grammar, lines, where, marks));
  if (!flags.json)
    return Print(fmt::format("{}: texts of {}\n{}", flags.model, where, JudgedTable(judged)));
  const JsonOut out = {
      {"model", flags.model}, {"texts", *flags.texts}, {"skills", JudgedJson(judged)}};
  return Print(Dump(out) + "\n");
}

Status EvalCommand(const EvalFlags& flags) {
  if (flags.texts) return JudgeCommand(flags);
  EvalOptions options;
  options.skills = flags.skills;
  options.count = flags.count;
  options.seed = flags.seed;
  options.warn = WarnAboutRates;
  LATTE_ASSIGN_OR_RETURN(options.engine, flags.engine.Options(flags.model));
  // Must precede the start of threads, so that this thread receives the signals.
  LATTE_ASSIGN_OR_RETURN(const Interrupts interrupts, Interrupts::Catch({SIGINT, SIGTERM}));
  std::atomic<bool> stopped = false;
  options.interrupted = [&] {
    if (interrupts.TakeFirst()) stopped = true;
    return stopped.load();
  };
  LATTE_ASSIGN_OR_RETURN(const std::string dir, ResolveModelPath(flags.model));
  LATTE_ASSIGN_OR_RETURN(const StoryGrammar grammar, LoadGrammar(dir));
  const EngineOptions drafts = {.draft_tokens = "auto"};  // for the skill "mtp"
  LATTE_ASSIGN_OR_RETURN(
      const OpenedModel opened,
      OpenModel(flags.model, {.drafts = &drafts, .device = options.engine.device}));
  LATTE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, LoadTokenizer(opened.dir));
  const EvalSubject subject = {*opened.model, opened.device, tokenizer, grammar};
  ProgressOfParts shown("items");
  LATTE_ASSIGN_OR_RETURN(
      const auto reports,
      Evaluate(subject, options, std::bind_front(&ProgressOfParts::Show, &shown)));
  shown.End();
  LATTE_RETURN_IF_ERROR(PrintReport(flags, options.engine, reports));
  if (stopped) return Fail(Code::kCancelled, "eval: stopped; the skills above were finished");
  return {};
}

}  // namespace

Command AddEval(const FlagSet& app) {
  auto flags = std::make_shared<EvalFlags>();
  const FlagSet sub = app.AddCommand("eval", "Skills of tiny and models trained like it");
  sub.Add("MODEL", flags->model, "model, also as -m MODEL (default: tiny)");
  sub.Add("--texts", flags->texts,
          "judge these texts of another engine instead of running the model: {\"text\": ...} per "
          "line, which begins with the prompt; BOS and EOS are removed; -: standard input")
      .Value("FILE");
  flags->of_run.emplace_back(
      "--skills", sub.Add("--skills", flags->skills,
                          fmt::format("some of {} (default: all)", fmt::join(EvalSkills(), ",")))
                      .CommaSeparated());
  flags->of_run.emplace_back(
      "--count", sub.Add("--count", flags->count,
                         "items per skill, for recall per distance (default: 200; recall 50)"));
  flags->of_run.emplace_back(
      "--seed",
      sub.Group("Sampling")
          .Add("-s,--seed", flags->seed,
               "same seed, same questions and samples; fixed, so that results compare (default: "
               "1)"));
  sub.Group("Output").AddSwitch("--json", flags->json, "one JSON object instead of a table");
  flags->engine.AddForOneSequence(sub);
  return {sub, [flags] { return EvalCommand(*flags); }};
}

}  // namespace latte
