// The weights of a layer that a rank of several groups loads.
#include "src/models/decoder_layer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/checkpoint/checkpoint.h"

namespace latte::decoder_layer_test {
namespace {

// Four ranks in two groups: rank 1 of the first group, or the third of all.
constexpr RankShare kOfGroup = {1, 2};

class DecoderLayerTest : public testing::Test {
 protected:
  DecoderLayer Load(int64_t layer, const ModelShare& share) const {
    const WeightLoader load(checkpoint_, config_.quant);
    auto loaded = LoadDecoderLayer(load, config_, share, layer);
    EXPECT_TRUE(loaded) << ToString(loaded.error());
    return std::move(*loaded);
  }
  MoeLayer LoadMoe(const ModelShare& share) const {
    return std::get<MoeLayer>(Load(config_.moe.first_dense, share).ffn);
  }
  int64_t shared_width() const { return config_.moe.shared * config_.moe.width; }

  const std::string dir_ = std::string(LATTE_SOURCE_DIR) + "/tests/goldens/v3_noaux";
  const ModelConfig config_ = *LoadModelConfig(dir_);
  const Checkpoint checkpoint_ = *Checkpoint::Open(dir_);
};

TEST_F(DecoderLayerTest, RoutedExpertsAreSharedByTheRanksOfAllGroups) {
  const ModelShare share{kOfGroup, {2, 4}};
  const MoeLayer moe = LoadMoe(share);
  EXPECT_EQ(moe.ranks, 4);
  EXPECT_EQ(moe.first_expert, 0);
  ASSERT_EQ(std::ssize(moe.experts), config_.moe.experts);
  for (const Mlp& expert : moe.experts) {
    EXPECT_EQ(expert.up.outputs(), share.experts.Of(config_.moe.width));
    EXPECT_EQ(expert.down.outputs(), share.experts.Of(config_.mla.d));
  }
  EXPECT_EQ(moe.shared.up.outputs(), share.experts.Of(shared_width()));
}

TEST_F(DecoderLayerTest, WholeExpertsAreSpreadOverTheRanksOfAllGroups) {
  const ModelShare share{kOfGroup, {2, 4, /*whole_experts=*/true}};
  const MoeLayer moe = LoadMoe(share);
  EXPECT_EQ(moe.first_expert, config_.moe.experts / 2);
  ASSERT_EQ(std::ssize(moe.experts), share.experts.Of(config_.moe.experts));
  for (const Mlp& expert : moe.experts) EXPECT_EQ(expert.up.outputs(), config_.moe.width);
  EXPECT_EQ(moe.shared.up.outputs(), kOfGroup.Of(shared_width()));
}

TEST_F(DecoderLayerTest, EverythingElseIsSharedByTheGroup) {
  ASSERT_GT(config_.moe.first_dense, 0);
  const DecoderLayer layer = Load(0, {kOfGroup, {2, 4}});
  EXPECT_EQ(layer.attention.dims.h, kOfGroup.Of(config_.mla.h));
  EXPECT_EQ(layer.attention.w_o.outputs(), kOfGroup.Of(config_.mla.d));
  EXPECT_EQ(std::get<Mlp>(layer.ffn).up.outputs(), kOfGroup.Of(config_.dense_width));
}

}  // namespace
}  // namespace latte::decoder_layer_test
