// Serves a single request from start to end, for a command with its own engine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "latte/engine.h"

namespace latte {

struct Completion {
  std::vector<int32_t> tokens;  // generated, a final end-of-sequence token excluded
  std::string text;             // of the tokens; empty without a tokenizer
  FinishReason reason = FinishReason::kLength;
  int64_t cached_tokens = 0;    // of the prompt, found in the prefix cache
  int64_t drafted_tokens = 0;   // guesses of tokens that steps computed
  int64_t accepted_tokens = 0;  // of them, tokens of the answer
  double prompt_seconds = 0;    // until the first token was sampled: time to first token
  double generate_seconds = 0;  // from the first token to the last
};

// Called after every step with each of its events; null for a step that only computed a chunk of
// the prompt. False cancels the request. The last event comes even after that: it may hold the end
// of the text.
using StepSink = std::function<bool(const TokenEvent* event)>;

// Requires: request.n is 1, and `engine` serves nothing else. Errors: of Engine::Submit and Step;
// the request's own (TokenEvent::error).
[[nodiscard]] Result<Completion> Complete(Engine& engine, Request request,
                                          const StepSink& on_step = {});

}  // namespace latte
