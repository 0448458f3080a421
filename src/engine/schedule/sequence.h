// One answer in the making: the only state that a sequence has for the scheduler.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/layers/step_context.h"

namespace latte {

using SequenceId = int64_t;

// What a sequence is made of.
struct SequenceSpec {
  SequenceId id = 0;
  std::string salt;           // prefixes are shared only under equal salts
  int64_t max_len = 0;        // prompt and answer together; more than the prompt
  int priority = 0;           // lower is served first
  int answers = 1;            // sequences that the prompt will be forked into, itself included
  bool reuses_prefix = true;  // off where logits of all prompt tokens are wanted
};

enum class SequenceState {
  kWaiting,  // for admission; after a preemption, again
  kLoading,  // admitted; pages of its prefix are being read from disk
  kRunning,  // computed step by step
};

// Invariants: shared_len ≤ cached_len < tokens.size(); `pages` has room for cached_len tokens;
// waiting sequences hold the pages of shared_len and no more.
struct Sequence {
  SequenceSpec spec;
  std::vector<int32_t> tokens;  // the prompt, then what was generated
  int64_t prompt_len = 0;
  SequenceState state = SequenceState::kWaiting;
  int64_t rank = 0;              // place in the queue: spec.priority and time of arrival in one
  int64_t cached_len = 0;        // tokens whose rows are in the cache
  int64_t shared_len = 0;        // of them, found in the prefix cache at admission; stay through a
                                 // preemption, as the path was chosen for what was left
  int64_t loaded_len = 0;        // of those, read from disk
  int64_t inserted_len = 0;      // tokens offered to the prefix cache so far
  bool admitted_before = false;  // what follows is chosen
  int64_t prompt_path_end = 0;   // tokens before it are computed by prompt_path, the others as
                                 // generated ones
  MlaPath prompt_path = MlaPath::kLatent;
  std::vector<int32_t> pages;
  int preemptions = 0;

  int64_t length() const { return static_cast<int64_t>(tokens.size()); }
  int64_t remain_len() const { return length() - cached_len; }  // tokens still to compute
};

}  // namespace latte
