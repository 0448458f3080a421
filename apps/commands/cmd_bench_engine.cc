// latte bench batch|prefix|determinism: the engine with many requests.
#include "apps/commands/bench_command.h"
#include "src/base/json_out.h"
#include "src/jobs/bench/bench_engine.h"

namespace latte {
namespace {

void AddEngine(const FlagSet& sub, EngineOptions& o) {
  sub.Add("--dtype", o.dtype, "arithmetic: bf16, f16 or f32 (default: bf16)");
  sub.Add("--cache-dtype", o.cache_dtype,
          "bf16, f16, f32, fp8, fp8-dense, int8 or q6 (default: as --dtype)");
  sub.Add("--max-batch-tokens", o.max_batch_tokens, "new tokens per step (default: 512)");
  sub.Add("--deterministic", o.deterministic, "strict, on or off (default: on)");
  sub.Add("--threads", o.threads,
          "threads; 0: one per processor, within the container's quota (default: 0)");
}

void AddBatch(const FlagSet& bench, BenchFlags& flags) {
  auto choice = std::make_shared<ModelChoice>();
  auto own = std::make_shared<BenchBatchOptions>();
  const FlagSet sub = AddOne(
      bench, flags, "batch", "Decode steps of many requests compared with one",
      [choice, own](const Machine& machine) {
        return choice->Run(own->engine.threads,
                           [&](const Model& model) { return BenchBatch(model, *own, machine); });
      });
  choice->Add(sub);
  sub.Add("--batches", own->batches, "requests at once (default: 1,8,16,32)")
      .CommaSeparated()
      .Range(1, 1024);
  sub.Add("--prompt", own->prompt, "tokens of every prompt (default: 16)").Range(1, 1 << 20);
  sub.Add("--gen", own->gen, "steps measured (default: 32)").Range(1, 1 << 16);
  sub.Add("--temperature", own->temperature, "0: greedy (default: 0)").Range(0.0, 100.0);
  sub.Add("--top-p", own->top_p, "(default: 1)").Range(1e-6, 1.0);
  AddEngine(sub, own->engine);
}

void AddPrefix(const FlagSet& bench, BenchFlags& flags) {
  auto choice = std::make_shared<ModelChoice>();
  auto own = std::make_shared<BenchPrefixOptions>();
  const FlagSet sub = AddOne(bench, flags, "prefix", "Gain from cached prefixes of prompts",
                             [choice, own](const Machine& machine) {
                               return choice->Run(own->engine.threads, [&](const Model& model) {
                                 return BenchPrefix(model, *own, machine);
                               });
                             });
  choice->Add(sub);
  sub.Add("--requests", own->requests, "requests (default: 32)").Range(1, 1024);
  sub.Add("--prefix", own->prefix, "length of the common prefix (default: 2000)").Range(1, 1 << 20);
  sub.Add("--own", own->own, "tokens of each prompt after it (default: 100)").Range(1, 1 << 20);
  sub.Add("--gen", own->gen, "tokens of every answer (default: 32)").Range(1, 1 << 16);
  sub.Add("--long-prompt", own->long_prompt,
          "prompt for the time to first token; 0: none (default: 8192)")
      .Range(0, 1 << 20);
  AddEngine(sub, own->engine);
}

void AddDeterminism(const FlagSet& bench, BenchFlags& flags) {
  auto choice = std::make_shared<ModelChoice>();
  auto own = std::make_shared<BenchDeterminismOptions>();
  const FlagSet sub = AddOne(bench, flags, "determinism", "Cost of each level of determinism",
                             [choice, own](const Machine& machine) {
                               return choice->Run(own->engine.threads, [&](const Model& model) {
                                 return BenchDeterminism(model, *own, machine);
                               });
                             });
  choice->Add(sub);
  sub.Add("--requests", own->requests, "requests (default: 16)").Range(1, 1024);
  sub.Add("--prompt", own->prompt, "tokens of the shortest prompt (default: 200)")
      .Range(1, 1 << 20);
  sub.Add("--gen", own->gen, "tokens of every answer (default: 160)").Range(1, 1 << 16);
  sub.Add("--rounds", own->rounds, "(default: 3)").Range(1, 100);
  AddEngine(sub, own->engine);
}

}  // namespace

void AddEngineBenches(const FlagSet& bench, BenchFlags& flags) {
  AddBatch(bench, flags);
  AddPrefix(bench, flags);
  AddDeterminism(bench, flags);
}

}  // namespace latte
