// One step's events in the structs of the C API.
#pragma once

#include <span>
#include <vector>

#include "latte/latte.h"
#include "latte/request.h"

namespace latte::capi {

// Keeps its memory from step to step. Thread-compatible.
class EventBatch {
 public:
  // The events, which point into `events` and into this batch: valid until the next call.
  std::span<const latte_event* const> Convert(std::span<const TokenEvent> events);

 private:
  void Reserve(std::span<const TokenEvent> events);
  // Appends to logprobs_ and top_. Requires: Reserve made room, so that nothing moves.
  const latte_token_logprobs* Add(const TokenLogprobs& logprobs);
  latte_event ToC(const TokenEvent& event);

  std::vector<latte_event> events_;
  std::vector<const latte_event*> pointers_;
  std::vector<latte_token_logprobs> logprobs_;
  std::vector<latte_logprob> top_;
};

}  // namespace latte::capi
