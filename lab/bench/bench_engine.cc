#include "lab/bench/bench_engine.h"

#include <cstdlib>

#include <fmt/format.h>

#include "src/base/json_out.h"
#include "src/base/limits/memory.h"
#include "src/base/math.h"
#include "src/base/random.h"
#include "src/engine/core/engine_core.h"
#include "src/jobs/bench/bench_timer.h"
#include "src/jobs/convert/staging_folder.h"
#include "src/jobs/random_draws.h"

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;

Request Greedy(std::vector<int32_t> tokens, int64_t gen) {
  Request r;
  r.tokens = std::move(tokens);
  r.user_data = r.tokens.size();  // EngineHarness counts them
  r.sampling.temperature = 0;
  r.stop.max_tokens = gen;
  r.stop.ignore_eos = true;
  return r;
}

// The other half is for weights and other programs.
MemoryRoom HalfOfMemory(const ComputeDevice& device) {
  const std::optional<int64_t> available =
      device.is_gpu() ? std::optional(device.FreeGpuBytes()) : AvailableMemory();
  return {available ? std::optional(*available / 2) : std::nullopt};
}

// An engine whose answers are only counted.
struct EngineHarness {
  std::unique_ptr<EngineCore> core;
  int64_t first_tokens = 0;  // number of answers that have begun
  int64_t ended = 0;
  int64_t tokens = 0;  // of answers, and of prompts whose answers have begun
  Error error;         // error of the last answer that failed

  static Result<std::unique_ptr<EngineHarness>> Make(const Model& model,
                                                     const ComputeDevice& device,
                                                     const EngineOptions& options) {
    LATTE_ASSIGN_OR_RETURN(
        const Settings settings,
        ResolveOptions(options, model.config(), device.machine(), HalfOfMemory(device)));
    auto harness = std::make_unique<EngineHarness>();
    const EngineParts parts{.model = &model, .machine = &device.machine(), .host = &device.host()};
    LATTE_ASSIGN_OR_RETURN(harness->core, EngineCore::Create(parts, settings));
    EngineHarness* const counts = harness.get();
    harness->core->SetEventSink([counts](std::span<const TokenEvent> events) {
      for (const TokenEvent& e : events) {
        if (e.generated_tokens == 1) ++counts->first_tokens;
        if (e.generated_tokens == 1) counts->tokens += static_cast<int64_t>(e.user_data);
        if (e.token) ++counts->tokens;
        if (e.finish) ++counts->ended;
        if (e.finish == FinishReason::kError) counts->error = e.error;
      }
    });
    return harness;
  }

  // Runs steps until `done`. Errors: of a request that failed.
  template <class F>
  Status RunUntil(const F& done) {
    while (!done()) LATTE_RETURN_IF_ERROR(Step());
    return {};
  }

  // Seconds of submitting all requests and of the steps until they have ended; not of `counted`,
  // which is told the tokens between steps.
  Result<double> RunAll(const std::vector<Request>& requests, const MeasuredSteps& counted) {
    const int64_t wanted = ended + std::ssize(requests);
    const int64_t tokens_before = tokens;
    Status status;
    double seconds = SecondsOf([&] { status = SubmitAll(requests); });
    while (status && ended < wanted) {
      seconds += SecondsOf([&] { status = Step(); });
      counted.Within(tokens - tokens_before);
    }
    LATTE_RETURN_IF_ERROR(status);
    return seconds;
  }

 private:
  Status Step() {
    core->WaitForWork(Clock::now() + std::chrono::seconds(1));
    LATTE_RETURN_IF_ERROR(core->Step());
    if (!error.message.empty()) return tl::unexpected(error);
    return {};
  }

  Status SubmitAll(const std::vector<Request>& requests) {
    for (const Request& r : requests) LATTE_RETURN_IF_ERROR(core->Submit(r));
    return {};
  }
};

