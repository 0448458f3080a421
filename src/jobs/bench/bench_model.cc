#include "src/jobs/bench/bench_model.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "src/base/json_out.h"
#include "src/base/math.h"
#include "src/base/random.h"
#include "src/base/range.h"
#include "src/engine/settings.h"
#include "src/engine/step/page_bytes.h"
#include "src/engine/step/step_settings.h"
#include "src/jobs/bench/bench_timer.h"
#include "src/jobs/bench/fill_cache.h"
#include "src/jobs/random_draws.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/params/moe.h"
#include "src/layers/mla/path_cost.h"

namespace latte {
namespace {

constexpr int64_t kModelPageTokens = 64;
constexpr int64_t kChunk = 512;
constexpr int kPrompts = 3;
constexpr double kSampleSeconds = 0.25;

// The key of an op in "parts". Programs read the matrix products by their former names; "linear"
// contains the products of experts.
std::string PartName(std::string_view op) {
  if (op == GemmOp::kName || op == ExpertGemmOp::kName) return "linear";
  if (op == GemmTOp::kName) return "linear_t";
  return std::string(op);
}

// Milliseconds of each op per `runs`.
JsonOut PartsJson(const OpTimes& times, double runs) {
  JsonOut out = JsonOut::object();
  std::map<std::string, double> parts;
  for (const auto& [op, use] : times) parts[PartName(op)] += use.seconds * 1e3 / runs;
  for (const auto& [part, ms] : parts) out[part] = ms;
  return out;
}

// Every op with its bound, per `runs`.
JsonOut OpsJson(const OpTimes& times, double runs, const Ceilings& ceilings) {
  const double flops_per_ms = ceilings.Median(Ceiling::kF32) * 1e6;
  const double bytes_per_ms = ceilings.Median(Ceiling::kDram) * 1e6;
  JsonOut out = JsonOut::object();
  for (const auto& [op, use] : times) {
    const double ms = use.seconds * 1e3 / runs;
    const double flops = static_cast<double>(use.work.flops) / runs;
    const double bytes = static_cast<double>(use.work.bytes) / runs;
    const double bound = std::max(flops / flops_per_ms, bytes / bytes_per_ms);
    out[std::string(op)] = {{"ms", ms},          {"flops", flops},
                            {"bytes", bytes},    {"gflops", flops * 1e-6 / ms},
                            {"bound_ms", bound}, {"share", bound / ms}};
  }
  return out;
}

// Times of a phase, interleaved with samples of the ceilings.
struct Phase {
  std::vector<double> seconds;
  OpTimes times;
  Ceilings ceilings;
  double sampled = 0;  // measured seconds since the last sample of the ceilings

