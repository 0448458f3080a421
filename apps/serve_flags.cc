#include "apps/serve_flags.h"

#include "src/base/memory.h"
#include "src/jobs/bench_steps.h"

namespace latte {

void AddEngineOptions(CLI::App& app, EngineOptions& o) {
  app.add_option("MODEL", o.model, "model (default: tiny)");
  app.add_option("--dtype", o.dtype, "arithmetic: bf16, f16 or f32 (default: bf16)");
  app.add_option("--cache-dtype", o.cache_dtype,
                 "bf16, f16, f32, fp8, fp8-dense, int8 or q6 (default: as --dtype)");
  app.add_option("--attention", o.attention,
                 "auto, decompressed, latent or absorbed (default: auto)");
  app.add_option("--deterministic", o.deterministic, "strict, on or off (default: on)");
  app.add_option("--threads", o.threads, "threads; 0: one per processor (default: 0)");
  app.add_option("--page-tokens", o.page_tokens, "tokens per cache page (default: 64)");
  app.add_option("--cache-bytes", o.cache_bytes,
                 "size of the cache; 0: what memory there is (default: 0)");
  app.add_option("--max-tokens", o.max_tokens,
                 "longest sequence; 0: the model's context (default: 0)");
  app.add_option("--max-batch-tokens", o.max_batch_tokens, "new tokens per step (default: 512)");
  app.add_option("--max-sequences", o.max_sequences, "sequences computed at once (default: 64)");
  app.add_option("--max-queued-requests", o.max_queued_requests,
                 "requests that wait beyond those; others are refused (default: 1024)");
  app.add_option("--max-queued-tokens", o.max_queued_tokens,
                 "prompt tokens of waiting requests (default: 4194304)");
  app.add_option("--aging-steps", o.aging_steps,
                 "a waiting request gains one priority per so many steps (default: 512)");
  app.add_option("--prefill-workspace-tokens", o.prefill_workspace_tokens,
                 "cached tokens that are expanded at once; 0: by --max-tokens (default: 0)");
  app.add_flag("!--no-prefix-cache", o.prefix_cache, "compute known beginnings of prompts again");
}

Result<OpenedEngine> OpenEngine(const EngineOptions& options) {
  LATTE_RETURN_IF_ERROR(options.Validate());
  OpenedEngine out;
  LATTE_ASSIGN_OR_RETURN(out.opened, OpenModel(options.model));
  LATTE_ASSIGN_OR_RETURN(out.settings, Settle(options, out.opened.model->config(),
                                              out.opened.machine, AvailableMemory()));
  return out;
}

void TraceFlags::Add(CLI::App& app) {
  app.add_option("--trace", file,
                 "a file of requests, one JSON object per line (docs/simulation.md)");
  app.add_option("--requests", shape.requests, "requests of a random trace (default: 100)");
  app.add_option("--rate", shape.rate, "arrivals per second; 0: all at once (default: 1)");
  app.add_option("--prompt-mean", shape.prompt_mean, "mean length of prompts (default: 256)");
  app.add_option("--prompt-sigma", shape.prompt_sigma,
                 "spread of the logarithm of their length (default: 0.5)");
  app.add_option("--output-mean", shape.output_mean, "mean length of answers (default: 64)");
  app.add_option("--output-sigma", shape.output_sigma,
                 "spread of the logarithm of their length (default: 0.5)");
  app.add_option("--shared-prefix", shape.shared_prefix,
                 "tokens before each prompt that its group shares (default: 0)");
  app.add_option("--prefix-groups", shape.prefix_groups, "groups of prompts (default: 1)");
  app.add_option("--seed", shape.seed, "same seed, same trace (default: 0)");
}

Result<std::vector<TraceRequest>> TraceFlags::Trace(const OpenedEngine& engine) const {
  const TraceLimits limits{engine.opened.model->config().vocab, engine.settings.options.max_tokens};
  return file.empty() ? MakeTrace(shape, limits) : LoadTrace(file, shape, limits);
}

void CostFlags::Add(CLI::App& app) {
  app.add_option("--cost", file,
                 "prices of steps from `latte bench steps --out` (default: measured now)");
}

Result<StepCost> CostFlags::Cost(const OpenedEngine& engine) const {
  const Model& model = *engine.opened.model;
  if (!file.empty())
    return LoadStepCost(file, StepsMadeFor(model.config(), engine.settings, engine.opened.machine));
  LATTE_ASSIGN_OR_RETURN(
      const BenchedSteps benched,
      BenchSteps(model, engine.settings, engine.opened.machine, {.quick = true}));
  return benched.cost;
}

}  // namespace latte
