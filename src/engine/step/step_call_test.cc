#include "src/engine/step/step_call.h"

#include <gtest/gtest.h>

#include "src/base/random.h"
#include "src/engine/group/group_settings.h"

namespace latte::step_call_test {
namespace {

// A call with every list, whose memory it owns.
struct Example {
  std::vector<int32_t> tokens = {5, 6, 7};
  std::vector<int32_t> positions = {10, 11, 0};
  std::vector<int64_t> slots = {26, 27, 48};
  std::vector<int32_t> pages = {1, 3};
  std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  std::vector<int32_t> keys = {0, 4, 2, -1};
  std::vector<std::byte> page = std::vector<std::byte>(13, std::byte{7});

  StepCall call() {
    StepCall out;
    out.kind = StepCallKind::kDraft;
    out.tokens = tokens;
    out.positions = positions;
    out.slots = slots;
    out.sequences = {{{}, 0, 2, 10, MlaPath::kSparse, pages},
                     {{}, 2, 1, 0, MlaPath::kLatent, pages}};
    out.run = {1, DraftInput::kDraft};
    out.rows = TensorView(rows.data(), DType::kF32, {3, 2});
    out.key_positions = TensorView(keys.data(), DType::kI32, {2, 2});
    out.from = 4;
    out.to = 9;
    out.page = page;
    out.group_tokens = {3, 0, 8};
    return out;
  }
};

TEST(StepCall, IsReadAsItWasWritten) {
  Example example;
  const std::vector<std::byte> message = WriteStepCall(example.call());
  const Result<StepCall> read = ReadStepCall(message);
  ASSERT_TRUE(read) << ToString(read.error());
  EXPECT_EQ(WriteStepCall(*read), message);
  EXPECT_EQ(read->kind, StepCallKind::kDraft);
  EXPECT_EQ(read->sequences[0].path, MlaPath::kSparse);
  EXPECT_EQ(read->sequences[1].query_start, 2);
  EXPECT_EQ(read->rows.shape[0], 3);
  EXPECT_EQ(read->rows.Row<float>(2)[1], 6);
  EXPECT_EQ(read->key_positions.Row<int32_t>(1)[0], 2);
  EXPECT_EQ(read->run.layer, 1);
  EXPECT_EQ(read->page.size(), 13U);
  EXPECT_EQ(read->group_tokens, (std::vector<int64_t>{3, 0, 8}));
}

TEST(StepCall, EveryOtherMessageIsAnError) {
  Example example;
  const std::vector<std::byte> message = WriteStepCall(example.call());
  for (size_t size = 0; size < message.size(); ++size)
    EXPECT_FALSE(ReadStepCall(std::span(message).first(size))) << size << " bytes";
  std::vector<std::byte> longer = message;
  longer.resize(longer.size() + 8);
  EXPECT_FALSE(ReadStepCall(longer));
  // Any length or kind that is wrong is found; other numbers may change.
  for (size_t at = 0; at < message.size(); at += 8)
    for (const int64_t value : {int64_t{-1}, int64_t{1} << 62, int64_t{99}}) {
      std::vector<std::byte> changed = message;
      std::memcpy(changed.data() + at, &value, sizeof(value));
      const Result<StepCall> read = ReadStepCall(changed);
      if (read) {
        EXPECT_EQ(WriteStepCall(*read).size(), message.size()) << at;
      }
    }
}

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
}  // namespace latte::step_call_test