EngineOptions WithRoom(EngineOptions options, int64_t sequences, int64_t tokens_each) {
  options.max_sequences = sequences;
  options.max_batch_tokens = std::max(options.max_batch_tokens, sequences + 1);
  if (options.max_tokens == 0) options.max_tokens = RoundUp(tokens_each + 1, options.page_tokens);
  return options;
}

// An engine in which all sequences decode, and the times of its steps.
struct BatchRun {
  int64_t batch = 0;
  std::unique_ptr<EngineHarness> harness;
  OpTimes times = {};
  Ceilings ceilings = {};
  std::vector<double> seconds = {};
  EngineStats before = {};

  double tokens_per_s() const { return static_cast<double>(batch) / Median(seconds); }
  double PerStep(int64_t work) const {
    return static_cast<double>(work) / static_cast<double>(seconds.size());
  }
  double bytes_per_step() const { return PerStep(TotalWork(times).bytes); }

  void Step(const Exec& host, bool sample) {
    harness->core->Measure(&times);
    seconds.push_back(SecondsOf([&] { static_cast<void>(harness->core->Step()); }));
    harness->core->Measure(nullptr);
    if (sample) ceilings.Sample(host, /*dram=*/true);
  }

  JsonOut Json() const {
    const EngineStats after = harness->core->Stats();
    const double median = Median(seconds);
    const double in_steps = after.step_seconds - before.step_seconds;
    const double in_model = after.forward_seconds - before.forward_seconds;
    JsonOut out{{"batch", batch},
                {"decoded", after.generated_tokens - before.generated_tokens},
                {"tokens_per_s", tokens_per_s()},
                {"ms", median * 1e3},
                {"us", median * 1e6},
                {"overhead", 1 - in_model / in_steps},
                {"flops", PerStep(TotalWork(times).flops)},
                {"bytes", bytes_per_step()},
                {"unique_bytes", bytes_per_step()},
                {"memory_fraction",
                 Fraction(bytes_per_step() * 1e-9 / median, ceilings.Median(Ceiling::kDram))}};
    ceilings.AddTo(out);
    return out;
  }
};

// Processes all prompts, so that the next step is a decode step of every sequence.
Result<BatchRun> StartBatch(const Model& model, const BenchBatchOptions& options,
                            const ComputeDevice& device, int64_t batch) {
  // Two more steps than are measured: one before, and one so that no sequence ends during the
  // measurement.
  const int64_t gen = options.gen + 2;
  BatchRun run{batch, nullptr};
  LATTE_ASSIGN_OR_RETURN(run.harness, EngineHarness::Make(model, device,
                                                          WithRoom(options.engine, batch,
                                                                   options.prompt + gen + batch)));
  EngineCore& core = *run.harness->core;
  for (int64_t b = 0; b < batch; ++b) {
    const auto stream = static_cast<uint64_t>(b);
    // A sequence that begins earlier would end earlier, so it gets more tokens.
    Request r =
        Greedy(RandomTokens(options.prompt, model.config().vocab, stream),
               gen + CeilDiv(options.prompt * batch, core.settings().options.max_batch_tokens));
    r.sampling.temperature = options.temperature;
    r.sampling.top_p = options.top_p;
    r.sampling.seed = stream;
    LATTE_RETURN_IF_ERROR(core.Submit(r));
  }
  LATTE_RETURN_IF_ERROR(run.harness->RunUntil([&] { return run.harness->first_tokens == batch; }));
  LATTE_RETURN_IF_ERROR(core.Step());
  run.before = core.Stats();
  return run;
}

std::vector<Request> SharedPrefix(const BenchPrefixOptions& o, int64_t vocab) {
  const std::vector<int32_t> prefix = RandomTokens(o.prefix, vocab, 0);
  std::vector<Request> out;
  for (int64_t i = 0; i < o.requests; ++i) {
    std::vector<int32_t> tokens = prefix;
    const auto own = RandomTokens(o.own, vocab, static_cast<uint64_t>(i) + 1);
    tokens.insert(tokens.end(), own.begin(), own.end());
    out.push_back(Greedy(std::move(tokens), o.gen));
  }
  return out;
}

