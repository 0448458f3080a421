#include "apps/flags/engine_flags.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "apps/flags/command.h"
#include "src/base/range.h"
#include "src/engine/settings.h"

namespace latte {
namespace {

// Bytes with a suffix: 512M, 16G.
void AddBytes(const FlagSet& app, const std::string& name, int64_t& bytes,
              const std::string& help) {
  app.Add(name, bytes, help).Bytes();
}

}  // namespace

void EngineFlags::AddArithmetic(const FlagSet& app) {
  app.Add("--dtype", options_.dtype, "arithmetic: bf16, f16 or f32 (default: bf16)");
  app.Add("--cache-dtype", options_.cache_dtype,
          "bf16, f16, f32, fp8, fp8-dense, int8 or q6 (default: as --dtype)");
  app.Add("--attention", options_.attention,
          "auto, decompressed, latent or absorbed; all give the same answer (default: auto)");
  app.Add("--deterministic", options_.deterministic,
          "on: the same bytes whatever else runs; strict: also whatever was cached before; "
          "off (default: on)");
  app.Add("--act", act_,
          "activations of int4 and int8 weights: int8, or bf16: as --dtype (default: int8)");
  app.Add("--threads", options_.threads,
          "threads; 0: one per processor, within the container's quota (default: 0)");
  app.Add("--numa", numa_,
          "memory of caches and scratch: first-touch, where it is first used, or "
          "interleave, spread over all memory nodes (default: first-touch)");
  app.Add("--page-tokens", options_.page_tokens,
          "tokens per cache page; power of two, 16 to 256 (default: 64)");
}

void EngineFlags::AddSizes(const FlagSet& app) {
  AddBytes(app, "--cache-bytes", options_.cache_bytes,
           "the cache, e.g. 16G; 0: what remains after weights and workspace (default: 0)");
  app.Add("--max-tokens", options_.max_tokens,
          "longest sequence, prompt and answer; 0: the model's context, if it fits "
          "(default: 0)");
  app.Add("--max-batch-tokens", options_.max_batch_tokens, "new tokens per step (default: 512)");
  app.Add("--max-sequences", options_.max_sequences, "sequences computed at once (default: 64)");
  app.Add("--prefill-workspace-tokens", options_.prefill_workspace_tokens,
          "cached tokens that prefill expands at once; 0: by --max-tokens and "
          "--max-sequences (default: 0)");
}

void EngineFlags::AddQueue(const FlagSet& app) {
  app.Add("--max-queued-requests", options_.max_queued_requests,
          "requests that wait (default: 1024)");
  app.Add("--max-queued-tokens", options_.max_queued_tokens,
          "prompt tokens of requests that wait (default: 4194304)");
  app.Add("--aging-steps", options_.aging_steps,
          "a waiting request gains one priority per so many steps (default: 512)");
}

void EngineFlags::AddPrefixes(const FlagSet& app) {
  app.AddSwitch("--no-prefix-cache", no_prefix_cache_, "compute known beginnings of prompts again");
  app.Add("--cache-dir", options_.cache_dir, "keep prefixes in this folder too");
  AddBytes(app, "--cache-dir-bytes", options_.cache_dir_bytes,
           "most that is kept there (default: 16G)");
}

void EngineFlags::AddForOneSequence(const FlagSet& app) {
  options_.max_sequences = 1;
  options_.prefix_cache = false;
  options_.prefill_workspace_tokens = 4096;
  chunk_ = options_.max_batch_tokens;
  AddArithmetic(app);
  app.Add("--chunk", *chunk_, "prompt tokens per step; 0: all at once (default: 512)");
  app.Add("--prefill-workspace-tokens", options_.prefill_workspace_tokens,
          "cached tokens that are expanded at once (default: 4096)");
}

void EngineFlags::AddAll(const FlagSet& app) {
  AddArithmetic(app);
  AddCheckWeights(app, options_.check_weights);
  AddSizes(app);
  AddQueue(app);
  AddPrefixes(app);
}

Status EngineFlags::ApplyChunk(EngineOptions& out) const {
  constexpr int64_t kMany = int64_t{1} << 30;
  constexpr int64_t kMostPerStep = int64_t{1} << 20;
  LATTE_RETURN_IF_ERROR(InRange("chunk", *chunk_, 0, kMany));
  LATTE_RETURN_IF_ERROR(
      InRange("prefill-workspace-tokens", out.prefill_workspace_tokens, 1, kMany));
  // A step has room for more tokens than sequences; no byte depends on the chunk.
  const int64_t least = out.max_sequences + 1;
  out.max_batch_tokens = *chunk_ == 0 ? kMostPerStep : std::clamp(*chunk_, least, kMostPerStep);
  return {};
}

Result<EngineOptions> EngineFlags::Options(const std::string& model) const {
  EngineOptions out = options_;
  out.model = model;
  if (no_prefix_cache_) out.prefix_cache = false;
  if (chunk_) LATTE_RETURN_IF_ERROR(ApplyChunk(out));
  LATTE_ASSIGN_OR_RETURN(out.int8_activations, Int8Activations(act_));
  LATTE_RETURN_IF_ERROR(out.Validate());
  LATTE_RETURN_IF_ERROR(SetMemoryPolicy(numa_));
  LATTE_ASSIGN_OR_RETURN(const Machine machine, Machine::Detect());
  WarnAboutRates(machine.isa);
  return out;
}

void Introduce(const Engine& engine, const ModelConfig& config) {
  const EngineStats stats = engine.Stats();
  const EngineOptions& options = engine.options();
  for (const std::string& caveat : UnusedFeatures(config))
    std::fprintf(stderr, "latte: warning: %s\n", caveat.c_str());
  std::fputs(
      fmt::format("cache: {} pages of {} tokens, {} tokens, {} bytes; longest sequence {} "
                  "tokens\nprefill workspace: {} tokens, {} bytes\n",
                  stats.pages_total, stats.page_tokens, stats.pages_total * stats.page_tokens,
                  stats.pages_total * stats.page_bytes, options.max_tokens,
                  options.prefill_workspace_tokens, PrefillWorkspaceBytes(config, options))
          .c_str(),
      stderr);
}

}  // namespace latte
