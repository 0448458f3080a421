#include "src/engine/sampler.h"

#include <array>
#include <cmath>
#include <limits>
#include <map>

#include <gtest/gtest.h>

namespace latte {
namespace {

constexpr std::array<float, 4> kLogits = {0.0f, 1.0f, 2.0f, 1.0f};

Result<int32_t> DrawOne(std::span<const float> logits, const SamplingParams& params,
                        int64_t position) {
  return Sample({.logits = logits, .params = &params, .position = position})
      .map([](const Drawn& drawn) { return drawn.token; });
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
      EXPECT_EQ(token.error().code, Code::kInternal);
      EXPECT_NE(token.error().message.find("token 1"), std::string::npos);
    }
  }
  EXPECT_FALSE(DrawOne(std::array<float, 2>{-kInf, -kInf}, {}, 0));
  EXPECT_EQ(*DrawOne(std::array<float, 2>{-kInf, 0.0f}, {}, 0), 1);
}

TEST(Sampler, ExtremeTemperaturesStayDefined) {
  EXPECT_EQ(*DrawOne(kLogits, {.temperature = 1e-30}, 0), 2);
  const std::array<float, 2> wide = {-3e38f, 3e38f};
  EXPECT_EQ(*DrawOne(wide, {.temperature = 1e-5}, 0), 1);
}

}  // namespace
}  // namespace latte
