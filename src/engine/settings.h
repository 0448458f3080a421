// The resolved options of an engine: parsed, and filled in for one model on one machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "latte/options.h"

#include "src/cache/page_owners.h"
#include "src/engine/attention_mode.h"
#include "src/kernels/machine.h"
#include "src/layers/mla/calibration.h"
#include "src/layers/path_groups.h"
#include "src/layers/ranks.h"

namespace latte {

inline constexpr int64_t kMostDrafts = 4;  // per step and sequence

struct Settings {
  EngineOptions options;  // cache_bytes, max_tokens, prefill_workspace_tokens filled in
  AttentionMode attention = AttentionMode::kAuto;
  Determinism deterministic = Determinism::kOn;
  DType dtype = DType::kBF16;
  ExpertExchange expert_exchange = ExpertExchange::kAuto;
  CacheDType cache;
  CacheSpec cache_spec;
  int64_t sparse_from = kNeverSparse;  // SparseFrom of attention_mode.h
  IndexerDims indexer = {};            // of the model, if tokens choose keys; else heads == 0
  int64_t longest = 0;                 // sequence, if the cache held it: of --context or the model
  int64_t pages = 0;                   // of all ranks that divide the cache
  int64_t spread = 1;                  // groups that divide it (docs/ranks.md)
  int64_t draft_tokens = 0;            // most per step and sequence; 0: none
  bool adapts_drafts = false;          // to how many are accepted and what they cost
  bool drafts_by_mtp = false;
  MlaRates rates;
  std::string rates_warning;  // for the user: why a file of rates is ignored; usually empty

  PageOwners owners() const { return {options.dcp * spread, options.page_tokens}; }
  int64_t pages_of_rank() const { return pages / owners().count; }

  // The path of a prompt.
  MlaPath PathOf(const MlaDims& dims, int64_t new_tokens, int64_t cached_tokens) const;

  // Sets the cache's pages to the need of one sequence of `computed` tokens. The engine samples one
  // more token, which it never computes, so max_tokens is computed + 1.
  void SizeForOne(int64_t computed);
};

// Whether the model should be loaded with its drafting layer.
bool NeedsMtp(const EngineOptions& options, const ModelConfig& config);

// Memory for weights, workspace and cache.
struct MemoryRoom {
  std::optional<int64_t> available_bytes;  // none: unknown
  int64_t weight_bytes = 0;                // of them
  int64_t processes = 1;  // ranks on this machine: they share the weights, each has a cache
  std::string gpu = {};   // whose memory it is: "cuda:0 'NVIDIA H200'"; empty: the host's
  // What steps take on a GPU besides the prefill workspace. On the host memory is taken as it is
  // touched.
  int64_t step_bytes = 0;

  // Whether weights are read from disk again and again. A GPU must hold them.
  bool exceeds_memory() const {
    return gpu.empty() && available_bytes && weight_bytes > *available_bytes;
  }
  // For workspace and cache of one process.
  int64_t free_bytes() const {
    return (available_bytes.value_or(0) - weight_bytes - step_bytes) / processes;
  }
};

// The paths that an engine's steps may take.
std::vector<MlaPath> PathsOf(const Settings& settings);

// `room` is used where options.cache_bytes is 0: if the context does not fit, it becomes
// LargestContext. `share`: of the weights, if this is one of several ranks. Errors: of
// EngineOptions::Validate; kInvalidArgument for values that do not go together; kExhausted when
// fewer than two pages fit; kUnavailable when the room is needed and unknown.
[[nodiscard]] Result<Settings> ResolveOptions(const EngineOptions& options,
                                              const ModelConfig& config, const Machine& machine,
                                              const MemoryRoom& room, const RankShare& share = {});

// The settings of an engine that serves one sequence at a time, of up to `computed` tokens: its
// cache holds that sequence and nothing else. options.max_sequences, max_tokens and cache_bytes are
// ignored. Errors: as ResolveOptions, without the errors of memory.
[[nodiscard]] Result<Settings> ResolveOptionsForOne(const EngineOptions& options,
                                                    const ModelConfig& config,
                                                    const Machine& machine, int64_t computed,
                                                    const RankShare& share = {});

// The workspace of prefill in cached tokens, as documented at EngineOptions. The rule is vLLM's
// (chunked prefill of MLA): room for eight of the longest prompts, or for four pages of every
// sequence, but no more than 128 Ki tokens.
int64_t PrefillWorkspaceTokens(int64_t max_tokens, int64_t max_sequences, int64_t page_tokens);

// The cached tokens that are expanded at a time: prefill_workspace_tokens, but sequences are
// expanded one after the other, so no more than one sequence has. `options`: filled in, as in
// Settings.
int64_t ExpandedTokens(const EngineOptions& options);

// The memory for them. Activations are a small part of a step's scratch memory, compared with
// expanded keys and values.
int64_t PrefillWorkspaceBytes(const ModelConfig& config, const EngineOptions& options);

// The longest sequence whose cached tokens and prefill workspace fit in `free_bytes`, as Latte
// chooses it by default: a multiple of a page, or options.max_tokens; 0 if not even a page fits.
// `options`: max_tokens and prefill_workspace_tokens filled in.
int64_t LargestContext(const ModelConfig& config, const EngineOptions& options,
                       const CacheSpec& cache, int64_t free_bytes);

// At least as much as the scratch memory of a step, with activations: for Workspace::Reserve.
int64_t StepWorkspaceBytes(const ModelConfig& config, const EngineOptions& options);

}  // namespace latte
