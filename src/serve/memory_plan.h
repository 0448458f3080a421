// The memory plan of an engine, which is printed before weights are loaded: the memory that it
// needs, and the contexts and sequences that fit. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace latte {

struct MemoryPlan {
  std::optional<int64_t> available_bytes;  // before loading; none: unknown
  int64_t weight_bytes = 0;
  int64_t workspace_bytes = 0;   // of prefill; on a GPU of all that steps need
  int64_t workspace_tokens = 0;  // that it holds
  int64_t page_bytes = 0;        // over all layers
  int64_t page_tokens = 0;
  int64_t pages = 0;                   // of all processes that divide a cache
  int64_t max_tokens = 0;              // of the longest sequence
  int64_t spread_tokens = 0;           // of the longest that is spread over groups; 0: none is
  int64_t model_tokens = 0;            // the model's context
  int64_t asked_tokens = 0;            // --context; 0: the model's context
  int64_t wanted_workspace_bytes = 0;  // if the longest sequence had wanted_tokens()
  int64_t wanted_cache_bytes = 0;      // of a process, for such a sequence alone
  int64_t max_sequences = 0;           // at once, whatever their length
  std::string cache_dtype;
  int64_t processes = 1;    // that share the weights; each has a workspace and a cache
  int64_t cache_ranks = 1;  // processes that divide a cache
  std::string gpu = {};     // whose memory it is: "cuda:0 'NVIDIA H200'"; empty: the host's

  // Of one process.
  int64_t pages_of_rank() const { return pages / cache_ranks; }
  int64_t cache_bytes() const { return pages_of_rank() * page_bytes; }
  int64_t total_bytes() const {
    return weight_bytes + processes * (workspace_bytes + cache_bytes());
  }
  // The context of --context or the model, but no longer than the model's.
  int64_t wanted_tokens() const;
  // What remains of the available memory; negative: what is missing. None: unknown.
  std::optional<int64_t> left_bytes() const;
  // Sequences of so many tokens that run at once, without shared prefixes.
  int64_t Sequences(int64_t tokens) const;
};

// Lines for people, each ending in a line break.
std::string MemoryPlanText(const MemoryPlan& plan);
// One JSON object.
std::string MemoryPlanJson(const MemoryPlan& plan);

}  // namespace latte
