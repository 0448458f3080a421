#include "src/engine/group/group_settings.h"

#include <gtest/gtest.h>

namespace latte::group_settings_test {
namespace {

TEST(GroupSettings, AreThoseOfTheLeader) {
  ModelConfig config;
  config.mla = {.d = 64, .h = 3, .cq = 16, .c = 32, .n = 16, .r = 8, .v = 16};
  config.layers = 2;
  config.vocab = 100;
  config.dense_width = 64;
  config.max_position = 4096;
  const Machine machine = *Machine::Detect();
  EngineOptions options;
  options.attention = "decompressed";
  options.cache_dtype = "f16";
  options.dtype = "f32";
  options.page_tokens = 32;
  options.max_tokens = 512;
  options.threads = 3;
  options.cache_bytes = 1 << 22;
  const Result<Settings> leader = ResolveOptions(options, config, machine, {}, {0, 2});
  ASSERT_TRUE(leader) << ToString(leader.error());
  const std::vector<std::byte> message = WriteSettings(*leader);
  const Result<Settings> follower = ReadSettings(message, config, machine, {1, 2});
  ASSERT_TRUE(follower) << ToString(follower.error());
  EXPECT_EQ(follower->pages, leader->pages);
  EXPECT_EQ(follower->dtype, DType::kF32);
  EXPECT_EQ(follower->options.threads, 3);
  EXPECT_EQ(follower->options.prefill_workspace_tokens, leader->options.prefill_workspace_tokens);
  // One head and two heads.
  EXPECT_EQ(leader->cache_spec.Stream(StreamId::kKey).width, 24);
  EXPECT_EQ(follower->cache_spec.Stream(StreamId::kKey).width, 48);
  for (size_t size = 0; size < message.size(); size += 8)
    EXPECT_FALSE(ReadSettings(std::span(message).first(size), config, machine, {1, 2}));
}

TEST(GroupSettings, ExpandedKeysNeedAHeadOnEveryRank) {
  ModelConfig config;
  config.mla = {.d = 64, .h = 3, .cq = 16, .c = 32, .n = 16, .r = 8, .v = 16};
  config.layers = 1;
  config.vocab = 100;
  config.max_position = 128;
  EngineOptions options;
  options.attention = "decompressed";
  options.cache_bytes = 1 << 22;
  const auto refused = ResolveOptions(options, config, *Machine::Detect(), {}, {0, 4});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("4 ranks share 3 heads"), std::string::npos);
  // A prefix file has the heads of the leader only.
  options.cache_dir = "folder";
  const auto on_disk = ResolveOptions(options, config, *Machine::Detect(), {}, {0, 2});
  ASSERT_FALSE(on_disk);
  EXPECT_NE(on_disk.error().message.find("each rank has other heads"), std::string::npos);
  options.attention = "auto";
  EXPECT_TRUE(ResolveOptions(options, config, *Machine::Detect(), {}, {0, 2}));
}

}  // namespace
}  // namespace latte::group_settings_test
