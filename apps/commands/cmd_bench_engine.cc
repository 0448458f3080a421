// latte bench batch|prefix|determinism: the engine with many requests.
#include "apps/commands/bench_command.h"
#include "src/jobs/bench/bench_engine.h"

namespace latte {
namespace {

void AddEngine(CLI::App& sub, EngineOptions& o) {
  sub.add_option("--dtype", o.dtype, "arithmetic: bf16, f16 or f32 (default: bf16)");
  sub.add_option("--cache-dtype", o.cache_dtype,
                 "bf16, f16, f32, fp8, fp8-dense, int8 or q6 (default: as --dtype)");
  sub.add_option("--max-batch-tokens", o.max_batch_tokens, "new tokens per step (default: 512)");
  sub.add_option("--deterministic", o.deterministic, "strict, on or off (default: on)");
  sub.add_option("--threads", o.threads,
                 "threads; 0: one per processor, within the container's quota (default: 0)");
}

void AddBatch(CLI::App& bench, BenchFlags& flags) {
  auto choice = std::make_shared<ModelChoice>();
  auto own = std::make_shared<BenchBatchOptions>();
  CLI::App* sub = AddOne(bench, flags, "batch", "Decode steps of many requests compared with one",
                         [choice, own](const Machine& machine) {
                           return choice->Run(own->engine.threads, [&](const Model& model) {
                             return BenchBatch(model, *own, machine);
                           });
                         });
  choice->Add(*sub);
  sub->add_option("--batches", own->batches, "requests at once (default: 1,8,16,32)")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  sub->add_option("--prompt", own->prompt, "tokens of every prompt (default: 16)")
      ->check(CLI::Range(1, 1 << 20));
  sub->add_option("--gen", own->gen, "steps measured (default: 32)")->check(CLI::Range(1, 1 << 16));
  sub->add_option("--temperature", own->temperature, "0: greedy (default: 0)")
      ->check(CLI::Range(0.0, 100.0));
  sub->add_option("--top-p", own->top_p, "(default: 1)")->check(CLI::Range(1e-6, 1.0));
  AddEngine(*sub, own->engine);
}

void AddPrefix(CLI::App& bench, BenchFlags& flags) {
  auto choice = std::make_shared<ModelChoice>();
  auto own = std::make_shared<BenchPrefixOptions>();
  CLI::App* sub = AddOne(bench, flags, "prefix", "Gain from cached prefixes of prompts",
                         [choice, own](const Machine& machine) {
                           return choice->Run(own->engine.threads, [&](const Model& model) {
                             return BenchPrefix(model, *own, machine);
                           });
                         });
  choice->Add(*sub);
  sub->add_option("--requests", own->requests, "requests (default: 32)")
      ->check(CLI::Range(1, 1024));
  sub->add_option("--prefix", own->prefix, "length of the common prefix (default: 2000)")
      ->check(CLI::Range(1, 1 << 20));
  sub->add_option("--own", own->own, "tokens of each prompt after it (default: 100)")
      ->check(CLI::Range(1, 1 << 20));
  sub->add_option("--gen", own->gen, "tokens of every answer (default: 32)")
      ->check(CLI::Range(1, 1 << 16));
  sub->add_option("--long-prompt", own->long_prompt,
                  "prompt for the time to first token; 0: none (default: 8192)")
      ->check(CLI::Range(0, 1 << 20));
  AddEngine(*sub, own->engine);
}

void AddDeterminism(CLI::App& bench, BenchFlags& flags) {
  auto choice = std::make_shared<ModelChoice>();
  auto own = std::make_shared<BenchDeterminismOptions>();
  CLI::App* sub = AddOne(bench, flags, "determinism", "Cost of each level of determinism",
                         [choice, own](const Machine& machine) {
                           return choice->Run(own->engine.threads, [&](const Model& model) {
                             return BenchDeterminism(model, *own, machine);
                           });
                         });
  choice->Add(*sub);
  sub->add_option("--requests", own->requests, "requests (default: 16)")
      ->check(CLI::Range(1, 1024));
  sub->add_option("--prompt", own->prompt, "tokens of the shortest prompt (default: 200)")
      ->check(CLI::Range(1, 1 << 20));
  sub->add_option("--gen", own->gen, "tokens of every answer (default: 160)")
      ->check(CLI::Range(1, 1 << 16));
  sub->add_option("--rounds", own->rounds, "(default: 3)")->check(CLI::Range(1, 100));
  AddEngine(*sub, own->engine);
}

}  // namespace

void AddEngineBenches(CLI::App& bench, BenchFlags& flags) {
  AddBatch(bench, flags);
  AddPrefix(bench, flags);
  AddDeterminism(bench, flags);
}

}  // namespace latte
