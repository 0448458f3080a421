#include "src/engine/sampling/sampler.h"

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include <gtest/gtest.h>

namespace latte::sampler_test {
namespace {

const Machine& TestMachine() {
  static const Machine machine = *Machine::Detect();
  return machine;
}

constexpr std::array<float, 4> kLogits = {0.0f, 1.0f, 2.0f, 1.0f};

Result<int32_t> DrawOne(std::span<const float> logits, const SamplingParams& params,
                        int64_t position) {
  return Sample(
             {.logits = logits, .params = &params, .position = position, .machine = &TestMachine()})
      .map([](const SampledToken& drawn) { return drawn.token; });
}

std::map<int32_t, int> Counts(const SamplingParams& params, int draws) {
  std::map<int32_t, int> counts;
  for (int position = 0; position < draws; ++position)
    ++counts[*DrawOne(kLogits, params, position)];
  return counts;
}

TEST(Sampler, GreedyTakesTheFirstMaximum) {
  constexpr std::array<float, 3> tie = {1.0f, 5.0f, 5.0f};
  EXPECT_EQ(*DrawOne(tie, {.temperature = 0}, 0), 1);
}

TEST(Sampler, FrequenciesFollowTheSoftmax) {
  constexpr int kDraws = 40000;
  const auto counts = Counts({.temperature = 1.0, .seed = 7}, kDraws);
  const double z = LogSumExp(kLogits);
  for (int id = 0; id < 4; ++id) {
    const double p = std::exp(static_cast<double>(kLogits[static_cast<size_t>(id)]) - z);
    // Five standard deviations of a binomial share.
    EXPECT_NEAR(counts.at(id) / double{kDraws}, p, 5 * std::sqrt(p * (1 - p) / kDraws));
  }
}

TEST(Sampler, FiltersKeepOnlyTheLikeliest) {
  EXPECT_EQ(Counts({.top_k = 1}, 200).size(), 1u);
  const auto two = Counts({.top_k = 2}, 2000);  // ids 1 and 3 tie: the lower one stays
  EXPECT_TRUE(two.size() == 2 && two.contains(2) && two.contains(1));
  EXPECT_EQ(Counts({.top_p = 0.5}, 200).size(), 1u);
  EXPECT_EQ(Counts({.top_p = 0.8}, 2000).size(), 3u);
  EXPECT_EQ(Counts({.min_p = 0.3}, 2000).size(), 3u);
  EXPECT_EQ(Counts({.min_p = 1.0}, 200).size(), 1u);
}

TEST(Sampler, TheDrawDependsOnSeedAndPositionAlone) {
  const SamplingParams a{.seed = 1};
  std::array<int, 2> differ = {};
  for (int position = 0; position < 100; ++position) {
    const int32_t token = *DrawOne(kLogits, a, position);
    EXPECT_EQ(*DrawOne(kLogits, a, position), token);
    differ[0] += token != *DrawOne(kLogits, {.seed = 2}, position) ? 1 : 0;
    differ[1] += token != *DrawOne(kLogits, a, position + 1) ? 1 : 0;
  }
  EXPECT_GT(differ[0], 20);
  EXPECT_GT(differ[1], 20);
}

TEST(Sampler, NonFiniteLogitsAreAnError) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float bad : {std::nanf(""), kInf}) {
    const std::array<float, 3> logits = {1.0f, bad, 0.0f};
    for (const double temperature : {0.0, 1.0}) {
      const auto token = DrawOne(logits, {.temperature = temperature}, 0);
      ASSERT_FALSE(token);
      EXPECT_EQ(token.error().code, Code::kCorrupt);
      EXPECT_NE(token.error().message.find("token 1"), std::string::npos);
    }
  }
  const auto none = DrawOne(std::array<float, 2>{-kInf, -kInf}, {}, 0);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kCorrupt);
  EXPECT_EQ(*DrawOne(std::array<float, 2>{-kInf, 0.0f}, {}, 0), 1);
}

TEST(Sampler, ExtremeTemperaturesStayDefined) {
  EXPECT_EQ(*DrawOne(kLogits, {.temperature = 1e-30}, 0), 2);
  const std::array<float, 2> wide = {-3e38f, 3e38f};
  EXPECT_EQ(*DrawOne(wide, {.temperature = 1e-5}, 0), 1);
}

// Whether the penalties bring `logit` of `token` to `wanted`: token 3, which has none, wins against
// it just above that and loses just below.
bool Becomes(const TokenHistory& history, SamplingParams params, int32_t token, float logit,
             float wanted) {
  params.temperature = 0;
  for (const float side : {-0.001f, 0.001f}) {
    std::array<float, 4> logits = {-90.0f, -90.0f, -90.0f, wanted + side};
    logits[static_cast<size_t>(token)] = logit;
    const auto drawn = Sample(
        {.logits = logits, .params = &params, .history = &history, .machine = &TestMachine()});
    if (drawn->token != (side < 0 ? token : 3)) return false;
  }
  return true;
}

