#include "src/capi/event_batch.h"

#include <gtest/gtest.h>

namespace latte::capi::event_batch_test {
namespace {

TokenLogprobs Logprobs(int32_t token, int top) {
  TokenLogprobs logprobs = {.chosen = {token, -0.5f}, .top = {}};
  for (int i = 0; i < top; ++i) logprobs.top.push_back({token + i, -1.0f - static_cast<float>(i)});
  return logprobs;
}

void ExpectSame(const latte_token_logprobs& c, const TokenLogprobs& expected) {
  EXPECT_EQ(c.chosen.token, expected.chosen.token);
  EXPECT_EQ(c.chosen.logprob, expected.chosen.logprob);
  ASSERT_EQ(c.top_count, expected.top.size());
  for (size_t i = 0; i < c.top_count; ++i) {
    EXPECT_EQ(c.top[i].token, expected.top[i].token);
    EXPECT_EQ(c.top[i].logprob, expected.top[i].logprob);
  }
}

TEST(EventBatch, TellsEveryMember) {
  TokenEvent event;
  event.request = 5;
  event.user_data = 6;
  event.choice = 2;
  event.token = 7;
  event.text = std::string("a\0b", 3);
  event.prompt_tokens = 10;
  event.cached_tokens = 4;
  event.queue_seconds = 0.5;
  event.prefill_seconds = 0.25;
  event.generated_tokens = 3;
  event.drafted_tokens = 9;
  event.accepted_tokens = 8;
  event.stop_string = "end";
  // Every member of TokenEvent: a new one does not compile here until latte_event tells it too.
  const auto& [request, user_data, choice, token, text, logprobs, prompt_logprobs, prompt_tokens,
               cached_tokens, queue_seconds, prefill_seconds, generated_tokens, drafted_tokens,
               accepted_tokens, finish, stop_string, error] = event;
  EventBatch batch;
  const latte_event& c = *batch.Convert({&event, 1}).front();
  EXPECT_EQ(c.size, sizeof(latte_event));
  EXPECT_EQ(c.request, request);
  EXPECT_EQ(c.user_data, user_data);
  EXPECT_EQ(c.choice, choice);
  EXPECT_EQ(c.token, token);
  EXPECT_EQ(std::string(c.text.data, c.text.bytes), text);
  EXPECT_EQ(c.logprobs, nullptr);
  EXPECT_EQ(c.prompt_logprob_count, prompt_logprobs.size());
  EXPECT_EQ(c.prompt_tokens, prompt_tokens);
  EXPECT_EQ(c.cached_tokens, cached_tokens);
  EXPECT_EQ(c.queue_seconds, queue_seconds);
  EXPECT_EQ(c.prefill_seconds, prefill_seconds);
  EXPECT_EQ(c.generated_tokens, generated_tokens);
  EXPECT_EQ(c.drafted_tokens, drafted_tokens);
  EXPECT_EQ(c.accepted_tokens, accepted_tokens);
  EXPECT_EQ(std::string(c.stop_string.data, c.stop_string.bytes), stop_string);
  EXPECT_EQ(c.finish, finish ? -1 : LATTE_FINISH_NONE);
  EXPECT_EQ(c.error_code, LATTE_OK);
  EXPECT_STREQ(c.error_message, "");
  EXPECT_EQ(error.message, "");
}

TEST(EventBatch, TellsHowAnAnswerEnded) {
  TokenEvent event;
  event.finish = FinishReason::kError;
  event.error = {Code::kUnsupported, "why"};
  EventBatch batch;
  const latte_event failed = *batch.Convert({&event, 1}).front();
  EXPECT_EQ(failed.token, -1);
  EXPECT_EQ(failed.finish, LATTE_FINISH_ERROR);
  EXPECT_EQ(failed.error_code, LATTE_UNSUPPORTED);
  EXPECT_STREQ(failed.error_message, "why");
  event.finish = FinishReason::kStop;  // the error means nothing then
  const latte_event stopped = *batch.Convert({&event, 1}).front();
  EXPECT_EQ(stopped.finish, LATTE_FINISH_STOP);
  EXPECT_EQ(stopped.error_code, LATTE_OK);
  EXPECT_STREQ(stopped.error_message, "");
}

// All alternatives lie in one array. One that grew under the addresses of the first would not be
// one, although what it left behind may still read the same.
void ExpectAdjacent(std::span<const latte_event* const> events) {
  const latte_logprob* end = nullptr;
  const auto check = [&](const latte_token_logprobs& token) {
    if (end != nullptr) {
      EXPECT_EQ(token.top, end);
    }
    end = token.top + token.top_count;
  };
  for (const latte_event* event : events) {
    if (event->logprobs != nullptr) check(*event->logprobs);
    for (size_t i = 0; i < event->prompt_logprob_count; ++i) check(event->prompt_logprobs[i]);
  }
}

TEST(EventBatch, LogprobsOfAllEventsStayWhereTheyAre) {
  std::vector<TokenEvent> events(100);
  for (int i = 0; i < 100; ++i) {
    TokenEvent& event = events[static_cast<size_t>(i)];
    if (i % 3 != 0) event.logprobs = Logprobs(i, i % 21);
    for (int t = 0; t < i % 5; ++t) event.prompt_logprobs.push_back(Logprobs(1000 + t, t));
  }
  EventBatch batch;
  for (const size_t count : {size_t{10}, size_t{100}, size_t{50}}) {
    const auto converted = batch.Convert(std::span(events).first(count));
    ASSERT_EQ(converted.size(), count);
    ExpectAdjacent(converted);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(converted[i]->logprobs != nullptr, events[i].logprobs.has_value());
      if (events[i].logprobs) ExpectSame(*converted[i]->logprobs, *events[i].logprobs);
      ASSERT_EQ(converted[i]->prompt_logprob_count, events[i].prompt_logprobs.size());
      for (size_t t = 0; t < events[i].prompt_logprobs.size(); ++t)
        ExpectSame(converted[i]->prompt_logprobs[t], events[i].prompt_logprobs[t]);
    }
  }
}

}  // namespace
}  // namespace latte::capi::event_batch_test
