#include "src/engine/link/engine_messages.h"

#include <gtest/gtest.h>

#include "src/base/random.h"

namespace latte::engine_messages_test {
namespace {

Request FullRequest() {
  Request r;
  r.prompt = "once";
  r.tokens = {1, 2, 300};
  r.parse_special = true;
  r.sampling.temperature = 0.25;
  r.sampling.top_k = 7;
  r.sampling.logit_bias = {{3, 0.5f}, {9, -100.0f}};
  r.sampling.seed = ~uint64_t{0};
  r.stop.max_tokens = 11;
  r.stop.ignore_eos = true;
  r.stop.tokens = {4, 5};
  r.stop.strings = {"a", std::string("b\0c", 3)};
  r.n = 3;
  r.logprobs = 0;
  r.priority = -2;
  r.cache_salt = "salt";
  r.user_data = uint64_t{1} << 63;
  return r;
}

TokenEvent FullEvent() {
  TokenEvent e;
  e.request = 8;
  e.user_data = 9;
  e.choice = 2;
  e.token = -1;
  e.text = "é";
  e.logprobs = {{5, -0.5f}, {{6, -1.0f}, {7, -2.0f}}};
  e.prompt_logprobs = {{{1, -3.0f}, {}}, {{2, -4.0f}, {{3, -5.0f}}}};
  e.prompt_tokens = 30;
  e.cached_tokens = 20;
  e.queue_seconds = 0.125;
  e.prefill_seconds = 0.5;
  e.generated_tokens = 12;
  e.drafted_tokens = 6;
  e.accepted_tokens = 4;
  e.stop_string = "end";
  e.finish = FinishReason::kError;
  e.error = {Code::kExhausted, "no room"};
  return e;
}

template <class T>
std::vector<std::byte> Written(const T& value) {
  WireWriter out;
  Write(value, out);
  return out.Take();
}

// A value that was read is written as the same message again.
template <class T, class Read>
void ExpectSame(const T& value, const Read& read) {
  const std::vector<std::byte> message = Written(value);
  WireReader in(message);
  EXPECT_EQ(Written(read(in)), message);
  EXPECT_TRUE(in.ok());
}

TEST(EngineMessages, ARequestIsReadAsItWasWritten) {
  ExpectSame(FullRequest(), ReadRequest);
  ExpectSame(Request(), ReadRequest);
  EXPECT_NE(Written(FullRequest()), Written(Request()));
  const std::vector<std::byte> message = Written(FullRequest());
  WireReader in(message);
  const Request read = ReadRequest(in);
  EXPECT_EQ(read.prompt, "once");
  EXPECT_EQ(read.tokens, FullRequest().tokens);
  EXPECT_EQ(read.sampling.logit_bias, FullRequest().sampling.logit_bias);
  EXPECT_EQ(read.sampling.seed, ~uint64_t{0});
  EXPECT_EQ(read.sampling.temperature, 0.25);
  EXPECT_EQ(read.stop.strings, FullRequest().stop.strings);
  EXPECT_EQ(read.stop.max_tokens, 11);
  EXPECT_EQ(read.n, 3);
  EXPECT_EQ(read.cache_salt, "salt");
  EXPECT_EQ(read.user_data, uint64_t{1} << 63);
}

TEST(EngineMessages, AnEventIsReadAsItWasWritten) {
  ExpectSame(FullEvent(), ReadEvent);
  ExpectSame(TokenEvent(), ReadEvent);
  const std::vector<std::byte> message = Written(FullEvent());
  WireReader in(message);
  const TokenEvent read = ReadEvent(in);
  EXPECT_EQ(read.request, 8U);
  EXPECT_EQ(read.choice, 2);
  EXPECT_EQ(read.token, -1);
  EXPECT_EQ(read.text, "é");
  EXPECT_EQ(read.logprobs->top[1].logprob, -2.0f);
  EXPECT_EQ(read.prompt_logprobs[1].top[0].token, 3);
  EXPECT_EQ(read.user_data, 9U);
  EXPECT_EQ(read.prompt_tokens, 30);
  EXPECT_EQ(read.cached_tokens, 20);
  EXPECT_EQ(read.queue_seconds, 0.125);
  EXPECT_EQ(read.prefill_seconds, 0.5);
  EXPECT_EQ(read.generated_tokens, 12);
  EXPECT_EQ(read.drafted_tokens, 6);
  EXPECT_EQ(read.accepted_tokens, 4);
  EXPECT_EQ(read.stop_string, "end");
  EXPECT_EQ(read.finish, FinishReason::kError);
  EXPECT_EQ(read.error.code, Code::kExhausted);
  EXPECT_EQ(read.error.message, "no room");
}

TEST(EngineMessages, CountersAreReadAsTheyWereWritten) {
  EngineStats stats;
  stats.waiting = 1;
  stats.pages_used = 2;
  stats.step_seconds = 0.5;
  stats.accepted_tokens = 3;
  stats.masks = 21;
  stats.mask_seconds = 0.5;
  stats.mask_wait_seconds = 0.25;
  ExpectSame(stats, ReadStats);
  EXPECT_EQ(Written(stats).size(), sizeof(stats)) << "a counter is missing";
}

// No count or length of a broken message makes the reader crash, or take memory for more than the
// message.
TEST(EngineMessages, ABrokenMessageFails) {
  const TokenEvent one = FullEvent();
  WireWriter out;
  Write(FullRequest(), out);
  WriteEvents(std::vector<TokenEvent>{one, one}, out);
  const std::vector<std::byte> message = out.Take();
  const auto reads = [](std::span<const std::byte> bytes) {
    WireReader in(bytes);
    (void)ReadRequest(in);
    (void)ReadEvents(in);
    return in.ok();
  };
  ASSERT_TRUE(reads(message));
  for (size_t size = 0; size < message.size(); ++size)
    EXPECT_FALSE(reads(std::span(message).first(size))) << size << " bytes";
  Random random(1);
  for (int i = 0; i < 5000; ++i) {
    std::vector<std::byte> other = message;
    other[random.Below(other.size())] ^= static_cast<std::byte>(1 + random.Below(255));
    (void)reads(other);
  }
}

}  // namespace
}  // namespace latte::engine_messages_test