TEST(Sampler, PenaltiesFollowTheirFormulas) {
  TokenHistory history;  // 0: in the prompt; 1: twice in the answer; 2: in both
  history.AddPrompt(std::array<int32_t, 2>{0, 2});
  for (const int32_t token : {1, 1, 2}) history.AddGenerated(token);
  const SamplingParams repetition{.repetition_penalty = 2};
  EXPECT_TRUE(Becomes(history, repetition, 0, 3.0f, 1.5f));
  EXPECT_TRUE(Becomes(history, repetition, 1, -3.0f, -6.0f));
  const SamplingParams presence{.presence_penalty = 0.5};
  EXPECT_TRUE(Becomes(history, presence, 0, 3.0f, 3.0f));  // the prompt does not count
  EXPECT_TRUE(Becomes(history, presence, 1, 3.0f, 2.5f));
  const SamplingParams frequency{.frequency_penalty = 0.5};
  EXPECT_TRUE(Becomes(history, frequency, 1, 3.0f, 2.0f));
  EXPECT_TRUE(Becomes(history, frequency, 2, 3.0f, 2.5f));
  // The bias comes first: the repetition penalty divides the sum.
  const SamplingParams both{.repetition_penalty = 2, .logit_bias = {{0, 4.0f}}};
  EXPECT_TRUE(Becomes(history, both, 0, 1.0f, 2.5f));
}

TEST(Sampler, BannedTokensAreNeverDrawn) {
  const SamplingParams greedy{.temperature = 0, .logit_bias = {{2, 100.0f}}};
  const std::array<int32_t, 3> banned = {2, -5, 1000};
  EXPECT_EQ(
      Sample({.logits = kLogits, .params = &greedy, .banned = banned, .machine = &TestMachine()})
          ->token,
      1);
  const std::array<int32_t, 4> all = {0, 1, 2, 3};
  const auto none =
      Sample({.logits = kLogits, .params = &greedy, .banned = all, .machine = &TestMachine()});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kInvalidArgument);
  EXPECT_NE(none.error().message.find("min_tokens"), std::string::npos);
}

TEST(Sampler, LogprobsAreOfTheLogitsAsGiven) {
  const SamplingParams params{.temperature = 0, .logit_bias = {{0, 100.0f}}};
  const auto drawn =
      Sample({.logits = kLogits, .params = &params, .logprobs = 3, .machine = &TestMachine()});
  const double z = LogSumExp(kLogits);
  ASSERT_TRUE(drawn->logprobs);
  EXPECT_EQ(drawn->logprobs->chosen.token, 0);
  EXPECT_FLOAT_EQ(drawn->logprobs->chosen.logprob, static_cast<float>(0 - z));
  ASSERT_EQ(drawn->logprobs->top.size(), 3u);
  const std::array<int32_t, 3> likeliest = {2, 1, 3};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(drawn->logprobs->top[i].token, likeliest[i]);
    EXPECT_FLOAT_EQ(drawn->logprobs->top[i].logprob, static_cast<float>((i == 0 ? 2 : 1) - z));
  }
  EXPECT_FALSE(Sample({.logits = kLogits, .params = &params, .machine = &TestMachine()})->logprobs);
  EXPECT_TRUE(
      Sample({.logits = kLogits, .params = &params, .logprobs = 0, .machine = &TestMachine()})
          ->logprobs->top.empty());
  EXPECT_EQ(Logprobs(kLogits, 1, 50, TestMachine())->top.size(), 4u);
}

TEST(Sampler, AllDrawsAtOnceAreThoseOneByOne) {
  const SamplingParams params{.seed = 5};
  const std::array<float, 2> bad = {std::nanf(""), 0.0f};
  std::vector<SampleInput> draws;
  for (int position = 0; position < 50; ++position)
    draws.push_back(
        {.logits = kLogits, .params = &params, .position = position, .machine = &TestMachine()});
  draws[7].logits = bad;
  ThreadPool threads(3);
  const auto all = SampleAll(draws, threads);
  ASSERT_EQ(all.size(), draws.size());
  for (size_t i = 0; i < draws.size(); ++i) {
    const auto one = Sample(draws[i]);
    EXPECT_EQ(all[i] ? all[i]->token : -1, one ? one->token : -1);
  }
  EXPECT_FALSE(all[7]);
}

// The tokens of a sampler that sorted the vocabulary by libm's exp.
TEST(Sampler, DrawsStayWhatTheyWere) {
  const SamplingParams params{.temperature = 0.9, .top_p = 0.99, .seed = 42};
  std::vector<int32_t> tokens;
  for (int position = 0; position < 12; ++position)
    tokens.push_back(*DrawOne(kLogits, params, position));
  EXPECT_EQ(tokens, (std::vector<int32_t>{2, 0, 2, 0, 2, 3, 1, 2, 0, 0, 1, 1}));
}

}  // namespace
}  // namespace latte::sampler_test
