#include "src/engine/settings.h"

#include <gtest/gtest.h>

#include "src/checkpoint/config/model_config.h"

namespace latte::settings_test {
namespace {

constexpr int64_t kGb = 1'000'000'000;

class SettingsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto config = LoadModelConfig(std::string(LATTE_SOURCE_DIR) + "/models/tiny");
    ASSERT_TRUE(config) << ToString(config.error());
    config_ = std::move(*config);
  }
  Result<Settings> With(const MemoryRoom& room) const {
    return ResolveOptions(options_, config_, *Machine::Detect(), room);
  }
  std::string Refusal(const MemoryRoom& room) const {
    const auto settings = With(room);
    return settings ? "" : ToString(settings.error());
  }
  void ExpectWords(const std::string& text, std::initializer_list<const char*> words) const {
    for (const char* word : words)
      EXPECT_NE(text.find(word), std::string::npos) << word << ": " << text;
  }

  ModelConfig config_;
  EngineOptions options_ = {.draft_tokens = "0"};
};

TEST_F(SettingsTest, CacheTakesWhatWeightsAndWorkspaceLeave) {
  options_.max_sequences = 4096;  // so that sequences are not the bound
  options_.max_batch_tokens = 4097;
  const auto all = With({4 * kGb, 0});
  const auto less = With({4 * kGb, 3 * kGb});
  ASSERT_TRUE(all && less);
  const int64_t page = all->cache_spec.bytes_per_page();
  EXPECT_NEAR(static_cast<double>(all->options.cache_bytes - less->options.cache_bytes), 2.7e9,
              static_cast<double>(page));
}

