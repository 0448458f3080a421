#include "src/jobs/simulate/trace.h"

#include <cmath>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/scratch_dir.h"

namespace latte::trace_test {
namespace {

constexpr TraceLimits kLimits = {.vocab = 100, .max_tokens = 1000};

TEST(Trace, HasTheAskedMeansAndTheSameSeedTheSameTrace) {
  const TraceShape shape = {.requests = 4000, .rate = 10, .prompt_mean = 100, .output_mean = 20};
  const auto trace = MakeTrace(shape, kLimits);
  ASSERT_TRUE(trace);
  double prompts = 0;
  double outputs = 0;
  for (const TraceRequest& request : *trace) {
    prompts += static_cast<double>(request.tokens.size());
    outputs += static_cast<double>(request.output_tokens);
  }
  // Within four standard errors.
  EXPECT_NEAR(prompts / 4000, 100, 4);
  EXPECT_NEAR(outputs / 4000, 20, 1);
  EXPECT_NEAR(trace->back().arrival_s, 400, 26);
  const auto again = MakeTrace(shape, kLimits);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->back().tokens, trace->back().tokens);
  EXPECT_EQ(again->back().arrival_s, trace->back().arrival_s);
}

TEST(Trace, PromptsOfAGroupBeginAlike) {
  const TraceShape shape = {.requests = 50, .shared_prefix = 30, .prefix_groups = 2};
  const auto trace = MakeTrace(shape, kLimits);
  ASSERT_TRUE(trace);
  std::vector<std::vector<int32_t>> beginnings;
  for (const TraceRequest& request : *trace) {
    ASSERT_GT(request.tokens.size(), 30u);
    const std::vector<int32_t> begin(request.tokens.begin(), request.tokens.begin() + 30);
    if (std::find(beginnings.begin(), beginnings.end(), begin) == beginnings.end())
      beginnings.push_back(begin);
  }
  EXPECT_EQ(beginnings.size(), 2u);
  EXPECT_NE((*trace)[0].tokens.back(), (*trace)[1].tokens.back());
}

TEST(Trace, LengthsAreCutToTheLimits) {
  const TraceShape shape = {.requests = 300, .prompt_mean = 900, .output_mean = 900};
  const auto trace = MakeTrace(shape, kLimits);
  ASSERT_TRUE(trace);
  for (const TraceRequest& request : *trace) {
    EXPECT_GE(request.output_tokens, 1);
    EXPECT_LE(std::ssize(request.tokens) + request.output_tokens, kLimits.max_tokens);
  }
  const auto refused = MakeTrace({.shared_prefix = 999}, kLimits);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--shared-prefix"), std::string::npos);
  EXPECT_FALSE(MakeTrace({.rate = -1}, kLimits));
}

class TraceFile : public testing::Test {
 protected:
  Result<std::vector<TraceRequest>> Load(const std::string& text) {
    const std::string path = dir_.path() + "/trace.jsonl";
    std::ofstream(path) << text;
    return LoadTrace(path, {.shared_prefix = 4}, kLimits);
  }
  testing_support::ScratchDir dir_;
};

TEST_F(TraceFile, IsReadInOrderOfArrival) {
  const auto trace = Load(R"({"arrival_s": 2, "tokens": [5, 6], "output_tokens": 3}

{"arrival_s": 1, "prompt_tokens": 8, "output_tokens": 4, "prefix_group": 1, "priority": -2}
{"arrival_s": 1, "prompt_tokens": 3, "output_tokens": 4, "prefix_group": 1})");
  ASSERT_TRUE(trace) << ToString(trace.error());
  ASSERT_EQ(trace->size(), 3u);
  EXPECT_EQ((*trace)[2].tokens, (std::vector<int32_t>{5, 6}));
  EXPECT_EQ((*trace)[2].output_tokens, 3);
  EXPECT_EQ((*trace)[0].priority, -2);
  EXPECT_EQ((*trace)[0].tokens.size(), 8u);
  const auto& first = (*trace)[0].tokens;
  EXPECT_EQ((*trace)[1].tokens, std::vector<int32_t>(first.begin(), first.begin() + 3));
}

TEST_F(TraceFile, WhatIsWrongIsNamedWithItsLineAndKey) {
  const std::string good = "{\"arrival_s\": 0, \"prompt_tokens\": 1, \"output_tokens\": 1}\n";
  const std::pair<std::string, std::string> cases[] = {
      {R"({"prompt_tokens": 1, "output_tokens": 1})", "arrival_s"},
      {R"({"arrival_s": -1, "prompt_tokens": 1, "output_tokens": 1})", "arrival_s"},
      {R"({"arrival_s": 0, "output_tokens": 1})", "prompt_tokens"},
      {R"({"arrival_s": 0, "prompt_tokens": 0, "output_tokens": 1})", "prompt_tokens"},
      {R"({"arrival_s": 0, "prompt_tokens": 1.5, "output_tokens": 1})", "prompt_tokens"},
      {R"({"arrival_s": 0, "prompt_tokens": 1})", "output_tokens"},
      {R"({"arrival_s": 0, "prompt_tokens": 999, "output_tokens": 2})", "output_tokens"},
      {R"({"arrival_s": 0, "tokens": [], "output_tokens": 2})", "tokens"},
      {R"({"arrival_s": 0, "tokens": [100], "output_tokens": 2})", "tokens"},
      {R"({"arrival_s": 0, "prompt_tokens": 1, "output_tokens": 1, "priority": 1e9})", "priority"},
      {R"({"arrival_s": 0, "prompt_tokens": 1, "output_tokens": 1, "x": 1})", "'x'"},
      {"[1]", "object"},
      {"{", "byte"}};
  for (const auto& [line, word] : cases) {
    const auto trace = Load(good + line + "\n" + good);
    ASSERT_FALSE(trace) << line;
    const std::string& said = trace.error().message;
    EXPECT_NE(said.find("trace.jsonl: line 2"), std::string::npos) << said;
    EXPECT_NE(said.find(word), std::string::npos) << said;
  }
  EXPECT_FALSE(Load("\n\n"));
}

}  // namespace
}  // namespace latte::trace_test
