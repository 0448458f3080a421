// latte batch: a file of requests in, a file of results out.
#include <csignal>
#include <cstdio>

#include <fmt/format.h>

#include "apps/flags/command.h"
#include "apps/flags/engine_flags.h"
#include "apps/terminal/interrupts.h"
#include "apps/terminal/progress.h"
#include "src/checkpoint/model_path.h"
#include "src/jobs/batch/batch.h"

namespace latte {
namespace {

struct BatchFlags {
  std::string model = "tiny";
  BatchFiles files;
  uint64_t seed = 0;
  EngineFlags engine;
};

Status Answer(Batch* batch, const EngineOptions& options, const OpenAiModel& model) {
  LATTE_ASSIGN_OR_RETURN(const Interrupts interrupts, Interrupts::Catch({SIGINT, SIGTERM, SIGHUP}));
  if (options.cache_bytes > 0) {  // by default the engine refuses what does not fit
    LATTE_ASSIGN_OR_RETURN(const std::string dir, ResolveModelPath(options.model));
    WarnIfLarge(dir);
  }
  LATTE_ASSIGN_OR_RETURN(const auto engine, Engine::Create(options));
  WarnIfFewer(options.threads, engine->options().threads);
  LATTE_RETURN_IF_ERROR(Introduce(*engine));

  RequestProgress progress("batch");
  BatchHooks hooks;
  hooks.interrupted = [&] { return interrupts.TakeFirst(); };
  hooks.on_step = [&](const BatchProgress& p) {
    progress.Show(p.resumed + p.done, p.lines, engine->Stats().generated_tokens);
  };
  const Status answered = batch->Run(engine.get(), model, hooks);
  progress.End();
  const Status saved = engine->SavePrefixes();
  return answered ? saved : answered;
}

Status BatchCommand(const BatchFlags& flags) {
  // Results that are to be overwritten are safe until flags and model are known to be right.
  LATTE_ASSIGN_OR_RETURN(const EngineOptions options, flags.engine.Options(flags.model));
  LATTE_ASSIGN_OR_RETURN(OpenAiModel model, OpenAiModel::Load(flags.model));
  model.seed = flags.seed;
  if (model.chat)
    for (const std::string& caveat : model.chat->Caveats())
      std::fprintf(stderr, "latte: warning: %s\n", caveat.c_str());
  LATTE_ASSIGN_OR_RETURN(Batch batch, Batch::Open(flags.files));
  const int64_t resumed = batch.progress().resumed;
  if (resumed > 0)
    std::fputs(
        fmt::format("{} of {} requests have results already\n", resumed, batch.progress().lines)
            .c_str(),
        stderr);
  if (!batch.finished()) LATTE_RETURN_IF_ERROR(Answer(&batch, options, model));
  const BatchProgress& end = batch.progress();
  std::fputs(fmt::format("{} requests have results in {}", end.lines, flags.files.output).c_str(),
             stderr);
  if (end.failed > 0)
    std::fputs(fmt::format("; {} of them failed, see \"error\" there", end.failed).c_str(), stderr);
  std::fputs("\n", stderr);
  for (const auto& [note, requests] : end.notes)
    std::fputs(fmt::format("without effect in {} of them: {}\n", requests, note).c_str(), stderr);
  return {};
}

}  // namespace

Command AddBatch(const FlagSet& app) {
  auto flags = std::make_shared<BatchFlags>();
  const FlagSet sub = app.AddCommand("batch", "Answer a file of requests, many at once");
  sub.Footer(
      "Both files have the OpenAI batch format, one JSON object a line; urls are\n"
      "/v1/chat/completions and /v1/completions. Results come in the order in which requests\n"
      "finish. The same command goes on after an interruption: results that succeeded stay,\n"
      "requests that failed are tried again. docs/batch.md lists the fields.");
  sub.Add("MODEL", flags->model, "model (default: tiny)");
  sub.Add("-i,--input", flags->files.input, "the requests").Required();
  sub.Add("-o,--output", flags->files.output, "the results").Required();
  sub.AddSwitch("--overwrite", flags->files.overwrite, "forget the results of an earlier run");
  sub.Add("--seed", flags->seed, "of requests that give none (default: 0)");
  flags->engine.AddAll(sub);
  return {sub, [flags] { return BatchCommand(*flags); }};
}

}  // namespace latte
