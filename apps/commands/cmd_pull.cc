// latte pull: downloads a model of the Hugging Face Hub into its cache.
#include <atomic>
#include <chrono>
#include <csignal>

#include <fmt/format.h>
#include <unistd.h>

#include "apps/flags/command.h"
#include "apps/terminal/interrupts.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/screen.h"
#include "src/base/bytes_text.h"
#include "src/base/json_out.h"
#include "src/base/timer.h"
#include "src/checkpoint/hub_cache.h"
#include "src/checkpoint/model_path.h"
#include "src/hub/net/http.h"
#include "src/hub/pull.h"

namespace latte {
namespace {

struct PullFlags {
  std::string model;
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  int connections = 4;
  int retries = 5;
  double timeout = 30;
  bool dry_run = false;
  bool any_model = false;
  bool verify = false;
  bool quiet = false;
  bool json = false;
};

Result<PullRequest> PullRequestOf(const PullFlags& flags) {
  LATTE_ASSIGN_OR_RETURN(const HubName name, ParseHubName(flags.model));
  PullRequest out;
  out.repo = name.repo;
  if (!name.revision.empty()) out.revision = name.revision;
  out.selection = {flags.include, flags.exclude, name.quant};
  out.dry_run = flags.dry_run;
  out.any_model = flags.any_model;
  out.verify = flags.verify;
  out.download.connections = flags.connections;
  out.download.retry.retries = flags.retries;
  return out;
}

// A plan's files, sizes and what is missing.
std::string FilesText(const PullPlan& plan) {
  std::string out;
  for (const PullPlan::File& file : plan.files)
    out += fmt::format("{:>10}  {:<10}  {}\n", BytesText(file.file.size),
                       file.missing == 0                ? "there"
                       : file.missing == file.file.size ? ""
                                                        : BytesText(file.missing),
                       file.file.path);
  return out + fmt::format("{} files, {}, to download: {}; commit {}\n", plan.files.size(),
                           BytesText(plan.bytes), BytesText(plan.missing), plan.commit);
}

JsonOut ReportJson(const PullRequest& request, const PullPlan& plan, double seconds) {
  JsonOut out = {{"repo", request.repo},  {"revision", request.revision},
                 {"commit", plan.commit}, {"path", plan.path},
                 {"bytes", plan.bytes},   {"downloaded_bytes", plan.missing},
                 {"seconds", seconds},    {"dry_run", request.dry_run}};
  out["files"] = JsonOut::array();
  for (const PullPlan::File& file : plan.files)
    out["files"].push_back(
        {{"path", file.file.path}, {"bytes", file.file.size}, {"missing_bytes", file.missing}});
  return out;
}

// A program that reads it needs every byte of a path.
Status PrintPath(const std::string& path) {
  return IsTerminal(STDOUT_FILENO) ? Print(path + "\n") : PrintBytes(path + "\n");
}

// With HF_HUB_OFFLINE the cache has to do.
Status Offline(const PullFlags& flags, const PullRequest& request) {
  const Result<std::string> cached = ResolveModelPath(flags.model);
  if (!cached)
    return Fail(Code::kUnavailable,
                fmt::format("HF_HUB_OFFLINE is set, so nothing is downloaded, and the cache has no "
                            "{}; unset it",
                            flags.model));
  Tell("latte: note: HF_HUB_OFFLINE is set: the cache is not compared with the Hub\n");
  if (!flags.json) return PrintPath(*cached);
  const JsonOut report = {{"repo", request.repo},
                          {"revision", request.revision},
                          {"path", *cached},
                          {"downloaded_bytes", 0},
                          {"dry_run", request.dry_run}};
  return Print(Dump(report) + "\n");
}

Status PullCommand(const PullFlags& flags) {
  LATTE_ASSIGN_OR_RETURN(PullRequest request, PullRequestOf(flags));
  LATTE_ASSIGN_OR_RETURN(const HubEnvironment hub, ReadHubEnvironment());
  if (flags.verify && (hub.offline || flags.dry_run))
    return InvalidArgument(fmt::format(
        "--verify compares the cache with the Hub's listing, which {} does not; leave one of them",
        hub.offline ? "HF_HUB_OFFLINE" : "--dry-run"));
  if (hub.offline) return Offline(flags, request);
  std::atomic<bool> stop = false;
  const HttpFactory http = HttpClients({flags.timeout, "latte/" LATTE_VERSION, hub.endpoint}, stop);
  const bool quiet = flags.quiet || flags.json;
  const ProgressStyle style = quiet ? ProgressStyle::kNone : ProgressStyle::kUsual;
  Progress checked("checked", "", style);
  Progress shown("downloaded", "", style);
  request.download.note = [&](const std::string& line) {
    checked.Clear();
    shown.Note(line);
  };
  const auto start = std::chrono::steady_clock::now();
  // Until the plan is made, nothing has to be kept and Ctrl-C ends the program.
  Interrupts interrupts;
  PullEvents events;
  events.planned = [&](const PullPlan& plan) {
    checked.End();
    if (request.dry_run) return;
    if (Result<Interrupts> caught = Interrupts::Catch({SIGINT, SIGTERM, SIGHUP}); caught)
      interrupts = *std::move(caught);
    if (!flags.quiet && !flags.json)
      Tell(fmt::format("{}@{}: {} files, {}, to download: {}\n", request.repo,
                       plan.commit.substr(0, 12), plan.files.size(), BytesText(plan.bytes),
                       BytesText(plan.missing)));
  };
  events.checked = [&](int64_t done, int64_t total) { checked.Show(done, total); };
  events.progress = [&](int64_t done, int64_t total) { shown.Show(done, total); };
  events.interrupted = [&] { return interrupts.TakeFirst(); };
  const Result<PullPlan> plan = Pull(hub, request, http, stop, events);
  shown.End();
  if (!plan) return tl::unexpected(plan.error());
  const double seconds = SecondsSince(start);
  if (flags.json) return Print(Dump(ReportJson(request, *plan, seconds)) + "\n");
  if (request.dry_run) return Print(FilesText(*plan));
  LATTE_RETURN_IF_ERROR(PrintPath(plan->path));
  if (!flags.quiet) Tell(fmt::format("next: latte chat {}\n", flags.model));
  return {};
}

}  // namespace

Command AddPull(const FlagSet& app) {
  auto flags = std::make_shared<PullFlags>();
  const FlagSet sub =
      app.AddCommand("pull", "Download a model of the Hugging Face Hub into its cache");
  sub.Add("MODEL", flags->model,
          "ORG/NAME, ORG/NAME:QUANT (of its GGUF files, as Q4_K_M); with @REVISION at the end: a "
          "branch, a tag or a commit")
      .Required();
  sub.Add("--include", flags->include,
          "only files that match; a shell pattern, repeatable (default: what Latte reads)");
  sub.Add("--exclude", flags->exclude, "no files that match; a shell pattern, repeatable");
  sub.AddSwitch("--dry-run", flags->dry_run, "list files and sizes, download nothing");
  sub.AddSwitch(
      "--any-model", flags->any_model,
      "also a model that Latte does not run; otherwise its config.json ends the download");
  sub.AddSwitch("--verify", flags->verify,
                "compare all files of the cache with their checksums; otherwise large ones once");
  sub.Add("--connections", flags->connections,
          "connections, each with a range of a file (default: 4)")
      .Range(1, 32);
  sub.Add("--retries", flags->retries,
          "tries in a row that bring nothing before a download ends (default: 5)")
      .Range(0, 1000);
  sub.Add("--timeout", flags->timeout, "seconds of silence before a try ends (default: 30)")
      .Range(1.0, 3600.0);
  sub.Group("Output").AddSwitch("--quiet", flags->quiet, "no progress");
  sub.Group("Output").AddSwitch("--json", flags->json,
                                "one JSON object instead of text and progress");
  sub.Footer(
      "Environment, as of huggingface_hub: HF_HUB_CACHE and HF_HOME (where the cache is), "
      "HF_TOKEN\n"
      "or the token of `hf auth login`, HF_ENDPOINT (a mirror), HF_HUB_OFFLINE; https_proxy and\n"
      "no_proxy; SSL_CERT_FILE.");
  return {sub, [flags] { return PullCommand(*flags); }};
}

}  // namespace latte
