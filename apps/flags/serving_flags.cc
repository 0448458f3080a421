#include "apps/flags/serving_flags.h"

#include <cstdio>

#include <fmt/format.h>

#include "apps/flags/command.h"
#include "src/checkpoint/model_path.h"
#include "src/engine/settings.h"

namespace latte {
namespace {

// Bytes with a suffix: 512M, 16G.
void AddBytes(CLI::App& app, const std::string& name, int64_t& bytes, const std::string& help) {
  app.add_option(name, bytes, help)->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
}

}  // namespace

void ServingFlags::AddArithmetic(CLI::App& app) {
  app.add_option("--dtype", options_.dtype, "arithmetic: bf16, f16 or f32 (default: bf16)");
  app.add_option("--cache-dtype", options_.cache_dtype,
                 "bf16, f16, f32, fp8, fp8-dense, int8 or q6 (default: as --dtype)");
  app.add_option("--attention", options_.attention,
                 "auto, decompressed, latent or absorbed (default: auto)");
  app.add_option("--deterministic", options_.deterministic,
                 "on: the same bytes whatever else runs; strict: also whatever was cached before; "
                 "off (default: on)");
  app.add_option("--act", act_,
                 "activations of int4 and int8 weights: int8, or bf16: as --dtype (default: int8)");
  app.add_option("--threads", options_.threads,
                 "threads; 0: one per processor, within the container's quota (default: 0)");
  app.add_option("--numa", numa_, "memory: first-touch or interleave (default: first-touch)");
  AddCheckWeights(app, options_.check_weights);
}

void ServingFlags::AddSizes(CLI::App& app) {
  app.add_option("--page-tokens", options_.page_tokens,
                 "tokens per cache page; power of two, 16 to 256 (default: 64)");
  AddBytes(app, "--cache-bytes", options_.cache_bytes,
           "the cache, e.g. 16G; 0: what remains after weights and workspace (default: 0)");
  app.add_option("--max-tokens", options_.max_tokens,
                 "longest sequence, prompt and answer; 0: the model's context, if it fits "
                 "(default: 0)");
  app.add_option("--max-batch-tokens", options_.max_batch_tokens,
                 "new tokens per step (default: 512)");
  app.add_option("--max-sequences", options_.max_sequences,
                 "sequences computed at once (default: 64)");
  app.add_option("--prefill-workspace-tokens", options_.prefill_workspace_tokens,
                 "cached tokens that prefill expands at once; 0: by --max-tokens and "
                 "--max-sequences (default: 0)");
}

void ServingFlags::AddQueue(CLI::App& app) {
  app.add_option("--max-queued-requests", options_.max_queued_requests,
                 "requests that wait (default: 1024)");
  app.add_option("--max-queued-tokens", options_.max_queued_tokens,
                 "prompt tokens of requests that wait (default: 4194304)");
  app.add_option("--aging-steps", options_.aging_steps,
                 "a waiting request gains one priority per so many steps (default: 512)");
}

void ServingFlags::AddPrefixes(CLI::App& app) {
  app.add_flag("--no-prefix-cache", no_prefix_cache_, "compute known beginnings of prompts again");
  app.add_option("--cache-dir", options_.cache_dir, "keep prefixes in this folder too");
  AddBytes(app, "--cache-dir-bytes", options_.cache_dir_bytes,
           "most that is kept there (default: 16G)");
}

void ServingFlags::Add(CLI::App& app) {
  AddArithmetic(app);
  AddSizes(app);
  AddQueue(app);
  AddPrefixes(app);
}

Result<EngineOptions> ServingFlags::Options(const std::string& model) const {
  EngineOptions out = options_;
  out.model = model;
  out.prefix_cache = !no_prefix_cache_;
  LATTE_ASSIGN_OR_RETURN(out.int8_activations, Int8Activations(act_));
  LATTE_RETURN_IF_ERROR(out.Validate());
  LATTE_RETURN_IF_ERROR(SetMemoryPolicy(numa_));
  LATTE_ASSIGN_OR_RETURN(const Machine machine, Machine::Detect());
  WarnAboutRates(machine.isa);
  return out;
}

Status Introduce(const Engine& engine) {
  const EngineStats stats = engine.Stats();
  const EngineOptions& options = engine.options();
  LATTE_ASSIGN_OR_RETURN(const std::string dir, ResolveModelPath(options.model));
  LATTE_ASSIGN_OR_RETURN(const ModelConfig config, LoadModelConfig(dir));
  for (const std::string& caveat : Caveats(config))
    std::fprintf(stderr, "latte: warning: %s\n", caveat.c_str());
  std::fputs(
      fmt::format("cache: {} pages of {} tokens, {} tokens, {} bytes; longest sequence {} "
                  "tokens\nprefill workspace: {} tokens, {} bytes\n",
                  stats.pages_total, stats.page_tokens, stats.pages_total * stats.page_tokens,
                  stats.pages_total * stats.page_bytes, options.max_tokens,
                  options.prefill_workspace_tokens, PrefillWorkspaceBytes(config, options))
          .c_str(),
      stderr);
  return {};
}

}  // namespace latte