// Time to first token of a long prompt: cold, from memory, from disk.
Result<JsonOut> FirstTokens(const Model& model, const BenchPrefixOptions& o,
                            const ComputeDevice& device, MeasuredSteps& counted) {
  LATTE_ASSIGN_OR_RETURN(const StagingFolder folder, StagingFolder::MakeScratch("latte-prefixes"));
  EngineOptions options = WithRoom(o.engine, 4, o.long_prompt + 2);
  options.cache_dir = folder.path();
  const std::vector<Request> once = {
      Greedy(RandomTokens(o.long_prompt, model.config().vocab, 99), 1)};
  JsonOut out;
  const auto run = [&](EngineHarness& harness, std::string_view name) {
    counted.Begin(name, o.long_prompt + 1);
    return harness.RunAll(once, counted);
  };
  {
    LATTE_ASSIGN_OR_RETURN(const auto harness, EngineHarness::Make(model, device, options));
    LATTE_ASSIGN_OR_RETURN(out["cold_s"], run(*harness, "a long prompt, cold"));
    LATTE_ASSIGN_OR_RETURN(out["memory_s"], run(*harness, "a long prompt, from memory"));
    LATTE_RETURN_IF_ERROR(harness->core->SavePrefixes());
  }
  LATTE_ASSIGN_OR_RETURN(const auto harness, EngineHarness::Make(model, device, options));
  LATTE_ASSIGN_OR_RETURN(out["disk_s"], run(*harness, "a long prompt, from disk"));
  const EngineStats stats = harness->core->Stats();
  out["prompt_tokens"] = o.long_prompt;
  out["disk_tokens"] = stats.disk_tokens;
  out["disk_bytes"] = stats.disk_tokens / stats.page_tokens * stats.page_bytes;
  return out;
}

struct Level {
  std::string name;
  bool scarce = false;  // memory for only half of the requests
  std::vector<double> seconds = {};
  int64_t preemptions = 0;
};

}  // namespace

Result<JsonOut> BenchBatch(const Model& model, const BenchBatchOptions& options,
                           const ComputeDevice& device, const JobProgress& progress) {
  MeasuredSteps counted(progress, options.gen * std::ssize(options.batches));
  std::vector<BatchRun> runs;
  for (const int64_t batch : options.batches) {
    LATTE_ASSIGN_OR_RETURN(BatchRun run, StartBatch(model, options, device, batch));
    runs.push_back(std::move(run));
  }
  const Exec host{&runs.front().harness->core->threads(), &device.host()};
  for (int64_t g = 0; g < options.gen; ++g)
    for (BatchRun& run : runs) {
      counted.Begin(fmt::format("{} requests", run.batch));
      run.Step(host, !device.is_gpu() && g % 8 == 0);
    }
  counted.End();

  JsonOut out{{"bench", "batch"}, {"prompt", options.prompt}, {"gen", options.gen}};
  out["batches"] = JsonOut::array();
  const BatchRun& first = runs.front();
  for (const BatchRun& run : runs) {
    const double gain = run.tokens_per_s() / first.tokens_per_s();
    const double floor_gain = static_cast<double>(run.batch) * first.bytes_per_step() /
                              (static_cast<double>(first.batch) * run.bytes_per_step());
    JsonOut one = run.Json();
    one["gain"] = gain;
    one["floor_gain"] = floor_gain;
    one["fraction"] = gain / floor_gain;
    out["batches"].push_back(std::move(one));
  }
  return out;
}

