#include "src/capi/event_batch.h"

#include "src/capi/convert.h"

namespace latte::capi {

std::span<const latte_event* const> EventBatch::Convert(std::span<const TokenEvent> events) {
  Reserve(events);
  for (const TokenEvent& event : events) {
    events_.push_back(ToC(event));
    pointers_.push_back(&events_.back());
  }
  return pointers_;
}

void EventBatch::Reserve(std::span<const TokenEvent> events) {
  size_t logprobs = 0;
  size_t top = 0;
  for (const TokenEvent& event : events) {
    logprobs += event.prompt_logprobs.size() + (event.logprobs ? 1 : 0);
    top += event.logprobs ? event.logprobs->top.size() : 0;
    for (const TokenLogprobs& token : event.prompt_logprobs) top += token.top.size();
  }
  events_.clear();
  pointers_.clear();
  logprobs_.clear();
  top_.clear();
  events_.reserve(events.size());
  pointers_.reserve(events.size());
  logprobs_.reserve(logprobs);
  top_.reserve(top);
}

const latte_token_logprobs* EventBatch::Add(const TokenLogprobs& logprobs) {
  const latte_logprob* top = top_.data() + top_.size();
  for (const TokenLogprob& one : logprobs.top) top_.push_back({one.token, one.logprob});
  logprobs_.push_back({{logprobs.chosen.token, logprobs.chosen.logprob}, top, logprobs.top.size()});
  return &logprobs_.back();
}

latte_event EventBatch::ToC(const TokenEvent& event) {
  const bool failed = event.finish == FinishReason::kError;
  latte_event out = {.size = sizeof(latte_event),
                     .request = event.request,
                     .choice = event.choice,
                     .token = event.token.value_or(-1),
                     .text = {event.text.c_str(), event.text.size()},
                     .logprobs = event.logprobs ? Add(*event.logprobs) : nullptr,
                     .prompt_logprobs = nullptr,
                     .prompt_logprob_count = event.prompt_logprobs.size(),
                     .prompt_tokens = event.prompt_tokens,
                     .cached_tokens = event.cached_tokens,
                     .generated_tokens = event.generated_tokens,
                     .finish = event.finish ? capi::ToC(*event.finish) : LATTE_FINISH_NONE,
                     .error_code = failed ? capi::ToC(event.error.code) : LATTE_OK,
                     .error_message = failed ? event.error.message.c_str() : "",
                     .user_data = event.user_data,
                     .queue_seconds = event.queue_seconds,
                     .prefill_seconds = event.prefill_seconds,
                     .drafted_tokens = event.drafted_tokens,
                     .accepted_tokens = event.accepted_tokens,
                     .stop_string = {event.stop_string.c_str(), event.stop_string.size()}};
  for (const TokenLogprobs& token : event.prompt_logprobs) {
    const latte_token_logprobs* added = Add(token);
    if (out.prompt_logprobs == nullptr) out.prompt_logprobs = added;
  }
  return out;
}

}  // namespace latte::capi
