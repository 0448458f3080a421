// soak MODEL REQUESTS SECONDS: runs one engine under random traffic until it has served REQUESTS
// requests and SECONDS seconds have passed. Requests are cancelled, preempted, forked, end in
// errors, and find prefixes in memory and on disk. MODEL is `fake`, whose answers are compared with
// their definition, or a checkpoint folder. Prints one JSON object. Fails if an answer is wrong or
// missing, or if a resource is left: pages, open files, or memory that grows after the first
// quarter.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/ranges.h>
#include <unistd.h>

#include "src/models/registry.h"
#include "tests/support/sanitizers.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/traffic.h"

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;
using testing_support::EngineRun;
using testing_support::FakeModel;
using testing_support::FaultOfRareTokens;
using testing_support::ScratchDir;
using testing_support::Traffic;
using testing_support::TrafficOptions;

// The allowed growth of resident memory after the first quarter: heaps are fragmented.
constexpr int64_t kMostGrowth = int64_t{2} << 20;
constexpr int64_t kRequestsPerRound = 250;  // after each round, nothing may be left

// Sanitizers keep freed memory.
constexpr bool kMemoryIsOurs = !testing_support::kUnderAsan && !testing_support::kUnderTsan;

struct Goal {
  std::string model;
  int64_t requests = 0;
  double seconds = 0;
};

struct Findings {
  int64_t requests = 0;
  double seconds = 0;
  EngineStats stats;
  int64_t cache_bytes = 0;             // size of the created cache
  std::array<int64_t, 4> memory = {};  // resident memory in bytes after each quarter
  int64_t files_before = 0;            // open files before the engine was created and after it was
                                       // destroyed
  int64_t files_after = 0;
  std::string problem;
};

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  file >> pages >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

int64_t OpenFiles() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return std::distance(begin(files), end(files));
}

// A cache with too few pages, and a cache folder with too few bytes.
EngineOptions Options(const Model& model, const TrafficOptions& traffic, const ScratchDir& dir) {
  EngineOptions o;
  o.page_tokens = 16;
  o.max_tokens = traffic.max_tokens;
  o.max_sequences = 8;
  o.max_batch_tokens = 96;
  o.threads = 2;
  o.deterministic = "strict";
  o.cache_dir = dir.File("prefixes");
  CacheSpec spec = CacheSpecFor(model.config(), AttentionMode::kAuto,
                                CacheDType::Plain(DType::kBF16), o.page_tokens);
  if (model.drafts()) {
    o.draft_tokens = "auto";
    spec.layers += model.draft_layers();
  }
  o.cache_bytes = 24 * spec.bytes_per_page();
  o.cache_dir_bytes = 400 * (spec.bytes_per_page() + 1024);
  return o;
}

TrafficOptions TrafficOf(const Goal& goal, const Model& model) {
  TrafficOptions traffic;
  traffic.requests = kRequestsPerRound;
  traffic.fault = FaultOfRareTokens;
  traffic.failing = 3;
  if (goal.model == "fake") return traffic;
  traffic.compare = false;
  traffic.failing = 0;
  traffic.vocab = static_cast<int32_t>(model.config().vocab);
  return traffic;
}

// Runs rounds of traffic until the goal is reached or a check fails.
void RunRounds(const Goal& goal, EngineRun& run, TrafficOptions traffic, Findings& out) {
  const Clock::time_point start = Clock::now();
  double progress = 0;
  size_t quarter = 0;
  while (progress < 1 && out.problem.empty()) {
    ++traffic.seed;
    out.problem = Traffic(run, traffic).Run();
    out.requests += traffic.requests;
    out.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    progress = static_cast<double>(out.requests) / static_cast<double>(goal.requests);
    if (goal.seconds > 0) progress = std::min(progress, out.seconds / goal.seconds);
    while (quarter < 4 && progress >= 0.25 * static_cast<double>(quarter + 1))
      out.memory[quarter++] = ResidentBytes();
  }
}

std::string ProblemOf(const Findings& f) {
  if (!f.problem.empty()) return f.problem;
  if (f.stats.pages_total * f.stats.page_bytes != f.cache_bytes)
    return fmt::format("{} pages of {} bytes in a cache of {}", f.stats.pages_total,
                       f.stats.page_bytes, f.cache_bytes);
  if (f.files_after != f.files_before)
    return fmt::format("{} files are open, {} were", f.files_after, f.files_before);
  if (kMemoryIsOurs && f.memory[3] > f.memory[0] + kMostGrowth)
    return fmt::format("{} bytes are resident, {} were; expected at most {} more", f.memory[3],
                       f.memory[0], kMostGrowth);
  return "";
}

Result<Findings> Soak(const Goal& goal) {
  Findings out;
  std::unique_ptr<Model> model;
  if (goal.model == "fake") {
    auto fake = std::make_unique<FakeModel>();
    fake->fault = FaultOfRareTokens;
    model = std::move(fake);
  } else {
    LATTE_ASSIGN_OR_RETURN(model, LoadModel(goal.model, {.mtp = true}));
  }
  const ScratchDir dir;
  const TrafficOptions traffic = TrafficOf(goal, *model);
  out.files_before = OpenFiles();
  {
    LATTE_ASSIGN_OR_RETURN(const std::unique_ptr<EngineRun> run,
                           EngineRun::Create(*model, Options(*model, traffic, dir)));
    out.cache_bytes = run->core().settings().options.cache_bytes;
    RunRounds(goal, *run, traffic, out);
    out.stats = run->core().Stats();
  }
  out.files_after = OpenFiles();
  out.problem = ProblemOf(out);
  return out;
}

void Print(const Goal& goal, const Findings& f) {
  fmt::print(R"({{"model": "{}", "requests": {}, "answers": {}, "cancelled": {}, "failed": {}, )"
             R"("preemptions": {}, "prompt_tokens": {}, "cached_tokens": {}, "disk_tokens": {}, )"
             R"("generated_tokens": {}, "pages_leaked": {}, "resident_bytes": [{}], )"
             R"("open_files": [{}, {}], "seconds": {:.1f}, "ok": {}}})"
             "\n",
             goal.model, f.requests, f.stats.requests_finished, f.stats.requests_cancelled,
             f.stats.requests_failed, f.stats.preemptions, f.stats.prompt_tokens,
             f.stats.cached_tokens, f.stats.disk_tokens, f.stats.generated_tokens,
             f.stats.pages_used, fmt::join(f.memory, ", "), f.files_before, f.files_after,
             f.seconds, f.problem.empty());
}

int Main(const Goal& goal) {
  const Result<Findings> findings = Soak(goal);
  if (!findings) {
    fmt::print(stderr, "soak: {}\n", ToString(findings.error()));
    return 1;
  }
  Print(goal, *findings);
  if (findings->problem.empty()) return 0;
  fmt::print(stderr, "soak: {}\n", findings->problem);
  return 1;
}

}  // namespace
}  // namespace latte

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: soak fake|MODEL_FOLDER REQUESTS SECONDS\n");
    return 2;
  }
  return latte::Main({argv[1], std::max(1L, std::atol(argv[2])), std::atof(argv[3])});
}
