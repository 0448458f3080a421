// latte bench batch|prefix|determinism: the engine with many requests.
#include <algorithm>
#include <array>

#include "apps/commands/bench_command.h"
#include "lab/bench/bench_engine.h"
#include "src/base/json_out.h"

namespace latte {
namespace {

// A bench of an engine, with the flags of the engine that matter to benches.
template <class Options>
struct EngineBench {
  ModelChoice model;
  Options options;
  StructFlags<EngineOptions> flags;

  void AddFlags(const FlagSet& app) {
    flags.values = options.engine;
    flags.Add(app, [](const Field& field, std::string_view) {
      constexpr std::array kNames = {"dtype",         "device", "cache_dtype", "max_batch_tokens",
                                     "deterministic", "threads"};
      return std::find(kNames.begin(), kNames.end(), field.name) != kNames.end();
    });
  }
};

// Errors: of flags and variables, of loading and of `bench`.
template <class Options>
auto OnModel(Result<JsonOut> (*bench)(const Model&, const Options&, const ComputeDevice&,
                                      const JobProgress&)) {
  return [bench](const EngineBench<Options>& chosen, const Machine&,
                 const JobProgress& progress) -> Result<JsonOut> {
    Options out = chosen.options;
    LATTE_RETURN_IF_ERROR(chosen.flags.Apply(out.engine));
    LATTE_RETURN_IF_ERROR(chosen.flags.Validate(out.engine));
    return chosen.model.Run(out.engine, [&](const Model& loaded, const ComputeDevice& device) {
      return bench(loaded, out, device, progress);
    });
  };
}

void AddBatch(const FlagSet& bench, BenchFlags& flags) {
  const auto [sub, all] = AddBench<EngineBench<BenchBatchOptions>>(
      bench, flags, "batch", "Decode steps of many requests compared with one",
      OnModel(BenchBatch));
  auto* own = &all->options;
  all->model.Add(sub);
  sub.Add("--batches", own->batches, "requests at once (default: 1,8,16,32)")
      .CommaSeparated()
      .Range(1, 1024);
  sub.Add("--prompt", own->prompt, "tokens of every prompt (default: 16)").Range(1, 1 << 20);
  sub.Add("--gen", own->gen, "steps measured (default: 32)").Range(1, 1 << 16);
  sub.Add("--temperature", own->temperature, "0: greedy (default: 0)").Range(0.0, 100.0);
  sub.Add("--top-p", own->top_p, "(default: 1)").Range(1e-6, 1.0);
  all->AddFlags(sub);
}

void AddPrefix(const FlagSet& bench, BenchFlags& flags) {
  const auto [sub, all] = AddBench<EngineBench<BenchPrefixOptions>>(
      bench, flags, "prefix", "Gain from cached prefixes of prompts", OnModel(BenchPrefix),
      "tokens");
  auto* own = &all->options;
  all->model.Add(sub);
  sub.Add("--requests", own->requests, "requests (default: 32)").Range(1, 1024);
  sub.Add("--prefix", own->prefix, "length of the common prefix (default: 2000)").Range(1, 1 << 20);
  sub.Add("--own", own->own, "tokens of each prompt after it (default: 100)").Range(1, 1 << 20);
  sub.Add("--gen", own->gen, "tokens of every answer (default: 32)").Range(1, 1 << 16);
  sub.Add("--long-prompt", own->long_prompt,
          "prompt for the time to first token; 0: none (default: 8192)")
      .Range(0, 1 << 20);
  all->AddFlags(sub);
}

void AddDeterminism(const FlagSet& bench, BenchFlags& flags) {
  const auto [sub, all] = AddBench<EngineBench<BenchDeterminismOptions>>(
      bench, flags, "determinism", "Cost of each level of determinism", OnModel(BenchDeterminism),
      "tokens");
  auto* own = &all->options;
  all->model.Add(sub);
  sub.Add("--requests", own->requests, "requests (default: 16)").Range(1, 1024);
  sub.Add("--prompt", own->prompt, "tokens of the shortest prompt (default: 200)")
      .Range(1, 1 << 20);
  sub.Add("--gen", own->gen, "tokens of every answer (default: 160)").Range(1, 1 << 16);
  sub.Add("--rounds", own->rounds, "(default: 3)").Range(1, 100);
  all->AddFlags(sub);
}

}  // namespace

void AddEngineBenches(const FlagSet& bench, BenchFlags& flags) {
  AddBatch(bench, flags);
  AddPrefix(bench, flags);
  AddDeterminism(bench, flags);
}

}  // namespace latte
