// From sampled tokens to the events that the caller receives: one event per token of an output.
#pragma once

#include <span>
#include <vector>

#include "src/engine/request/request_state.h"

namespace latte {

// Stop tokens that must not be sampled now, because the output is below min_tokens.
std::span<const int32_t> BannedTokens(const Output& output);

// The events of a step, and counters of all steps. Engine-thread only.
class OutputStreams {
 public:
  explicit OutputStreams(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  // Takes a sampled token and emits its event. Returns whether the output ends with it. `length`:
  // of the sequence with the token.
  bool Accept(Output& output, const SampledToken& sampled, int64_t length);

  // Emits the last event of an output, and of the outputs that were still to be forked from it.
  void End(Output& output, FinishReason reason, const Error& error);

  std::vector<TokenEvent>& events() { return events_; }
  int64_t finished() const { return finished_; }
  int64_t failed() const { return failed_; }
  int64_t cancelled() const { return cancelled_; }
  int64_t generated() const { return generated_; }

 private:
  TokenEvent NewEvent(Output& output);
  std::string EchoText(const Output& output) const;

  const Tokenizer* tokenizer_;  // null: answers have no text
  std::vector<TokenEvent> events_;
  int64_t finished_ = 0;
  int64_t failed_ = 0;
  int64_t cancelled_ = 0;
  int64_t generated_ = 0;
};

}  // namespace latte
