// The scheduler's view of one unfinished output. Its owner adds it, and keeps it until the
// scheduler has removed it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/layers/step_context.h"

namespace latte {

struct Output;  // the owner's; the scheduler does not look into it

using SequenceId = int64_t;

// Chosen by the owner.
struct SequenceSpec {
  SequenceId id = 0;
  std::string salt;           // prefixes are shared only under equal salts
  int64_t max_len = 0;        // prompt and output together; more than the prompt
  int priority = 0;           // lower is served first
  int outputs = 1;            // sequences that the prompt will be forked into, itself included
  bool reuses_prefix = true;  // off where logits of all prompt tokens are wanted
};

enum class SequenceState {
  kWaiting,  // for admission; after a preemption, again
  kLoading,  // admitted; pages of its prefix are being read from disk
  kRunning,  // computed step by step
  kEnded,    // removed from the scheduler; holds no pages
};

// Invariants: shared_len ≤ cached_len < tokens.size(); `pages` has room for cached_len tokens;
// waiting sequences hold the pages of shared_len and no more.
struct Sequence {
  SequenceSpec spec;
  std::vector<int32_t> tokens;  // the prompt, then the generated tokens
  std::vector<int32_t> drafts;  // guesses of the tokens after those, to be computed along with the
                                // last one; what is in the cache for them is no part of cached_len
  Output* output = nullptr;     // that it is part of; null in a simulation
  bool held = false;            // sits out while only its last token is left to compute
  // The scheduler's own from here on.
  int64_t prompt_len = 0;
  SequenceState state = SequenceState::kWaiting;
  int64_t rank = 0;              // place in the queue: spec.priority and time of arrival in one
  int64_t cached_len = 0;        // tokens whose rows are in the cache
  int64_t shared_len = 0;        // of them, found in the prefix cache at admission; kept through a
                                 // preemption, because the path depends on it
  int64_t loaded_len = 0;        // of the shared ones, read from disk
  int64_t inserted_len = 0;      // tokens offered to the prefix cache so far
  bool admitted_before = false;  // the path is chosen
  int64_t prompt_len_for_path = 0;  // tokens before it take prompt_path, later ones the path of
                                    // decoding
  MlaPath prompt_path = MlaPath::kLatent;
  std::vector<int32_t> pages;
  std::vector<int32_t> with_drafts;  // the last token and the drafts of the planned step
  int preemptions = 0;

  int64_t length() const { return static_cast<int64_t>(tokens.size()); }
  int64_t remain_len() const { return length() - cached_len; }  // tokens still to compute
};

}  // namespace latte
