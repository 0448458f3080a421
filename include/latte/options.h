// Limits and layout of one engine: plain data.
#pragma once

#include <cstdint>
#include <string>

#include "latte/fields.h"
#include "latte/status.h"

namespace latte {
inline namespace v0_2 {

// Defaults suit one machine.
struct EngineOptions {
  std::string model = "tiny";           // a Hugging Face folder, a repo id in its cache, or "tiny"
  std::string dtype = "bf16";           // arithmetic: bf16, f16 or f32
  std::string cache_dtype = "";         // empty: `dtype`; or a format of latents, e.g. "int8"
  std::string attention = "auto";       // auto, decompressed, latent, absorbed or sparse
  std::string deterministic = "on";     // strict, on or off; docs/determinism.md
  bool int8_activations = true;         // for int4 and int8 weights, unless dtype is f32
  std::string device = "cpu";           // computes the model: cpu, cuda, or cuda:N for GPU N
  bool check_weights = false;           // refuse weights that are not finite
  int threads = 0;                      // 0: one per processor, within the container's quota
  int64_t page_tokens = 64;             // tokens per cache page; power of two, 16 … 256
  int64_t cache_bytes = 0;              // 0: the memory that weights and workspace leave
  int64_t max_tokens = 0;               // longest sequence; 0: the model's context, if it fits
  int64_t max_batch_tokens = 512;       // new tokens per step, decode and prefill together
  int64_t max_sequences = 64;           // sequences computed at once
  int64_t max_queued_requests = 1024;   // waiting, in addition to max_sequences
  int64_t max_queued_tokens = 1 << 22;  // prompt tokens of waiting requests
  int64_t aging_steps = 512;            // a waiting request gains one priority per so many steps
  // Cached tokens that prefill expands at once, for all prefills of a step;
  // 0: min(max(8·max_tokens, 4·max_sequences·page_tokens), 128 Ki).
  int64_t prefill_workspace_tokens = 0;
  // Tokens that a step drafts per sequence: "0" to "4", or "auto", which is "0" if the model cannot
  // draft; docs/speculation.md.
  std::string draft_tokens = "auto";
  std::string drafter = "mtp";  // or "lookup": in the earlier text; docs/speculation.md
  bool prefix_cache = true;     // cached prefixes of prompts are not computed again
  std::string cache_dir = "";   // keeps prefixes in this folder too; empty: in memory only
  int64_t cache_dir_bytes = int64_t{16} << 30;  // size limit of cache_dir
  int64_t tp = 1;                               // processes that share the weights; docs/ranks.md
  int64_t ep = 1;                               // of them, each has whole experts: 1 or tp
  // Groups of these processes, each with its own requests, cache and scheduler; docs/ranks.md.
  int64_t dp = 1;  // a divisor of tp, or tp = 1: then as many processes
  // Ranks of a group that divide the latent cache; docs/ranks.md. Divides the ranks of a group.
  int64_t dcp = 1;
  std::string dp_policy = "balanced";    // or "tokens", "round-robin": the group of a request
  int64_t dp_spread_tokens = 0;          // prompts of this length or more use all groups; 0: auto
  std::string expert_exchange = "auto";  // gather, padded or all-to-all, of tokens for experts

  // Errors: kInvalidArgument naming the field, its value and the accepted range.
  [[nodiscard]] Status Validate() const;

  // The list of fields; latte/fields.h. A new option is a member above and an entry here.
  template <class Visit>
  static void VisitFields(Visit&& visit);
};

template <class Visit>
void EngineOptions::VisitFields(Visit&& visit) {
  constexpr double kMany = 1 << 30;
  constexpr double kManyBytes = static_cast<double>(int64_t{1} << 50);
  visit(
      Field{.name = "model",
            .help = "a Hugging Face folder, a repository id in its cache, or tiny",
            .flag = "MODEL",
            .group = "Model"},
      [](auto& o) -> auto& { return o.model; });
  visit(
      Field{.name = "check_weights",
            .help = "check all weights for NaN and infinity first",
            .expert = true},
      [](auto& o) -> auto& { return o.check_weights; });
  visit(
      Field{.name = "dtype",
            .help = "arithmetic",
            .choices = "bf16, f16 or f32",
            .group = "Computation"},
      [](auto& o) -> auto& { return o.dtype; });
  visit(
      Field{.name = "device", .help = "device of the model: cpu, cuda, or cuda:N for GPU N"},
      [](auto& o) -> auto& { return o.device; });
  visit(
      Field{.name = "cache_dtype",
            .help = "format of the cache",
            .choices = "bf16, f16, f32, fp8, fp8-dense, int8 or q6",
            .may_be_empty = true,
            .fallback = "as --dtype"},
      [](auto& o) -> auto& { return o.cache_dtype; });
  visit(
      Field{
          .name = "attention",
          .help =
              "path of attention; without an indexer, all give the same answer up to the last bits",
          .choices = "auto, decompressed, latent, absorbed or sparse",
          .expert = true},
      [](auto& o) -> auto& { return o.attention; });
  visit(
      Field{.name = "deterministic",
            .help = "on: the same bytes with any other requests; strict: also with any earlier "
                    "content of the cache; off",
            .choices = "strict, on or off",
            .expert = true},
      [](auto& o) -> auto& { return o.deterministic; });
  visit(
      Field{.name = "int8_activations",
            .help = "activations of int4 and int8 weights: int8, or bf16 for the type of --dtype",
            .choices = "int8 or bf16",
            .flag = "--act",
            .expert = true},
      [](auto& o) -> auto& { return o.int8_activations; });
  visit(
      Field{.name = "threads",
            .help = "threads; 0: one per CPU, within the container's quota",
            .range = {0, 1024},
            .flag = "-t,--threads"},
      [](auto& o) -> auto& { return o.threads; });
  visit(
      Field{.name = "page_tokens",
            .help = "tokens per cache page; power of two, 16 to 256",
            .range = {.low = 16, .high = 256, .power_of_two = true},
            .expert = true},
      [](auto& o) -> auto& { return o.page_tokens; });
  visit(
      Field{.name = "prefill_workspace_tokens",
            .help = "cached tokens that prefill expands at once; 0: derived from --context and "
                    "--max-sequences",
            .range = {0, kMany},
            .expert = true},
      [](auto& o) -> auto& { return o.prefill_workspace_tokens; });
  visit(
      Field{.name = "cache_bytes",
            .help = "size of the cache, e.g. 16G; 0: the memory that weights and workspace leave",
            .range = {0, kManyBytes},
            .group = "Memory",
            .bytes = true},
      [](auto& o) -> auto& { return o.cache_bytes; });
  visit(
      Field{.name = "max_tokens",
            .help = "longest sequence, prompt and answer; 0: the model's context, if it fits",
            .range = {0, kMany},
            .flag = "-c,--context"},
      [](auto& o) -> auto& { return o.max_tokens; });
  visit(
      Field{.name = "max_batch_tokens",
            .help = "new tokens per step, decode and prefill together; more than --max-sequences",
            .range = {2, 1 << 20}},
      [](auto& o) -> auto& { return o.max_batch_tokens; });
  visit(
      Field{.name = "max_sequences", .help = "sequences computed at once", .range = {1, 4096}},
      [](auto& o) -> auto& { return o.max_sequences; });
  visit(
      Field{.name = "max_queued_requests",
            .help = "waiting requests",
            .range = {1, kMany},
            .group = "Queue",
            .expert = true},
      [](auto& o) -> auto& { return o.max_queued_requests; });
  visit(
      Field{.name = "max_queued_tokens",
            .help = "prompt tokens of waiting requests",
            .range = {1, kManyBytes},
            .expert = true},
      [](auto& o) -> auto& { return o.max_queued_tokens; });
  visit(
      Field{.name = "aging_steps",
            .help = "a waiting request gains one priority per so many steps",
            .range = {1, 1 << 20},
            .expert = true},
      [](auto& o) -> auto& { return o.aging_steps; });
  visit(
      Field{.name = "draft_tokens",
            .help = "tokens to draft per step and sequence; saves time and changes no answer",
            .choices = "auto, 0, 1, 2, 3 or 4",
            .group = "Speculation"},
      [](auto& o) -> auto& { return o.draft_tokens; });
  visit(
      Field{.name = "drafter",
            .help = "mtp: the model's multi-token-prediction layer; lookup: the tokens that "
                    "followed the last tokens earlier in the text",
            .choices = "mtp or lookup"},
      [](auto& o) -> auto& { return o.drafter; });
  visit(
      Field{.name = "prefix_cache",
            .help = "do not reuse cached prefixes of prompts",
            .flag = "--no-prefix-cache",
            .group = "Prefix cache"},
      [](auto& o) -> auto& { return o.prefix_cache; });
  visit(
      Field{.name = "cache_dir",
            .help = "keep cached prefixes in this folder too",
            .may_be_empty = true,
            .value = "FOLDER"},
      [](auto& o) -> auto& { return o.cache_dir; });
  visit(
      Field{.name = "cache_dir_bytes",
            .help = "size limit of --cache-dir",
            .range = {1, kManyBytes},
            .bytes = true},
      [](auto& o) -> auto& { return o.cache_dir_bytes; });
  visit(
      Field{.name = "tp",
            .help = "processes that share the weights and compute every token together",
            .range = {1, 1024},
            .group = "Ranks"},
      [](auto& o) -> auto& { return o.tp; });
  visit(
      Field{.name = "ep",
            .help = "processes among which whole experts are divided: as --tp; 1: each has a part "
                    "of every expert",
            .range = {1, 1024}},
      [](auto& o) -> auto& { return o.ep; });
  visit(
      Field{.name = "dp",
            .help = "groups of processes, each with its own requests and cache; divides --tp",
            .range = {1, 1024},
            .expected = "a divisor of --tp"},
      [](auto& o) -> auto& { return o.dp; });
  visit(
      Field{.name = "dcp",
            .help = "processes of a group that divide the latent cache: room for longer contexts; "
                    "divides the processes of a group",
            .range = {1, 1024},
            .expected = "a divisor of --tp"},
      [](auto& o) -> auto& { return o.dcp; }, OnlyInCpp());
  visit(
      Field{.name = "dp_policy",
            .help = "choice of a group for a request: balanced: the largest load stays smallest, "
                    "cached prefixes subtracted; tokens: the group with the fewest tokens; "
                    "round-robin: each in turn",
            .choices = "balanced, tokens or round-robin"},
      [](auto& o) -> auto& { return o.dp_policy; });
  visit(
      Field{.name = "dp_spread_tokens",
            .help = "prompts of at least so many tokens are divided among the caches of all "
                    "groups; 0: if that is faster, or no group has room",
            .range = {0, kMany}},
      [](auto& o) -> auto& { return o.dp_spread_tokens; }, OnlyInCpp());
  visit(
      Field{.name = "expert_exchange",
            .help = "exchange of tokens between groups and experts: gather, padded (to equal "
                    "sizes), all-to-all (with --ep) or auto: by cost",
            .choices = "auto, gather, padded or all-to-all"},
      [](auto& o) -> auto& { return o.expert_exchange; });
}

}  // namespace v0_2
}  // namespace latte
