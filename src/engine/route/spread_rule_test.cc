#include "src/engine/route/spread_rule.h"

#include <gtest/gtest.h>

#include "tests/support/avx2_machine.h"

namespace latte::spread_rule_test {
namespace {

// A model of DeepSeek-V3's attention; small otherwise, so that a pass over the weights is cheap.
ModelConfig Config() {
  ModelConfig out;
  out.mla = {.d = 1024, .h = 128, .cq = 1536, .c = 512, .n = 128, .r = 64, .v = 128};
  out.layers = 4;
  out.vocab = 1000;
  out.dense_width = 1024;
  out.max_position = 1 << 20;
  return out;
}

Settings GroupOf(int64_t pages, int64_t longest) {
  Settings out;
  out.options.dp = 2;
  out.options.page_tokens = 64;
  out.options.max_tokens = std::min(longest, pages * 64);
  out.longest = longest;
  out.pages = pages;
  out.cache_spec.streams = {{StreamId::kLatent, 576, DType::kBF16}};
  out.rates = MlaRates::Typical(testing_support::MachineWithAvx2());
  return out;
}

TEST(SpreadRule, ARequestThatNoGroupHoldsIsSpread) {
  ModelConfig config = Config();
  config.dense_width = 1 << 20;  // a pass over the weights costs more than attention
  const SpreadRule rule(GroupOf(100, 12'000), config);
  EXPECT_FALSE(rule.Spreads(100, 100));
  EXPECT_FALSE(rule.Spreads(6'300, 100));
  EXPECT_TRUE(rule.Spreads(6'300, 101));
  EXPECT_TRUE(rule.Spreads(6'400, 1));
  // A limit says little about the length of an answer.
  EXPECT_FALSE(rule.Spreads(5'888, 1 << 20));
  EXPECT_TRUE(rule.Spreads(5'889, 1 << 20));
}

TEST(SpreadRule, ThePriceDecidesAboutRequestsThatAGroupHolds) {
  const ModelConfig config = Config();
  const Settings group = GroupOf(20'000, 1 << 20);
  const SpreadRule rule(group, config);
  const int64_t from = SpreadPaysFrom(config, group.rates, 2, group.longest).value_or(0);
  EXPECT_GT(from, 100);
  EXPECT_TRUE(rule.Spreads(from, 1));
  EXPECT_FALSE(rule.Spreads(from - 1, 1));
  EXPECT_TRUE(CostOfSpreading(config, group.rates, 2, from).pays());
  EXPECT_FALSE(CostOfSpreading(config, group.rates, 2, from - 1).pays());
  // More weights to read: longer prompts.
  ModelConfig large = config;
  large.dense_width = 64 * 1024;
  EXPECT_FALSE(SpreadRule(group, large).Spreads(from, 1));
}

TEST(SpreadRule, TheCallerMaySayFromWhere) {
  Settings group = GroupOf(20'000, 1 << 20);
  group.options.dp_spread_tokens = 500;
  const SpreadRule rule(group, Config());
  EXPECT_TRUE(rule.Spreads(500, 1));
  EXPECT_FALSE(rule.Spreads(499, 400));
}

TEST(SpreadSettings, TheCachesOfAllGroupsAreOne) {
  const Settings group = GroupOf(100, 1 << 20);
  const auto spread = SpreadSettings(group);
  ASSERT_TRUE(spread);
  EXPECT_EQ(spread->owners().count, 2);
  EXPECT_EQ(spread->pages, 200);
  EXPECT_EQ(spread->pages_of_rank(), 100);
  // Splits of 16 pages: 6 for each rank, and 4 pages more on the first.
  EXPECT_EQ(spread->options.max_tokens, (2 * 96 + 4) * 64);
  EXPECT_EQ(SpreadSettings(GroupOf(100, 9'000))->options.max_tokens, 9'000);
}

TEST(SpreadSettings, SomeEnginesSpreadNothing) {
  Settings group = GroupOf(100, 1 << 20);
  group.options.dp = 1;
  EXPECT_FALSE(SpreadSettings(group));
  group.options.dp = 2;
  group.options.dcp = 2;
  EXPECT_FALSE(SpreadSettings(group));
  group.options.dcp = 1;
  group.deterministic = Determinism::kStrict;
  EXPECT_TRUE(SpreadSettings(group));
  group.sparse_from = 2048;
  EXPECT_FALSE(SpreadSettings(group));
  group.deterministic = Determinism::kOn;
  EXPECT_TRUE(SpreadSettings(group));
  group.cache_spec.streams = {{StreamId::kKey, 576, DType::kBF16}};
  EXPECT_FALSE(SpreadSettings(group));
}

}  // namespace
}  // namespace latte::spread_rule_test