  // `host`: samples the ceilings; null: there are none.
  void Add(double time, const Exec* host) {
    seconds.push_back(time);
    sampled += time;
    if (host == nullptr || (seconds.size() > 1 && sampled < kSampleSeconds)) return;
    ceilings.Sample(*host, /*dram=*/true);
    sampled = 0;
  }
  // `tokens` is the number of tokens of one time.
  JsonOut Json(int64_t tokens) const {
    const auto runs = static_cast<double>(seconds.size());
    const double median = Median(seconds);
    const OpWork work = TotalWork(times);
    const double bytes = static_cast<double>(work.bytes) / runs;
    JsonOut out{
        {"tokens_per_s", static_cast<double>(tokens) / median},
        {"ms", median * 1e3},
        {"us", median * 1e6},
        {"flops", static_cast<double>(work.flops) / runs},
        {"bytes", bytes},
        {"unique_bytes", bytes},
        {"memory_fraction", Fraction(bytes * 1e-9 / median, ceilings.Median(Ceiling::kDram))},
        {"parts", PartsJson(times, runs)},
        {"ops", OpsJson(times, runs, ceilings)}};
    ceilings.AddTo(out);
    return out;
  }
};

// The settings of the rank that holds `share`.
Result<Settings> SettingsOf(const ModelConfig& config, const BenchModelOptions& options,
                            const Machine& machine, const RankShare& share) {
  EngineOptions engine = options.engine;
  engine.dtype = Name(options.dtype);
  engine.cache_dtype = Name(options.cache_dtype);
  engine.attention = options.attention;
  engine.int8_activations = options.int8_activations;
  engine.threads = options.threads;
  engine.page_tokens = kModelPageTokens;
  engine.max_sequences = 1;
  engine.max_batch_tokens = std::max(kChunk, options.batch + 1);
  engine.prefill_workspace_tokens = RunnerOptions().prefill_workspace_tokens;
  engine.draft_tokens = "0";
  const int64_t room =
      std::max(options.depth + std::max(options.prompt, options.gen), kModelPageTokens);
  LATTE_ASSIGN_OR_RETURN(Settings out, ResolveOptionsForOne(engine, config, machine, room, share));
  const PageOwners owners = out.owners();
  out.pages = owners.count * options.batch * owners.PagesOf(0, CeilDiv(room, kModelPageTokens));
  out.options.max_sequences = options.batch;
  return out;
}

// Memory of each rank. Only the first group computes the sequences.
Result<JsonOut> RanksJson(const Model& model, const BenchModelOptions& options,
                          const Machine& machine, const RankWorld* ranks) {
  const std::vector<int64_t> weights =
      ranks == nullptr ? std::vector<int64_t>{model.weight_bytes()} : ranks->weight_bytes();
  const int64_t per_group = std::ssize(weights) / (ranks == nullptr ? 1 : ranks->groups());
  JsonOut out = JsonOut::array();
  for (int64_t rank = 0; rank < std::ssize(weights); ++rank) {
    LATTE_ASSIGN_OR_RETURN(const Settings settings, SettingsOf(model.config(), options, machine,
                                                               {rank % per_group, per_group}));
    const int64_t pages = rank < per_group ? settings.pages_of_rank() : 1;
    out.push_back({{"weight_bytes", weights[static_cast<size_t>(rank)]},
                   {"cache_bytes", pages * settings.cache_spec.bytes_per_page()}});
  }
  return out;
}

// Sequences of one depth in a model.
class RunnerHarness {
 public:
  RunnerHarness(const Model& model, const BenchModelOptions& options, const Settings& settings,
                LatentCache cache, Followers* followers, const Exec& exec)
      : model_(model),
        options_(options),
        mode_(settings.attention),
        owners_(settings.owners()),
        cache_(std::move(cache)),
        followers_(followers),
        workspace_(model.device()),
        tokens_(RandomTokens(
            options.depth + options.prompt + options.gen * options.batch + kModelPageTokens,
            model.config().vocab)),
        step_(CapacityOf(settings, followers)),
        runner_({.model = &model,
                 .cache = &cache_,
                 .workspace = &workspace_,
                 .exec = exec,
                 .announcer = followers},
                OptionsOfRunner(settings), step_.capacity()) {
    const int64_t of_rank = cache_.pages() / options.batch;  // of a sequence
    const int64_t each = std::min(owners_.MostPages(of_rank),
                                  CeilDiv(settings.options.max_tokens, kModelPageTokens));
    for (int64_t b = 0; b < options.batch; ++b) {
      std::vector<int32_t>& own = pages_.emplace_back();
      for (int64_t i = 0; i < each; ++i) {
        const int64_t owner = owners_.OwnerAt(i);
        own.push_back(owners_.IdOf(owner, b * of_rank + owners_.PagesOf(owner, i)));
      }
    }
  }

  // Gives every page rows: pages of the model's rows, with index keys that differ. `host` computes
  // the keys. Errors: kExhausted.
  [[nodiscard]] Status FillDepth(const Exec& host) {
    if (options_.depth == 0) return {};
    const auto chunk =
        SequenceChunk::Of(Tokens(0, kModelPageTokens), 0, PromptPath(mode_), pages_[0]);
    Run({&chunk, 1}, {});
    if (!cache_.device().is_host()) return FillByPages(host);
    CopyFirstPage(cache_);
    if (indexed()) FillIndexKeys(cache_, model_.config().indexer.width, host);
    if (followers_ != nullptr) FillFollowers();
    return {};
  }

