// latte serve: the OpenAI API over HTTP.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "apps/flags/command.h"
#include "apps/flags/config/config_flags.h"
#include "apps/flags/engine_flags.h"
#include "apps/flags/engine_plan.h"
#include "apps/flags/seed.h"
#include "apps/rank_front.h"
#include "apps/ranks.h"
#include "apps/terminal/progress.h"
#include "src/base/fields/fields.h"
#include "src/base/files/owners.h"
#include "src/base/limits/memory.h"
#include "src/base/limits/open_files.h"
#include "src/base/random.h"
#include "src/checkpoint/config/model_size.h"
#include "src/comm/mpi/mpi.h"
#include "src/engine/core/create_engine.h"
#include "src/serve/server.h"
#include "src/tensor/arithmetic.h"

namespace latte {
namespace {

struct ServeFlags {
  ConfigFlags config;
  EngineFlags engine;
  StructFlags<ServeOptions> serve;
  bool dry_run = false;
  bool json = false;
  bool print_config = false;
};

struct Chosen {
  EngineOptions engine;
  ServeOptions serve;
  bool drawn_seed = false;  // serve.seed is random
  MemoryPlan plan;
};

// Seeds made of `first` and the number of earlier calls. Thread-safe.
std::function<uint64_t()> NewSeeds(uint64_t first) {
  const auto next = std::make_shared<std::atomic<uint64_t>>(first);
  return [next] { return Mix64(next->fetch_add(1)); };
}

Result<ApiModel> MakeModel(const Chosen& chosen, const std::string& name, const ModelFiles& files) {
  const ServeOptions& options = chosen.serve;
  LATTE_ASSIGN_OR_RETURN(ApiModel model, ApiModel::Create(name, files));
  model.UseApiDefaults();
  model.seed = static_cast<uint64_t>(options.seed);
  if (chosen.drawn_seed) model.new_seed = NewSeeds(model.seed);
  if (!options.chat_template.empty()) {
    LATTE_ASSIGN_OR_RETURN(const std::string text, ReadText(options.chat_template));
    LATTE_RETURN_IF_ERROR(model.UseChatTemplate(text, files.config));
  }
  if (!model.chat) {
    Warn("no chat: " + model.chat.error().message);
  } else {
    for (const std::string& caveat : model.chat->UnusedFeatures()) Warn(caveat);
  }
  return model;
}

// The options of the command, from all their sources.
Status PrintConfig(const ServeFlags& flags, const ConfigFile& file, const Chosen& chosen) {
  std::string name = chosen.engine.model;
  std::string out =
      ConfigLine(FieldOf<EngineOptions>("model"), &name, flags.config.ModelSource(file));
  out += ConfigText("\n[engine]\n", chosen.engine, flags.engine.fields(), file);
  out += ConfigText("\n[serve]\n", chosen.serve, flags.serve, file);
  return Print(out);
}

// A plan that does not fit is bad usage, as nothing is to be run.
Status DryRun(const Result<MemoryPlan>& plan, bool json) {
  if (!plan) return InvalidArgument(plan.error().message);
  LATTE_RETURN_IF_ERROR(json ? Print(MemoryPlanJson(*plan) + "\n") : Status());
  if (!json) TellBars(MemoryPlanText(*plan));
  if (plan->left_bytes().value_or(0) < 0)
    return InvalidArgument(
        fmt::format("memory: expected at most {} for weights, workspace and cache, found {}",
                    MemoryText(*plan->available_bytes), MemoryText(plan->total_bytes())));
  return {};
}

Result<std::unique_ptr<Engine>> MakeEngine(const EngineOptions& options, const ModelFiles& files,
                                           RankWorld* ranks) {
  ProgressOfLoading loading(ProgressStyle::kLines);
  LATTE_ASSIGN_OR_RETURN(CreatedEngine created,
                         CreateEngine(options, files, ranks, loading.Hooks()));
  WarnIfFewer(options.threads, created.engine->options().threads);
  for (const std::string& warning : created.warnings) Warn(warning);
  return std::move(created.engine);
}

// Every connection is an open file.
void AllowConnections(int64_t connections) {
  constexpr int64_t kOthers = 64;  // of the model, of the cache, of the log
  const int64_t limit = RaiseOpenFiles();
  if (limit < connections + kOthers)
    Warn(
        fmt::format("{} connections are allowed, but this process may have only {} "
                    "open files (ulimit -Hn)",
                    connections, limit));
}

// Runs the server until it is told to end.
Status StartServer(ServeParts parts, const Chosen& chosen, const ModelFiles& files) {
  const EngineOptions& engine = chosen.engine;
  parts.names = parts.options.served_model_name;
  if (parts.names.empty()) parts.names.push_back(engine.model);
  LATTE_ASSIGN_OR_RETURN(const ApiModel model, MakeModel(chosen, parts.names.front(), files));
  parts.model = &model;
  LATTE_ASSIGN_OR_RETURN(const DType dtype, ParseArithmetic(engine.dtype));
  parts.mha_bytes_per_token = CacheBytesPerToken(files.config, dtype).mha;
  parts.plan = chosen.plan;
  AllowConnections(parts.options.max_connections);
  return Serve(parts);
}

// Serves with an engine in this process: alone, or rank 0 of ranks that were started by hand.
Status ServeHere(const Chosen& chosen, const ModelFiles& files, RankWorld* ranks) {
  ServeParts parts{.options = chosen.serve, .version = LATTE_VERSION, .say = TellLine};
  parts.load = [&] { return MakeEngine(chosen.engine, files, ranks); };
  return StartServer(std::move(parts), chosen, files);
}

// Serves with an engine in other processes, which the server starts: ranks, or a single process.
Status ServeRanks(const Chosen& chosen, const ModelFiles& files) {
  std::stop_source stop;
  ServeParts parts{.options = chosen.serve, .version = LATTE_VERSION, .say = TellLine};
  parts.load = [&] {
    return StartRanksOf(chosen.engine, files, chosen.serve.step_timeout, stop.get_token());
  };
  parts.end_loading = [&] { stop.request_stop(); };
  parts.restarts = true;
  return StartServer(std::move(parts), chosen, files);
}

// A rank of such a server, or its engine alone. Its error is told to the front, too.
Status ServeFront(FrontLink& front, const Chosen& chosen, const ModelFiles& files,
                  RankWorld* ranks) {
  // A supervisor may signal both processes. The front lets requests finish, then it ends this one.
  if (ranks == nullptr)
    for (const int end : {SIGTERM, SIGINT}) std::signal(end, SIG_IGN);
  const auto serve = [&]() -> Status {
    if (ranks != nullptr && !ranks->leads()) return FollowLeader(*ranks);
    LATTE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                           MakeEngine(chosen.engine, files, ranks));
    return front.Serve(*engine);
  };
  const Status done = serve();
  if (!done) front.Fail(done.error());
  return done;
}

void SayPlan(const MemoryPlan& plan, const Chosen& chosen, const ModelFiles& files) {
  TellBars(MemoryPlanText(plan));
  if (chosen.engine.cache_bytes > 0 && !NamesGpu(chosen.engine.device))
    WarnIfLarge(files.dir, files.config);
  WarnOfUnused(files.config);
  if (const auto mode = ParseAttentionMode(chosen.engine.attention))
    WarnIfDense(files.config, *mode);
}

Result<Chosen> Choose(const ServeFlags& flags, const ConfigFile& file) {
  Chosen out;
  LATTE_ASSIGN_OR_RETURN(const std::string model, flags.config.Model(file));
  LATTE_ASSIGN_OR_RETURN(out.engine, flags.engine.Options(model, file));
  LATTE_RETURN_IF_ERROR(flags.serve.Apply(out.serve, file));
  LATTE_RETURN_IF_ERROR(flags.serve.Validate(out.serve, file));
  return out;
}

// A file of secrets that everybody may write to is refused: another key could be added. Other users
// who may change or read it are named, but for groups that may read it: services get secrets in
// that way.
Status CheckSecrets(const ServeOptions& options) {
  for (const auto& [flag, path] : {std::pair("--api-key-file", options.api_key_file),
                                   std::pair("--ssl-keyfile", options.ssl_keyfile)}) {
    struct stat info = {};
    if (path.empty() || stat(path.c_str(), &info) != 0) continue;  // reading it says why
    if ((info.st_mode & S_IWOTH) != 0)
      return InvalidArgument(fmt::format(
          "{} {}: everybody may write to it (mode {:o}), expected a file that only you can change; "
          "look at what is in it, and close it with chmod 600",
          flag, path, info.st_mode & 07777));
    if (const std::string who = WhoElseMayWrite(info); !who.empty())
      Warn(fmt::format("{} {}: it may also be changed by {}", flag, path, who));
    else if ((info.st_mode & S_IROTH) != 0 && S_ISREG(info.st_mode))
      Warn(fmt::format(
          "{} {}: every user of this machine can read it (mode {:o}); chmod 600 closes it", flag,
          path, info.st_mode & 07777));
  }
  return {};
}

// With the seed -1, every request without a seed gets another one.
void DrawSeedIfNone(Chosen* chosen) {
  if (chosen->serve.seed >= 0) return;
  chosen->serve.seed = static_cast<int64_t>(DrawSeed());
  chosen->drawn_seed = true;
  if (PrintsNotes())
    TellLine(fmt::format(
        "seed {} (random; a request that gives none gets one made of it and of its turn)",
        chosen->serve.seed));
}

// Whether this process is to be a front, which starts its engine.
bool StartsEngine(const Chosen& chosen) {
  const bool apart = chosen.serve.isolate || RankCount(chosen.engine) > 1;
  return apart && !StartedByMpi() && !StartedByServer();
}

// Ranks that were started by hand have no front.
Status CheckIsolation(const Chosen& chosen) {
  if (!chosen.serve.isolate || !StartedByMpi() || StartedByServer()) return {};
  return Fail(Code::kUnsupported,
              "--isolate: expected a server that starts its engine, found one that mpirun or srun "
              "has started; start latte serve itself, with --tp or --dp if there are to be ranks");
}

Status ServeCommand(const ServeFlags& flags) {
  if (flags.json && !flags.dry_run)
    return InvalidArgument("--json: expected --dry-run with it, found none");
  LATTE_ASSIGN_OR_RETURN(const ConfigFile file, flags.config.Load());
  LATTE_ASSIGN_OR_RETURN(Chosen chosen, Choose(flags, file));
  if (flags.print_config) return PrintConfig(flags, file, chosen);
  LATTE_RETURN_IF_ERROR(CheckIsolation(chosen));
  if (!StartedByServer()) LATTE_RETURN_IF_ERROR(CheckSecrets(chosen.serve));
  LATTE_ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::Load(chosen.engine.model));
  if (!flags.dry_run) DrawSeedIfNone(&chosen);
  const Result<MemoryPlan> plan = PlanEngine(chosen.engine, files);
  if (flags.dry_run) return DryRun(plan, flags.json);
  if (!plan) return tl::unexpected(plan.error());
  chosen.plan = *plan;
  if (StartsEngine(chosen)) {
    SayPlan(*plan, chosen, files);
    return ServeRanks(chosen, files);
  }
  std::unique_ptr<FrontLink> front;  // outlives what the front waits for
  LATTE_ASSIGN_OR_RETURN(const std::unique_ptr<RankWorld> ranks, JoinRanks(chosen.engine));
  LATTE_ASSIGN_OR_RETURN(front, JoinFront(ranks.get()));
  if (front == nullptr && ranks && !ranks->leads()) return FollowLeader(*ranks);
  if (front == nullptr) SayPlan(*plan, chosen, files);
  chosen.engine.cache_bytes = plan->cache_bytes();
  if (front != nullptr) return ServeFront(*front, chosen, files, ranks.get());
  return ServeHere(chosen, files, ranks.get());
}

}  // namespace

Command AddServe(const FlagSet& app) {
  auto flags = std::make_shared<ServeFlags>();
  const FlagSet sub = app.AddCommand("serve", "Answer requests of the OpenAI API over HTTP");
  sub.Footer(
      "Example:\n"
      "  latte serve path/to/checkpoint --port 8000 --cache-bytes 16G --cache-dtype fp8\n"
      "Flags of vLLM, SGLang and llama.cpp are understood too: docs/options.md lists them, the\n"
      "variables and the keys of --config. docs/serving.md describes the paths, limits, metrics\n"
      "and security.");
  flags->config.Add(sub);
  sub.Group("Output").AddSwitch("--dry-run", flags->dry_run,
                                "print the memory plan and end, with exit code 2 if it does not "
                                "fit");
  sub.Group("Output").AddSwitch("--json", flags->json,
                                "with --dry-run: the plan as JSON on standard output");
  sub.Group("Output").AddSwitch(
      "--print-config", flags->print_config,
      "print all options as --config reads them, with their sources, and end");
  flags->serve.Add(sub, [](const Field&, std::string_view) { return true; });
  flags->engine.AddAll(sub, {.drafts = true, .ranks = true});
  return {sub, [flags] { return ServeCommand(*flags); }};
}

}  // namespace latte