Result<JsonOut> BenchPrefix(const Model& model, const BenchPrefixOptions& o,
                            const ComputeDevice& device, const JobProgress& progress) {
  const std::vector<Request> requests = SharedPrefix(o, model.config().vocab);
  const int64_t tokens = o.requests * (o.prefix + o.own + o.gen);
  MeasuredSteps counted(progress, 2 * tokens + (o.long_prompt > 0 ? 3 * (o.long_prompt + 1) : 0));
  JsonOut out{{"bench", "prefix"},
              {"requests", o.requests},
              {"prefix", o.prefix},
              {"own", o.own},
              {"gen", o.gen}};
  double seconds[2] = {0, 0};
  for (const bool reuse : {false, true}) {
    EngineOptions options = WithRoom(o.engine, o.requests, o.prefix + o.own + o.gen);
    options.prefix_cache = reuse;
    LATTE_ASSIGN_OR_RETURN(const auto harness, EngineHarness::Make(model, device, options));
    counted.Begin(reuse ? "with the cache" : "without the cache", tokens);
    LATTE_ASSIGN_OR_RETURN(seconds[reuse ? 1 : 0], harness->RunAll(requests, counted));
    out[reuse ? "computed_tokens" : "computed_tokens_without"] =
        harness->core->Stats().computed_tokens;
  }
  out["without_s"] = seconds[0];
  out["with_s"] = seconds[1];
  out["ratio"] = seconds[1] / seconds[0];
  if (o.long_prompt > 0) {
    LATTE_ASSIGN_OR_RETURN(out["first_token"], FirstTokens(model, o, device, counted));
  }
  counted.End();
  return out;
}

Result<JsonOut> BenchDeterminism(const Model& model, const BenchDeterminismOptions& o,
                                 const ComputeDevice& device, const JobProgress& progress) {
  std::vector<Request> requests;
  for (int64_t i = 0; i < o.requests; ++i)
    requests.push_back(
        Greedy(RandomTokens(o.prompt + i, model.config().vocab, static_cast<uint64_t>(i)), o.gen));
  std::vector<Level> levels;
  for (const bool scarce : {false, true})
    for (const char* const name : {"strict", "on", "off"}) levels.push_back({name, scarce});
  const int64_t tokens = o.requests * (o.prompt + o.gen) + o.requests * (o.requests - 1) / 2;
  MeasuredSteps counted(progress, o.rounds * std::ssize(levels) * tokens);
  for (int round = 0; round < o.rounds; ++round)
    for (Level& level : levels) {
      counted.Begin(level.name + (level.scarce ? ", little memory" : ""), tokens);
      EngineOptions options = WithRoom(o.engine, o.requests, o.prompt + o.requests + o.gen);
      options.deterministic = level.name;
      LATTE_ASSIGN_OR_RETURN(
          const Settings plain,
          ResolveOptions(options, model.config(), device.machine(), HalfOfMemory(device)));
      const int64_t pages =
          o.requests * CeilDiv(options.max_tokens, options.page_tokens) / (level.scarce ? 2 : 1);
      options.cache_bytes = pages * plain.cache_spec.bytes_per_page();
      LATTE_ASSIGN_OR_RETURN(const auto harness, EngineHarness::Make(model, device, options));
      LATTE_ASSIGN_OR_RETURN(const double seconds, harness->RunAll(requests, counted));
      level.seconds.push_back(seconds);
      level.preemptions += harness->core->Stats().preemptions;
    }
  counted.End();
  JsonOut out{{"bench", "determinism"},
              {"requests", o.requests},
              {"prompt", o.prompt},
              {"gen", o.gen},
              {"rounds", o.rounds}};
  out["levels"] = JsonOut::array();
  for (const Level& level : levels)
    out["levels"].push_back({{"level", level.name},
                             {"scarce", level.scarce},
                             {"seconds", Median(level.seconds)},
                             {"tokens_per_s", static_cast<double>(tokens) / Median(level.seconds)},
                             {"preemptions", level.preemptions}});
  return out;
}

}  // namespace latte