  // Runs a prompt of the first sequence after its cached tokens.
  double Prompt(const MlaRates& rates) {
    const MlaPath path = PathOfPrompt(rates);
    return SecondsOf([&] {
      for (int64_t begin = 0; begin < options_.prompt; begin += kChunk) {
        const int64_t count = std::min(kChunk, options_.prompt - begin);
        const auto chunk =
            SequenceChunk::Of(Tokens(begin, count), options_.depth + begin, path, pages_[0]);
        const bool last = begin + count == options_.prompt;
        Run({&chunk, 1}, last ? std::vector<int64_t>{count - 1} : std::vector<int64_t>());
      }
    });
  }

  // Runs step `g` of all sequences.
  double Step(int64_t g) {
    std::vector<SequenceChunk> chunks;
    for (int64_t b = 0; b < options_.batch; ++b)  // different tokens choose different experts
      chunks.push_back(SequenceChunk::Of(Tokens(b * options_.gen + g, 1), options_.depth + g,
                                         DecodePath(mode_), pages_[static_cast<size_t>(b)]));
    std::vector<int64_t> rows(chunks.size());
    std::iota(rows.begin(), rows.end(), 0);
    return SecondsOf([&] { Run(chunks, rows); });
  }

  void Measure(OpTimes* times) { runner_.Measure(times); }

 private:
  void Run(std::span<const SequenceChunk> chunks, std::span<const int64_t> logits_of) {
    step_.Clear();
    for (const SequenceChunk& chunk : chunks) step_.AddChunk(chunk, runner_.options().sparse_from);
    step_.AddLogits(logits_of);
    runner_.Run(step_);
    for (int64_t i = 0; i < step_.logit_blocks(); ++i) runner_.NextLogits();
  }

  std::span<const int32_t> Tokens(int64_t begin, int64_t count) const {
    return std::span(tokens_).subspan(static_cast<size_t>(begin), static_cast<size_t>(count));
  }

  MlaPath PathOfPrompt(const MlaRates& rates) const {
    if (mode_ != AttentionMode::kAuto) return PromptPath(mode_);
    const ModelConfig& config = model_.config();
    return ChoosePath(config.mla, {options_.prompt, options_.depth}, rates, config.indexer).path;
  }

  bool indexed() const { return cache_.spec().Has(StreamId::kIndexer); }

  // Fills a cache that the host cannot write: each page is made in host memory, and a step loads
  // it.
  Status FillByPages(const Exec& host) {
    LATTE_ASSIGN_OR_RETURN(LatentCache made, LatentCache::Create(cache_.spec(), 1));
    Workspace unused;
    LoadPage(made, 0, runner_.SavePage(0), unused, host);
    for (int32_t page = 0; page < static_cast<int32_t>(cache_.pages()); ++page) {
      if (indexed())
        FillIndexKeys(made, model_.config().indexer.width, host, static_cast<uint64_t>(page) + 2);
      const std::vector<std::byte> bytes = SavePage(made, 0, unused, host);
      step_.Clear();
      step_.to_page = page;
      step_.page = bytes;
      runner_.Run(step_);
    }
    return {};
  }

  // All ranks read memory that was written, and choose among different index keys.
  void FillFollowers() {
    const auto pages = static_cast<int32_t>(cache_.pages() * owners_.count);
    for (int32_t page = 0; page < pages; ++page) FillFollowers(page);
  }
  void FillFollowers(int32_t page) {
    step_.Clear();
    // Page 0 has rows on its owner alone, if there are several.
    const bool sends = indexed() || owners_.count > 1;
    const std::vector<std::byte> bytes =
        sends ? runner_.SavePage(indexed() ? page : 0) : std::vector<std::byte>();
    step_.to_page = page;
    step_.page = bytes;
    if (!sends) step_.copies.Add({0, page});
    runner_.Run(step_);
  }

