// latte batch: reads a file of requests and writes a file of results.
#include <csignal>
#include <cstdio>

#include <fmt/format.h>

#include "apps/flags/command.h"
#include "apps/flags/config/config_flags.h"
#include "apps/flags/engine_flags.h"
#include "apps/ranks.h"
#include "apps/terminal/interrupts.h"
#include "apps/terminal/progress.h"
#include "src/engine/core/create_engine.h"
#include "src/jobs/batch/batch.h"

namespace latte {
namespace {

struct BatchFlags {
  ConfigFlags config;
  BatchFiles files;
  uint64_t seed = 0;
  ApiRules rules;
  EngineFlags engine;
};

Status Answer(Batch* batch, const EngineOptions& options, const ModelFiles& files,
              const ApiModel& model, RankWorld* ranks) {
  LATTE_ASSIGN_OR_RETURN(const Interrupts interrupts, Interrupts::Catch({SIGINT, SIGTERM, SIGHUP}));
  // By default the engine refuses what does not fit.
  if (options.cache_bytes > 0 && !NamesGpu(options.device)) WarnIfLarge(files.dir, files.config);
  ProgressOfLoading loading;
  LATTE_ASSIGN_OR_RETURN(const CreatedEngine created,
                         CreateEngine(options, files, ranks, loading.Hooks()));
  loading.End();
  Engine* const engine = created.engine.get();
  WarnIfFewer(options.threads, engine->options().threads);
  for (const std::string& warning : created.warnings) Warn(warning);
  Introduce(*engine, files.config);

  Progress progress("batch", "requests");
  BatchHooks hooks;
  hooks.interrupted = [&] { return interrupts.TakeFirst(); };
  hooks.on_step = [&](const BatchProgress& p) {
    progress.Show(p.resumed + p.done, p.lines,
                  fmt::format("{} tokens", engine->Stats().generated_tokens));
  };
  const Status answered = batch->Run(engine, model, hooks);
  progress.End();
  const Status saved = engine->SavePrefixes();
  return answered ? saved : answered;
}

Status BatchCommand(const BatchFlags& flags) {
  if (flags.files.input == "-")
    return InvalidArgument(
        "--input: expected a file, found - (standard input); a batch that resumes reads its "
        "requests again, so write them to a file first");
  // Existing results are not overwritten before flags and model are known to be valid.
  LATTE_ASSIGN_OR_RETURN(const ConfigFile file, flags.config.Load());
  LATTE_ASSIGN_OR_RETURN(const std::string name, flags.config.Model(file));
  LATTE_ASSIGN_OR_RETURN(EngineOptions options, flags.engine.Options(name, file));
  LATTE_ASSIGN_OR_RETURN(const std::unique_ptr<RankWorld> ranks, JoinRanks(options));
  if (ranks && !ranks->leads()) return FollowLeader(*ranks);
  LATTE_ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::Load(name));
  LATTE_ASSIGN_OR_RETURN(ApiModel model, ApiModel::Create(name, files));
  model.seed = flags.seed;
  if (model.chat)
    for (const std::string& caveat : model.chat->UnusedFeatures()) Warn(caveat);
  LATTE_ASSIGN_OR_RETURN(Batch batch, Batch::Open(flags.files));
  batch.SetRules(flags.rules);
  const int64_t resumed = batch.progress().resumed;
  if (resumed > 0)
    Tell(fmt::format("{} of {} requests have results already\n", resumed, batch.progress().lines));
  if (!batch.finished()) LATTE_RETURN_IF_ERROR(Answer(&batch, options, files, model, ranks.get()));
  const BatchProgress& end = batch.progress();
  Tell(fmt::format("{} requests have results in {}", end.lines, flags.files.output));
  if (end.failed > 0) Tell(fmt::format("; {} of them failed, see \"error\" there", end.failed));
  Tell("\n");
  for (const auto& [note, requests] : end.notes)
    TellLine(fmt::format("without effect in {} of them: {}", requests, note));
  return {};
}

}  // namespace

Command AddBatch(const FlagSet& app) {
  auto flags = std::make_shared<BatchFlags>();
  const FlagSet sub = app.AddCommand("batch", "Answer a file of requests, many in parallel");
  sub.Footer(
      "Both files have the OpenAI batch format: one JSON object per line, with the urls\n"
      "/v1/chat/completions and /v1/completions. Results are written as requests finish.\n"
      "After an interruption, the same command resumes: it keeps successful results and\n"
      "repeats failed requests. docs/api_fields.md lists the fields, docs/options.md the keys\n"
      "of --config and the flags of vLLM, SGLang and llama.cpp that are understood.");
  flags->config.Add(sub);
  const FlagSet input = sub.Group("Input");
  input.Add("-i,--input", flags->files.input, "the requests").Required().Value("FILE");
  input.Add(
      "--min-priority", flags->rules.min_priority,
      "lowest priority of a request, served first; lower priorities are raised to it (default: 0)");
  const FlagSet output = sub.Group("Output");
  output.Add("-o,--output", flags->files.output, "the results").Required().Value("FILE");
  output.AddSwitch("--overwrite", flags->files.overwrite, "discard the results of an earlier run");
  sub.Group("Sampling")
      .Add("-s,--seed", flags->seed,
           "seed of requests without one; fixed, so that a resumed batch gives the same answers "
           "(default: 0)");
  flags->engine.AddAll(sub, {.drafts = true, .ranks = true});
  return {sub, [flags] { return BatchCommand(*flags); }};
}

}  // namespace latte
