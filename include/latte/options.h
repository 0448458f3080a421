// Limits and layout of one engine: plain data.
#pragma once

#include <cstdint>
#include <string>

#include "latte/status.h"

namespace latte {

// Defaults suit one machine. Names are those of the command line's flags.
struct EngineOptions {
  std::string model = "tiny";           // a Hugging Face folder, a repo id in its cache, or "tiny"
  std::string dtype = "bf16";           // arithmetic: bf16, f16 or f32
  std::string cache_dtype = "";         // empty: `dtype`; or a format of latents, e.g. "int8"
  std::string attention = "auto";       // auto, decompressed, latent or absorbed
  std::string deterministic = "on";     // strict, on or off; docs/determinism.md
  bool int8_activations = true;         // for int4 and int8 weights, unless dtype is f32
  bool check_weights = false;           // refuse weights that are not finite
  int threads = 0;                      // 0: one per processor, within the container's quota
  int64_t page_tokens = 64;             // tokens per cache page; power of two, 16 … 256
  int64_t cache_bytes = 0;              // 0: what remains after weights and workspace
  int64_t max_tokens = 0;               // longest sequence; 0: the model's context, if it fits
  int64_t max_batch_tokens = 512;       // new tokens per step, decode and prefill together
  int64_t max_sequences = 64;           // sequences computed at once
  int64_t max_queued_requests = 1024;   // waiting beyond those
  int64_t max_queued_tokens = 1 << 22;  // prompt tokens of waiting requests
  int64_t aging_steps = 512;            // a waiting request gains one priority per so many steps
  // Cached tokens that prefill expands at once, for all prefills of a step;
  // 0: min(max(8·max_tokens, 4·max_sequences·page_tokens), 128 Ki).
  int64_t prefill_workspace_tokens = 0;
  bool prefix_cache = true;    // known beginnings of prompts are not computed again
  std::string cache_dir = "";  // keeps prefixes in this folder too; empty: in memory only
  int64_t cache_dir_bytes = int64_t{16} << 30;  // most that is kept there

  // Errors: kInvalidArgument naming the field, its value and the accepted range.
  [[nodiscard]] Status Validate() const;
};

}  // namespace latte