  const Model& model_;
  const BenchModelOptions& options_;
  AttentionMode mode_;
  PageOwners owners_;
  LatentCache cache_;
  Followers* followers_;  // null: this rank is alone
  Workspace workspace_;
  std::vector<int32_t> tokens_;
  std::vector<std::vector<int32_t>> pages_;
  latte::Step step_;
  Runner runner_;
};

// Runs both phases and adds what they took to `out`. `host`: as in Phase::Add; null: ops are not
// measured either.
void MeasurePhases(RunnerHarness& harness, const BenchModelOptions& options, const MlaRates& rates,
                   const Exec* host, MeasuredSteps& steps, JsonOut& out) {
  const auto measure = [&](Phase& phase) {
    if (host != nullptr) harness.Measure(&phase.times);
  };
  if (options.prompt > 0) {
    steps.WarmUp("prefill, warming up");
    harness.Prompt(rates);
    Phase phase;
    measure(phase);
    for (int run = 0; run < kPrompts; ++run) {
      steps.Begin("prefill");
      phase.Add(harness.Prompt(rates), host);
    }
    out["prefill"] = phase.Json(options.prompt);
  }
  if (options.gen > 0) {
    steps.WarmUp("decode, warming up");
    harness.Measure(nullptr);
    harness.Step(0);
    Phase phase;
    measure(phase);
    for (int64_t g = 0; g < options.gen; ++g) {
      steps.Begin("decode");
      phase.Add(harness.Step(g), host);
    }
    out["decode"] = phase.Json(options.batch);
  }
}

}  // namespace

Status BenchModelOptions::Validate() const {
  LATTE_RETURN_IF_ERROR(FlagInRange("--prompt", prompt, 0, 1 << 20));
  LATTE_RETURN_IF_ERROR(FlagInRange("--gen", gen, 0, 1 << 16));
  LATTE_RETURN_IF_ERROR(FlagInRange("--depth", depth, 0, 1 << 20));
  LATTE_RETURN_IF_ERROR(FlagInRange("--batch", batch, 1, 1024));
  return FlagInRange("--threads", threads, 1, 1024);
}

Result<JsonOut> BenchModel(const Model& model, const BenchModelOptions& options,
                           const ComputeDevice& device, const MlaRates& rates, RankWorld* ranks,
                           const JobProgress& progress) {
  const Machine& machine = device.machine();
  LATTE_RETURN_IF_ERROR(options.Validate());
  MeasuredSteps steps(
      progress, (options.prompt > 0 ? 1 + kPrompts : 0) + (options.gen > 0 ? 1 + options.gen : 0));
  Followers* const followers = ranks == nullptr ? nullptr : &ranks->followers();
  LATTE_ASSIGN_OR_RETURN(const Settings settings,
                         SettingsOf(model.config(), options, machine,
                                    ranks == nullptr ? RankShare() : ranks->share()));
  LATTE_ASSIGN_OR_RETURN(JsonOut memory, RanksJson(model, options, machine, ranks));
  if (followers != nullptr)
    LATTE_RETURN_IF_ERROR(CatchLostRanks([&] { followers->Start(settings); }));
  LATTE_ASSIGN_OR_RETURN(
      LatentCache cache,
      LatentCache::Create(settings.cache_spec, settings.pages_of_rank(), model.device()));
  ThreadPool threads(options.threads);
  const Exec exec{&threads, &machine}, host{&threads, &device.host()};
  JsonOut out{{"bench", "model"},
              {"architecture", model.config().architecture},
              {"layers", model.config().layers},
              {"prompt", options.prompt},
              {"gen", options.gen},
              {"depth", options.depth},
              {"batch", options.batch},
              {"threads", options.threads},
              {"ranks", std::move(memory)}};
  Status filled;
  LATTE_RETURN_IF_ERROR(CatchLostRanks([&] {
    RunnerHarness harness(model, options, settings, std::move(cache), followers, exec);
    filled = harness.FillDepth(host);
    if (filled)
      MeasurePhases(harness, options, rates, device.is_gpu() ? nullptr : &host, steps, out);
  }));
  LATTE_RETURN_IF_ERROR(filled);
  steps.End();
  return out;
}

}  // namespace latte
