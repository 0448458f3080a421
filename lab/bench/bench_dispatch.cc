#include "lab/bench/bench_dispatch.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "lab/bench/harness.h"
#include "lab/bench/random_mla_layer.h"
#include "src/base/json_out.h"
#include "src/base/math.h"
#include "src/layers/mla/path_cost.h"

namespace latte {
namespace {

constexpr int kDispatchRuns = 7;
constexpr int kShortRuns = 101;  // for work of about 100 µs, as long as a pause of the machine
constexpr double kShortSeconds = 0.05;  // total time of the short runs
constexpr int64_t kRunTokens = 512;     // longer prompts are evaluated in chunks of this size
constexpr std::array<int64_t, 5> kContexts = {0, 64, 512, 4096, 32768};
constexpr int64_t kMostNew = 1024;
constexpr int kCountsOfNew = 11;  // 1, 2, 4, …, kMostNew
static_assert(1 << (kCountsOfNew - 1) == kMostNew);
// The points of the curves that MeasureRates measures.
constexpr std::array<int64_t, 5> kExpandKeys = {1, 8, 64, 512, 4096};
constexpr std::array<int64_t, 6> kChunkTokens = {1, 4, 16, 64, 256, 512};
constexpr std::array<int64_t, 4> kScoredTokens = {1, 8, 64, 512};
constexpr double kCellSeconds = 2;  // time of the runs of a cell (at least 3)
constexpr double kHopeless = 4;     // a path that is this many times slower is not measured again
constexpr int64_t kWeightBytes = int64_t{256} << 20;  // weights of all layers of a sample: larger
                                                      // than the caches

Result<std::unique_ptr<RandomMlaLayer>> Sample(const DispatchOptions& options, int64_t max_tokens) {
  RandomMlaLayer::Options out;
  out.dims = DeepSeekDims(options.heads);
  out.indexer = kDeepSeekIndexer;
  out.dtype = options.dtype;
  out.max_tokens = max_tokens;
  const int64_t layer_bytes =
      out.dims.h * (out.dims.n + out.dims.v) * out.dims.c * SizeOf(options.dtype);
  out.copies = std::clamp<int64_t>(kWeightBytes / layer_bytes, 2, 64);
  return RandomMlaLayer::Create(out);
}

// Evaluates a prompt chunk by chunk.
double RunPrompt(RandomMlaLayer& sample, MlaPath path, const PromptShape& prompt,
                 const Exec& exec) {
  double seconds = 0;
  for (int64_t begin = 0; begin < prompt.new_tokens; begin += kRunTokens)
    seconds += sample.Attend(path, std::min(kRunTokens, prompt.new_tokens - begin),
                             prompt.cached_tokens + begin, exec);
  return seconds;
}

// The number of runs for work that takes `seconds`: more for shorter work.
int RunsOf(double seconds) {
  return static_cast<int>(
      std::clamp(kShortSeconds / seconds, 1.0 * kDispatchRuns, 1.0 * kShortRuns));
}

// The median of the seconds that `run` returns.
template <class F>
double MedianOf(const F& run) {
  const int runs = RunsOf(run());
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) seconds.push_back(run());
  return Median(std::move(seconds));
}

double MedianSeconds(RandomMlaLayer& sample, MlaPath path, const PromptShape& prompt,
                     const Exec& exec) {
  return MedianOf([&] { return RunPrompt(sample, path, prompt, exec); });
}

// Times of a prompt and of a part of it, interleaved. The speed of memory changes within a second,
// which would dominate the difference of times measured separately.
struct Parted {
  double whole = 0, rest = 0;
};
Parted MedianRest(RandomMlaLayer& sample, MlaPath path, const PromptShape& whole,
                  const PromptShape& part, const Exec& exec) {
  RunPrompt(sample, path, whole, exec);
  std::vector<double> wholes, rests;
  for (int run = 0; run < kDispatchRuns; ++run) {
    const double of_part = RunPrompt(sample, path, part, exec);
    wholes.push_back(RunPrompt(sample, path, whole, exec));
    rests.push_back(wholes.back() - of_part);
  }
  return {Median(std::move(wholes)), Median(std::move(rests))};
}

// Interleaved times of both paths.
struct Pair {
  double absorbed = 0, latent = 0;
};
Pair MeasurePair(RandomMlaLayer& sample, const PromptShape& prompt, const Exec& exec) {
  double absorbed = RunPrompt(sample, MlaPath::kAbsorbed, prompt, exec);
  double latent = RunPrompt(sample, MlaPath::kLatent, prompt, exec);
  const bool absorbed_runs = absorbed < kHopeless * latent;
  const bool latent_runs = latent < kHopeless * absorbed;
  const double both = (absorbed_runs ? absorbed : 0) + (latent_runs ? latent : 0);
  const auto runs = static_cast<int>(std::clamp(kCellSeconds / both, 3.0, 1.0 * RunsOf(both)));
  std::vector<double> absorbed_seconds, latent_seconds;
  for (int run = 0; run < runs; ++run) {
    if (absorbed_runs)
      absorbed_seconds.push_back(RunPrompt(sample, MlaPath::kAbsorbed, prompt, exec));
    if (latent_runs) latent_seconds.push_back(RunPrompt(sample, MlaPath::kLatent, prompt, exec));
  }
  return {absorbed_runs ? Median(absorbed_seconds) : absorbed,
          latent_runs ? Median(latent_seconds) : latent};
}

// Rates are differences of noisy times. More work never runs at a lower rate, so a value above the
// rate of a later point is noise.
void MakeRise(RateCurve& curve) {
  for (size_t i = curve.points.size(); i-- > 1;)
    curve.points[i - 1].gflops = std::min(curve.points[i - 1].gflops, curve.points[i].gflops);
}

Status CheckRanges(const DispatchOptions& o) {
  return FlagsInRange({{"--heads", o.heads, 1, 128}, {"--threads", o.threads, 1, 1024}});
}

double Gflops(double flops, double seconds) { return flops * 1e-9 / std::max(seconds, 1e-9); }

}  // namespace