// The default context leaves no memory for a longer one, and fits as an explicit --context, too.
TEST_F(SettingsTest, TheLongestContextThatFitsIsTakenWhereTheModelsDoesNot) {
  auto config = LoadModelConfig(std::string(LATTE_SOURCE_DIR) + "/tests/data/configs/v2_lite.json");
  ASSERT_TRUE(config) << ToString(config.error());
  config_ = std::move(*config);
  options_ = EngineOptions();
  const MemoryRoom room{19'500'000'000, 16'150'000'000};
  const auto found = With(room);
  ASSERT_TRUE(found) << ToString(found.error());
  const int64_t context = found->options.max_tokens;
  EXPECT_LT(context, config_.max_position);
  EXPECT_GT(context, 60'000);
  const int64_t used = found->options.cache_bytes + PrefillWorkspaceBytes(config_, found->options);
  EXPECT_LE(used, room.free_bytes());
  EXPECT_GT(used, room.free_bytes() * 93 / 100);  // a tenth of the cache's room is put aside

  options_.max_tokens = context;
  const auto asked = With(room);
  ASSERT_TRUE(asked) << ToString(asked.error());
  EXPECT_EQ(asked->options.max_tokens, context);
  options_.max_tokens = context + options_.page_tokens;
  EXPECT_EQ(With(room)->options.max_tokens, context);
}

TEST_F(SettingsTest, AModelThatLeavesNoRoomIsSaidToBeTooLarge) {
  const std::string text = Refusal({24 * kGb, 31 * kGb});
  ExpectWords(text, {"31.00 GB", "24.00 GB", "latte quantize", "--cache-bytes", "from disk"});
  EXPECT_EQ(text.find("give it more"), std::string::npos) << text;
  EXPECT_EQ(text.find("0 bytes"), std::string::npos) << text;
  EXPECT_EQ(With({24 * kGb, 31 * kGb}).error().code, Code::kExhausted);
}

TEST_F(SettingsTest, AlmostNoRoomIsNoneToo) {
  ExpectWords(Refusal({24 * kGb, 24 * kGb}), {"24.00 GB", "latte quantize"});
  ExpectWords(Refusal({24 * kGb, 24 * kGb - 1000}),
              {"24.00 GB", "prefill workspace (0.", "--cache-bytes"});
  ExpectWords(Refusal({0, 1000}), {"0.00 MB", "latte quantize"});
}

TEST_F(SettingsTest, DraftsNeedTheirLayerAndRoomForItsRows) {
  const MemoryRoom room{4 * kGb, 0};
  options_.draft_tokens = "2";
  const auto drafts = With(room);
  ASSERT_TRUE(drafts);
  EXPECT_EQ(drafts->draft_tokens, 2);
  EXPECT_EQ(drafts->cache_spec.layers, config_.layers + 1);
  options_.draft_tokens = "auto";
  EXPECT_EQ(With(room)->draft_tokens, kMostDrafts);
  options_.draft_tokens = "0";
  EXPECT_EQ(With(room)->cache_spec.layers, config_.layers);

  config_.mtp_layers = 0;
  options_.draft_tokens = "auto";
  EXPECT_EQ(With(room)->draft_tokens, 0);
  options_.draft_tokens = "2";
  ExpectWords(Refusal(room), {"multi-token-prediction", "found 2", "--drafter lookup"});
  options_.drafter = "lookup";
  ASSERT_TRUE(With(room));
  EXPECT_EQ(With(room)->draft_tokens, 2);
  EXPECT_EQ(With(room)->cache_spec.layers, config_.layers);
}

TEST_F(SettingsTest, OnlyLayersThatOwnAnIndexerAndTheDraftingLayerCacheItsKeys) {
  config_.indexer = {.heads = 2, .width = 8, .topk = 4};
  config_.indexed_layers.assign(static_cast<size_t>(config_.layers), false);
  config_.indexed_layers.front() = true;
  config_.mtp_layers = 1;
  options_.draft_tokens = "1";
  const auto settings = With({4 * kGb, 0});
  ASSERT_TRUE(settings) << ToString(settings.error());
  const CacheStream& keys = settings->cache_spec.Stream(StreamId::kIndexer);
  EXPECT_TRUE(keys.HasRows(0));
  for (int64_t layer = 1; layer < config_.layers; ++layer) EXPECT_FALSE(keys.HasRows(layer));
  EXPECT_TRUE(keys.HasRows(config_.layers));
  EXPECT_EQ(keys.RowsBefore(config_.layers + 1), 2);
  const int64_t latents = (config_.mla.c + config_.mla.r) * 2 * (config_.layers + 1);
  EXPECT_EQ(settings->cache_spec.bytes_per_token(), latents + 2 * 8 * 2);
}

TEST_F(SettingsTest, ProcessesOfOneMachineDivideTheRoomThatWeightsLeave) {
  options_.max_sequences = 4096;  // the cache takes all the room
  options_.max_batch_tokens = 8192;
  const MemoryRoom alone{12 * kGb, 4 * kGb};
  const MemoryRoom beside{36 * kGb, 4 * kGb, 4};
  EXPECT_EQ(beside.free_bytes(), alone.free_bytes());
  const auto one = With(alone);
  const auto four = With(beside);
  ASSERT_TRUE(one && four);
  EXPECT_EQ(one->pages, four->pages);
  EXPECT_LT(one->pages, With({36 * kGb, 4 * kGb})->pages);
}

TEST_F(SettingsTest, AGivenCacheIsTakenWhateverTheRoom) {
  options_.cache_bytes = 64 << 20;
  for (const MemoryRoom& room :
       {MemoryRoom{24 * kGb, 31 * kGb}, MemoryRoom{std::nullopt, 31 * kGb}}) {
    const auto settings = With(room);
    ASSERT_TRUE(settings) << ToString(settings.error());
    EXPECT_GT(settings->pages, 2);
  }
  options_.cache_bytes = 1000;
  ExpectWords(Refusal({24 * kGb, 31 * kGb}), {"cache-bytes", "1000 bytes", "give it more"});
}

TEST_F(SettingsTest, UnknownMemoryAsksForTheCachesSize) {
  ExpectWords(Refusal({std::nullopt, 1000}), {"/proc/meminfo", "--cache-bytes"});
  EXPECT_EQ(With({}).error().code, Code::kUnavailable);
}

TEST_F(SettingsTest, ForOneSequenceTheCacheHoldsThatAndNoMore) {
  const MlaDims& dims = config_.mla;
  options_.prefix_cache = false;
  const auto latents = ResolveOptionsForOne(options_, config_, *Machine::Detect(), 127);
  ASSERT_TRUE(latents) << ToString(latents.error());
  EXPECT_EQ(latents->cache_spec.bytes_per_token(), (dims.c + dims.r) * config_.layers * 2);
  EXPECT_EQ(latents->pages, 2);
  EXPECT_EQ(latents->options.max_tokens, 128);
  options_.attention = "decompressed";
  const auto expanded = ResolveOptionsForOne(options_, config_, *Machine::Detect(), 128);
  EXPECT_EQ(expanded->cache_spec.bytes_per_token(),
            dims.h * (dims.n + dims.r + dims.v) * config_.layers * 2);
  EXPECT_EQ(expanded->pages, 3);
  options_.cache_dtype = "int8";
  EXPECT_EQ(ResolveOptionsForOne(options_, config_, *Machine::Detect(), 1).error().code,
            Code::kInvalidArgument);
}

TEST_F(SettingsTest, RanksDivideTheCache) {
  options_.page_tokens = 64;
  options_.max_tokens = 4096;
  options_.cache_bytes = 40 * With({kGb, 0})->cache_spec.bytes_per_page();
  EXPECT_EQ(With({kGb, 0})->options.max_tokens, 40 * 64);
  options_.tp = 4;
  options_.dcp = 2;
  const auto settings = With({kGb, 0});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->pages, 80);
  EXPECT_EQ(settings->pages_of_rank(), 40);
  EXPECT_EQ(settings->options.cache_bytes, options_.cache_bytes);
  EXPECT_EQ(settings->options.max_tokens, 4096);  // 32 pages of each rank
  options_.cache_bytes = 20 * settings->cache_spec.bytes_per_page();
  EXPECT_EQ(With({kGb, 0})->options.max_tokens, 2 * 1024 + 4 * 64);
  // A sequence of two and a half splits: rank 0 has one and a half.
  const auto one = ResolveOptionsForOne(options_, config_, *Machine::Detect(), 2559);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->pages_of_rank(), 24 + 1);
}

