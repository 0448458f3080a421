#include <gtest/gtest.h>

#include "src/engine/generate.h"
#include "src/models/registry.h"

namespace latte {
namespace {

// A small checkpoint with random weights.
class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loaded = LoadModel(std::string(LATTE_SOURCE_DIR) + "/tests/goldens/v3_noaux");
    ASSERT_TRUE(loaded) << ToString(loaded.error());
    model_ = std::move(*loaded);
  }
  std::unique_ptr<Session> Make(SessionOptions options = {.max_tokens = 40}) {
    auto session = Session::Create(*model_, machine_, options);
    EXPECT_TRUE(session) << ToString(session.error());
    return std::move(*session);
  }
  Machine machine_ = *Machine::Detect();
  std::unique_ptr<Model> model_;
  const std::vector<int32_t> prompt_ = {5, 9, 1, 30};
};

TEST_F(SessionTest, RefusesWhatItCannotRun) {
  const auto session = Make();
  EXPECT_NE(session->Prompt({}).error().message.find("empty"), std::string::npos);
  const auto vocab = static_cast<int32_t>(model_->config().vocab);
  for (const int32_t bad : {-1, vocab, INT32_MAX}) {
    const std::vector<int32_t> tokens = {1, bad};
    const Status status = session->Prompt(tokens);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    EXPECT_NE(status.error().message.find(std::to_string(bad)), std::string::npos);
  }
  const std::vector<int32_t> longer(41, 1);
  EXPECT_NE(session->Prompt(longer).error().message.find("41"), std::string::npos);
  EXPECT_EQ(session->length(), 0);  // a refused call leaves nothing behind
  EXPECT_TRUE(session->Prompt(prompt_));
}

TEST_F(SessionTest, OptionsSayWhichFieldIsWrong) {
  for (const SessionOptions& bad :
       {SessionOptions{.chunk_tokens = -1}, SessionOptions{.expand_tokens = 0},
        SessionOptions{.page_tokens = 48}, SessionOptions{.page_tokens = 8},
        SessionOptions{.max_tokens = 0}, SessionOptions{.threads = -1}})
    EXPECT_EQ(Session::Create(*model_, machine_, bad).error().code, Code::kInvalidArgument);
}

TEST_F(SessionTest, CacheSizeIsTheArithmeticOne) {
  const MlaDims& dims = model_->config().mla;
  const int64_t layers = model_->config().layers;
  EXPECT_EQ(Make()->cache_spec().bytes_per_token(), (dims.c + dims.r) * layers * 2);
  EXPECT_EQ(Make({.attention = AttentionMode::kDecompressed, .max_tokens = 40})
                ->cache_spec()
                .bytes_per_token(),
            dims.h * (dims.n + dims.r + dims.v) * layers * 2);
}

TEST_F(SessionTest, WorkspaceDoesNotGrowWithTheContext) {
  const auto workspace_after = [&](size_t tokens) {
    const auto session = Make({.attention = AttentionMode::kLatent,
                               .chunk_tokens = 32,
                               .expand_tokens = 64,
                               .max_tokens = 4096});
    EXPECT_TRUE(session->Prompt(std::vector<int32_t>(tokens, 3)));
    return session->workspace_bytes();
  };
  EXPECT_EQ(workspace_after(128), workspace_after(2048));
}

TEST_F(SessionTest, GenerateStopsAtLengthStopTokenAndContextEnd) {
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_new_tokens = 6;
  const auto by_length = Generate(*Make(), prompt_, options);
  ASSERT_TRUE(by_length);
  EXPECT_EQ(by_length->tokens.size(), 6u);
  EXPECT_EQ(by_length->reason, FinishReason::kLength);

  options.stop_tokens = {by_length->tokens[3]};
  const auto stopped = Generate(*Make(), prompt_, options);
  EXPECT_LE(stopped->tokens.size(), 3u);
  EXPECT_EQ(stopped->reason, FinishReason::kStop);

  options.stop_tokens = {};
  options.max_new_tokens = 1000;
  const auto full = Generate(*Make(), prompt_, options);
  EXPECT_EQ(full->tokens.size(),
            40u - prompt_.size() + 1);  // the last one needs no room in the cache
  EXPECT_EQ(full->reason, FinishReason::kLength);
}

TEST_F(SessionTest, SameSeedSameTokensOnEveryThreadCountAndChunk) {
  GenerateOptions options;
  options.max_new_tokens = 20;
  options.sampling.seed = 11;
  const auto expected = Generate(*Make(), prompt_, options)->tokens;
  for (const int threads : {1, 2, 3})
    for (const int64_t chunk : {1, 3, 0}) {
      const auto session = Make({.chunk_tokens = chunk, .max_tokens = 40, .threads = threads});
      EXPECT_EQ(Generate(*session, prompt_, options)->tokens, expected);
    }
  options.sampling.seed = 12;
  EXPECT_NE(Generate(*Make(), prompt_, options)->tokens, expected);
}

TEST_F(SessionTest, AutoTakesTheLatentPathForPromptsAndTheAbsorbedOneAfter) {
  const auto logits_after = [&](AttentionMode mode, int generated) {
    const auto session = Make({.attention = mode, .dtype = DType::kF32, .max_tokens = 40});
    EXPECT_TRUE(session->Prompt(prompt_));
    for (int i = 0; i < generated; ++i) EXPECT_TRUE(session->Append(7 + i));
    const std::span<const float> row = session->LastLogits();
    return std::vector<float>(row.begin(), row.end());
  };
  // Both paths are exact but round in different places, so their last bits tell them apart.
  EXPECT_EQ(logits_after(AttentionMode::kAuto, 0), logits_after(AttentionMode::kLatent, 0));
  EXPECT_NE(logits_after(AttentionMode::kAuto, 0), logits_after(AttentionMode::kAbsorbed, 0));
  EXPECT_NE(logits_after(AttentionMode::kAuto, 3), logits_after(AttentionMode::kLatent, 3));
}

TEST(AttentionMode, NamesParseBack) {
  for (const AttentionMode mode : {AttentionMode::kAuto, AttentionMode::kDecompressed,
                                   AttentionMode::kLatent, AttentionMode::kAbsorbed})
    EXPECT_EQ(*ParseAttentionMode(Name(mode)), mode);
  EXPECT_NE(ParseAttentionMode("mha").error().message.find("'mha'"), std::string::npos);
}

}  // namespace
}  // namespace latte