// The time of a path minus the measured time of one part is the time of the other part.
Result<MlaRates> MeasureRates(const DispatchOptions& options, const Machine& machine,
                              const JobProgress& progress) {
  LATTE_RETURN_IF_ERROR(CheckRanges(options));
  // The ceilings, and every point; one token alone has no point of expanded attention.
  MeasuredSteps steps(progress, 1 + std::ssize(kExpandKeys) + 2 * std::ssize(kChunkTokens) - 1 +
                                    std::ssize(kScoredTokens));
  constexpr int64_t kContext = 4096;
  LATTE_ASSIGN_OR_RETURN(const std::unique_ptr<RandomMlaLayer> sample,
                         Sample(options, kContext + kRunTokens));
  const BenchThreads exec(options.threads, machine);
  Ceilings ceilings;
  steps.Begin("arithmetic and memory");
  for (int run = 0; run < kDispatchRuns; ++run) ceilings.Sample(exec, /*dram=*/true);

  // The FLOPs of one part: the other parts have no price.
  const auto h = static_cast<double>(options.heads);
  const MlaDims& dims = sample->dims();
  const double weight = 2 * h * static_cast<double>(dims.c * (dims.n + dims.v));
  const double pair_latent = 2 * h * static_cast<double>(2 * dims.c + dims.r);
  const double pair_expanded = 2 * h * static_cast<double>(dims.n + dims.r + dims.v);
  const auto pairs = [](double q, double k) { return q * k + q * (q + 1) / 2; };

  MlaRates out;
  out.memory_gbps = ceilings.Median(Ceiling::kDram);
  for (const int64_t keys : kExpandKeys) {
    steps.Begin(fmt::format("expansion of {} keys", keys));
    const double s = MedianSeconds(*sample, MlaPath::kLatent, {1, keys - 1}, exec);
    out.expand.points.push_back(
        {static_cast<double>(keys), Gflops(weight * static_cast<double>(keys), s)});
  }
  for (const int64_t q : kChunkTokens) {
    steps.Begin(fmt::format("absorbed attention of {} tokens", q));
    const auto tokens = static_cast<double>(q);
    const double alone = MedianSeconds(*sample, MlaPath::kAbsorbed, {q, 0}, exec);
    const PromptShape deep{q, kContext - q};
    const Parted absorbed = MedianRest(*sample, MlaPath::kAbsorbed, deep, {q, 0}, exec);
    const auto past = static_cast<double>(kContext - q);
    out.decode.points.push_back(
        {h * tokens, Gflops(pair_latent * (pairs(tokens, past) - pairs(tokens, 0)),
                            std::max(absorbed.rest, absorbed.whole / 50))});
    const double decode_alone =
        pair_latent * pairs(tokens, 0) / (out.decode.points.back().gflops * 1e9);
    out.absorb.points.push_back(
        {tokens, Gflops(weight * tokens, std::max(alone - decode_alone, alone / 4))});
    if (q == 1) continue;
    steps.Begin(fmt::format("expanded attention of {} tokens", q));
    const Parted latent = MedianRest(*sample, MlaPath::kLatent, deep, {1, kContext - 1}, exec);
    out.mha.points.push_back({tokens, Gflops(pair_expanded * pairs(tokens, past),
                                             std::max(latent.rest, latent.whole / 50))});
  }
  const double pair_scored =
      2 * static_cast<double>(kDeepSeekIndexer.heads * kDeepSeekIndexer.width);
  for (const int64_t q : kScoredTokens) {
    steps.Begin(fmt::format("indexer of {} tokens", q));
    const double s = MedianOf([&] { return sample->ChooseKeys(q, kContext - q, exec); });
    const auto tokens = static_cast<double>(q);
    out.indexer.points.push_back(
        {tokens, Gflops(pair_scored * pairs(tokens, static_cast<double>(kContext - q)), s)});
  }
  for (RateCurve* curve : {&out.expand, &out.mha, &out.absorb, &out.decode, &out.indexer})
    MakeRise(*curve);
  steps.End();
  return out;
}