TEST_F(SettingsTest, WhatCannotDivideTheCacheIsRefused) {
  options_.tp = 4;
  options_.dcp = 3;
  ExpectWords(Refusal({kGb, 0}),
              {"dcp", "a divisor of the ranks of a group (4): 1, 2, 4", "found 3"});
  options_.dp = 2;
  options_.dcp = 4;
  ExpectWords(Refusal({kGb, 0}), {"dcp", "(2): 1, 2", "found 4"});
  options_.dp = 1;
  options_.attention = "decompressed";
  ExpectWords(Refusal({kGb, 0}), {"attention", "--dcp", "decompressed"});
  options_.attention = "auto";
  auto sparse = LoadModelConfig(std::string(LATTE_SOURCE_DIR) + "/models/tiny-sparse");
  ASSERT_TRUE(sparse);
  config_ = std::move(*sparse);
  EXPECT_TRUE(With({kGb, 0}));
  options_.deterministic = "strict";
  ExpectWords(Refusal({kGb, 0}), {"deterministic: expected on or off", "sparse", "found strict"});
}

TEST_F(SettingsTest, ARequestIsSpreadOverGroupsOnlyWhereThatCanBeDone) {
  options_.dp_spread_tokens = 100;
  ExpectWords(Refusal({kGb, 0}), {"dp-spread-tokens", "expected 0 without --dp", "found 100"});
  options_.dp = 2;
  EXPECT_TRUE(With({kGb, 0}));
  options_.attention = "decompressed";
  ExpectWords(Refusal({kGb, 0}), {"dp-spread-tokens", "decompressed"});
  options_.attention = "auto";
  options_.tp = 4;
  options_.dcp = 2;
  ExpectWords(Refusal({kGb, 0}), {"dp-spread-tokens", "--dcp"});
}

TEST(Determinism, NamesParseBack) {
  for (const Determinism level : {Determinism::kStrict, Determinism::kOn, Determinism::kOff})
    EXPECT_EQ(*ParseDeterminism(Name(level)), level);
  EXPECT_NE(ParseDeterminism("no").error().message.find("'no'"), std::string::npos);
}

TEST(AttentionMode, NamesParseBack) {
  for (const AttentionMode mode : {AttentionMode::kAuto, AttentionMode::kDecompressed,
                                   AttentionMode::kLatent, AttentionMode::kAbsorbed})
    EXPECT_EQ(*ParseAttentionMode(Name(mode)), mode);
  EXPECT_NE(ParseAttentionMode("mha").error().message.find("'mha'"), std::string::npos);
}

}  // namespace
}  // namespace latte::settings_test
