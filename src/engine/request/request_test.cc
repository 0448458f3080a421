#include "latte/request.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace latte::request_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr float kNanF = std::numeric_limits<float>::quiet_NaN();

// What Validate says of it; empty: nothing.
template <class T>
std::string Complaint(const T& value) {
  const Status status = value.Validate();
  if (status) return "";
  EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  return status.error().message;
}

TEST(SamplingParams, ValidateNamesFieldValueAndRange) {
  EXPECT_EQ(Complaint(SamplingParams{}), "");
  EXPECT_EQ(Complaint(SamplingParams{.temperature = -1}),
            "temperature: expected a number in [0, 100], found -1");
  EXPECT_EQ(Complaint(SamplingParams{.top_k = -1}), "top_k: expected 0 (all) or more, found -1");
  EXPECT_EQ(Complaint(SamplingParams{.top_p = 1.5}),
            "top_p: expected a number in (0, 1], found 1.5");
  EXPECT_EQ(Complaint(SamplingParams{.top_p = 0}), "top_p: expected a number in (0, 1], found 0");
  EXPECT_EQ(Complaint(SamplingParams{.min_p = 2}), "min_p: expected a number in [0, 1], found 2");
  EXPECT_EQ(Complaint(SamplingParams{.repetition_penalty = 0}),
            "repetition_penalty: expected a number in (0, 100], found 0");
  EXPECT_EQ(Complaint(SamplingParams{.repetition_penalty = 101}),
            "repetition_penalty: expected a number in (0, 100], found 101");
  EXPECT_EQ(Complaint(SamplingParams{.presence_penalty = -2.5}),
            "presence_penalty: expected a number in [-2, 2], found -2.5");
  EXPECT_EQ(Complaint(SamplingParams{.frequency_penalty = 3}),
            "frequency_penalty: expected a number in [-2, 2], found 3");
}

TEST(SamplingParams, NanIsRefusedEverywhere) {
  for (const SamplingParams& bad :
       {SamplingParams{.temperature = kNan}, SamplingParams{.top_p = kNan},
        SamplingParams{.min_p = kNan}, SamplingParams{.repetition_penalty = kNan},
        SamplingParams{.presence_penalty = kNan}, SamplingParams{.frequency_penalty = kNan},
        SamplingParams{.logit_bias = {{3, kNanF}}}})
    EXPECT_NE(Complaint(bad).find("found nan"), std::string::npos);
}

TEST(SamplingParams, LogitBiasIsBounded) {
  EXPECT_EQ(Complaint(SamplingParams{.logit_bias = {{0, -100.0f}, {7, 100.0f}}}), "");
  EXPECT_EQ(Complaint(SamplingParams{.logit_bias = {{7, 100.5f}}}),
            "logit_bias of token 7: expected a number in [-100, 100], found 100.5");
  EXPECT_EQ(Complaint(SamplingParams{.logit_bias = {{-1, 0.0f}}}),
            "logit_bias: expected token ids of 0 or more, found -1");
  SamplingParams many;
  many.logit_bias.resize(1025);
  EXPECT_EQ(Complaint(many), "logit_bias: expected at most 1024 tokens, found 1025");
}

TEST(StopConditions, ValidateNamesFieldValueAndRange) {
  EXPECT_EQ(Complaint(StopConditions{.tokens = {1}, .strings = {"\n"}}), "");
  EXPECT_EQ(Complaint(StopConditions{.max_tokens = -1}),
            "max_tokens: expected 0 or more, found -1");
  EXPECT_EQ(Complaint(StopConditions{.max_tokens = 0}), "");  // the prompt's logprobs alone
  EXPECT_EQ(Complaint(StopConditions{.max_tokens = 5, .min_tokens = 6}),
            "min_tokens: expected a number in [0, max_tokens = 5], found 6");
  EXPECT_EQ(Complaint(StopConditions{.min_tokens = -1}),
            "min_tokens: expected a number in [0, max_tokens = 256], found -1");
  EXPECT_EQ(Complaint(StopConditions{.tokens = {-4}}),
            "stop tokens: expected token ids of 0 or more, found -4");
  EXPECT_EQ(Complaint(StopConditions{.tokens = std::vector<int32_t>(129)}),
            "stop tokens: expected at most 128 ids, found 129");
  EXPECT_EQ(Complaint(StopConditions{.strings = std::vector<std::string>(17, "a")}),
            "stop: expected at most 16 strings, found 17");
  EXPECT_EQ(Complaint(StopConditions{.strings = {""}}),
            "stop: expected strings of 1 to 256 bytes, found one of 0");
  EXPECT_EQ(Complaint(StopConditions{.strings = {std::string(257, 'a')}}),
            "stop: expected strings of 1 to 256 bytes, found one of 257");
  EXPECT_EQ(Complaint(StopConditions{.strings = {"\xa9"}}),
            "stop: expected UTF-8 text, found a string that is not");
}

TEST(Request, ValidateLooksAtAllOfIt) {
  EXPECT_EQ(Complaint(Request{}), "");
  EXPECT_EQ(Complaint(Request{.tokens = {1, -2}}),
            "tokens: expected token ids of 0 or more, found -2");
  EXPECT_NE(Complaint(Request{.sampling = {.top_p = 7}}), "");
  EXPECT_NE(Complaint(Request{.stop = {.max_tokens = -1}}), "");
  EXPECT_EQ(Complaint(Request{.n = 0}), "n: expected a number in [1, 64], found 0");
  EXPECT_EQ(Complaint(Request{.n = 65}), "n: expected a number in [1, 64], found 65");
  EXPECT_EQ(Complaint(Request{.logprobs = 21}),
            "logprobs: expected a number in [0, 20], or -1 for none, found 21");
  EXPECT_EQ(Complaint(Request{.logprobs = -2}),
            "logprobs: expected a number in [0, 20], or -1 for none, found -2");
  EXPECT_EQ(Complaint(Request{.prompt_logprobs = 21}),
            "prompt_logprobs: expected a number in [0, 20], or -1 for none, found 21");
}

TEST(FinishReason, EveryOneHasItsName) {
  EXPECT_EQ(Name(FinishReason::kStop), "stop");
  EXPECT_EQ(Name(FinishReason::kLength), "length");
  EXPECT_EQ(Name(FinishReason::kCancelled), "cancelled");
  EXPECT_EQ(Name(FinishReason::kError), "error");
}

}  // namespace
}  // namespace latte::request_test
