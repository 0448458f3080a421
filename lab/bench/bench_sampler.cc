#include "lab/bench/bench_sampler.h"

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "lab/bench/harness.h"
#include "src/base/json_out.h"
#include "src/base/random.h"
#include "src/base/thread_pool.h"
#include "src/engine/sampling/sampler.h"
#include "src/jobs/random_draws.h"
#include "src/kernels/op.h"

namespace latte {
namespace {

constexpr int kSamplerCalls = 25;
constexpr int64_t kHistory = 1000;  // tokens that penalties consider

// Ranks may repeat, which is simple and keeps the shape of the distribution.
std::vector<float> Peaked(int64_t size, int64_t vocab, uint64_t seed) {
  Random random(seed);
  std::vector<float> logits(static_cast<size_t>(size));
  for (float& z : logits) {
    const double rank = 1 + static_cast<double>(random.Below(static_cast<uint64_t>(vocab)));
    z = static_cast<float>(20 - 2 * std::log(rank));
  }
  return logits;
}

std::vector<float> NormalLogits(int64_t size, double deviation, uint64_t seed) {
  Random random(seed);
  std::vector<float> logits(static_cast<size_t>(size));
  for (float& z : logits) z = static_cast<float>(deviation * DrawNormal(random));
  return logits;
}

std::vector<float> Flat(int64_t size, int64_t, uint64_t seed) {
  return NormalLogits(size, 3, seed);
}

std::vector<float> Even(int64_t size, int64_t, uint64_t seed) {
  return NormalLogits(size, 0.1, seed);
}

struct Case {
  const char* name;
  SamplingParams params;
  bool history = false;
  int logprobs = -1;
};

std::vector<Case> Cases() {
  return {{"greedy", {.temperature = 0}},
          {"temperature", {.temperature = 0.8}},
          {"top_p", {.temperature = 0.8, .top_p = 0.95}},
          {"top_k_top_p", {.temperature = 0.8, .top_k = 50, .top_p = 0.95}},
          {"min_p", {.temperature = 0.8, .min_p = 0.05}},
          {"greedy_penalties", {.temperature = 0, .repetition_penalty = 1.1}, true},
          {"greedy_logprobs", {.temperature = 0}, false, 5}};
}

TokenHistory SomeHistory(int64_t vocab) {
  Random random(1);
  TokenHistory out;
  for (int64_t i = 0; i < kHistory; ++i)
    out.AddGenerated(static_cast<int32_t>(random.Below(static_cast<uint64_t>(vocab))));
  return out;
}

// Median microseconds per row. Calls `begin` before each call that is timed.
template <class F>
Result<double> MeasureSampler(const Case& of, std::span<const float> logits,
                              const BenchSamplerOptions& options, const Exec& exec,
                              const F& begin) {
  const TokenHistory history = SomeHistory(options.vocab);
  const auto vocab = static_cast<size_t>(options.vocab);
  std::vector<SampleInput> draws(static_cast<size_t>(options.rows));
  std::vector<double> us;
  for (int64_t call = 0; call < kSamplerCalls; ++call) {
    for (size_t row = 0; row < draws.size(); ++row)
      draws[row] = {.logits = logits.subspan(row * vocab, vocab),
                    .params = &of.params,
                    .history = of.history ? &history : nullptr,
                    .position = call,
                    .logprobs = of.logprobs,
                    .machine = exec.machine};
    begin();
    std::vector<Result<SampledToken>> drawn;
    const double seconds = SecondsOf([&] { drawn = SampleAll(draws, *exec.threads); });
    for (const Result<SampledToken>& one : drawn) LATTE_RETURN_IF_ERROR(one);
    us.push_back(seconds * 1e6 / static_cast<double>(options.rows));
  }
  return Median(us);
}

}  // namespace

Result<JsonOut> BenchSampler(const BenchSamplerOptions& options, const Machine& machine,
                             const JobProgress& progress) {
  LATTE_RETURN_IF_ERROR(FlagsInRange({{"--vocab", options.vocab, 1, 1 << 20},
                                      {"--rows", options.rows, 1, 256},
                                      {"--threads", options.threads, 1, 1024}}));
  const BenchThreads exec(options.threads, machine);
  JsonOut record{{"bench", "sampler"},
                 {"vocab", options.vocab},
                 {"rows", options.rows},
                 {"threads", options.threads},
                 {"calls", kSamplerCalls}};
  const int64_t size = options.rows * options.vocab;
  struct Kind {
    const char* name;
    std::vector<float> (*make)(int64_t, int64_t, uint64_t);
  };
  const std::array kinds = {Kind{"peaked", Peaked}, Kind{"flat", Flat}, Kind{"even", Even}};
  const std::vector<Case> cases = Cases();
  MeasuredSteps steps(progress, std::ssize(kinds) * std::ssize(cases) * kSamplerCalls);
  for (const Kind& kind : kinds) {
    const std::vector<float> logits = kind.make(size, options.vocab, /*seed=*/7);
    for (const Case& of : cases) {
      const std::string name = fmt::format("{}_{}", kind.name, of.name);
      const auto begin = [&] { steps.Begin(name); };
      LATTE_ASSIGN_OR_RETURN(const double us, MeasureSampler(of, logits, options, exec, begin));
      record[name + "_us"] = us;
    }
  }
  steps.End();
  return record;
}

}  // namespace latte