Result<JsonOut> BenchDispatch(const DispatchOptions& options, const MlaRates& rates,
                              const Machine& machine, const JobProgress& progress) {
  LATTE_RETURN_IF_ERROR(CheckRanges(options));
  MeasuredSteps steps(progress, std::ssize(kContexts) * kCountsOfNew);
  LATTE_ASSIGN_OR_RETURN(const std::unique_ptr<RandomMlaLayer> sample,
                         Sample(options, kContexts.back() + kMostNew));
  const BenchThreads exec(options.threads, machine);
  JsonOut grid = JsonOut::array();
  double worst = 1;
  for (const int64_t cached : kContexts)
    for (int64_t q = 1; q <= kMostNew; q *= 2) {
      const PromptShape prompt{q, cached};
      steps.Begin(fmt::format("{} new after {} cached", q, cached));
      const Pair seconds = MeasurePair(*sample, prompt, exec);
      const PathChoice choice = ChoosePath(sample->dims(), prompt, rates);
      const bool absorbed = choice.path == MlaPath::kAbsorbed;
      const double chosen = absorbed ? seconds.absorbed : seconds.latent;
      const double ratio = chosen / std::min(seconds.absorbed, seconds.latent);
      worst = std::max(worst, ratio);
      grid.push_back({{"new_tokens", q},
                      {"cached_tokens", cached},
                      {"absorbed_us", seconds.absorbed * 1e6},
                      {"latent_us", seconds.latent * 1e6},
                      {"chosen", Name(choice.path)},
                      {"ratio", ratio}});
      if (cached < kDeepSeekIndexer.topk) continue;  // its first tokens choose no keys
      const double sparse = RunPrompt(*sample, MlaPath::kSparse, prompt, exec);
      grid.back()["sparse_us"] =
          1e6 * std::min(sparse, RunPrompt(*sample, MlaPath::kSparse, prompt, exec));
    }
  steps.End();
  return JsonOut{{"bench", "dispatch"},   {"heads", options.heads},  {"threads", options.threads},
                 {"runs", kDispatchRuns}, {"most_runs", kShortRuns}, {"worst_ratio", worst},
                 {"grid", grid}};
}

}  // namespace latte
