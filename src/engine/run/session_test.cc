#include <algorithm>

#include <gtest/gtest.h>

#include "src/engine/run/generate.h"
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

  options.min_new_tokens = 5;  // the stop token is not drawn before
  const auto put_off = Generate(*Make(), prompt_, options);
  EXPECT_GE(put_off->tokens.size(), 5u);
  EXPECT_EQ(std::count(put_off->tokens.begin(), put_off->tokens.end(), by_length->tokens[3]), 0);

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

TEST_F(SessionTest, StrictAutoTakesTheLatentPathForPromptsAndTheAbsorbedOneAfter) {
  const auto logits_after = [&](AttentionMode mode, int generated) {
    const auto session = Make({.attention = mode,
                               .dtype = DType::kF32,
                               .max_tokens = 40,
                               .deterministic = Determinism::kStrict});
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

// Logits as bytes.
std::vector<float> Logits(Session& session) {
  const std::span<const float> row = session.LastLogits();
  return {row.begin(), row.end()};
}

constexpr AttentionMode kModes[] = {AttentionMode::kAuto, AttentionMode::kDecompressed,
                                    AttentionMode::kLatent, AttentionMode::kAbsorbed};

TEST_F(SessionTest, CutBackToItsPromptASessionGoesOnLikeAFreshOne) {
  std::vector<int32_t> all(35);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int32_t>(i * 7 % 31);
  for (const AttentionMode mode : kModes)
    for (const DType dtype : {DType::kBF16, DType::kF32})
      for (const int64_t keep : {0, 1, 15, 16, 17, 23}) {
        const SessionOptions options{.attention = mode,
                                     .dtype = dtype,
                                     .chunk_tokens = 7,
                                     .expand_tokens = 8,
                                     .page_tokens = 16,
                                     .max_tokens = 40,
                                     .deterministic = Determinism::kStrict};
        const auto session = Make(options);
        ASSERT_TRUE(session->Prompt(std::span(all).first(23)));
        for (int i = 0; i < 9; ++i) ASSERT_TRUE(session->Append(30 - i));
        session->Truncate(keep);
        EXPECT_EQ(session->length(), keep);
        EXPECT_EQ(session->reusable_length(), keep);
        ASSERT_TRUE(session->Prompt(std::span(all).subspan(static_cast<size_t>(keep))));
        const auto fresh = Make(options);
        ASSERT_TRUE(fresh->Prompt(all));
        EXPECT_EQ(Logits(*session), Logits(*fresh)) << Name(mode) << " " << keep;
        ASSERT_TRUE(session->Append(3) && fresh->Append(3));
        EXPECT_EQ(Logits(*session), Logits(*fresh)) << Name(mode) << " " << keep;
        EXPECT_TRUE(std::ranges::equal(session->tokens(), fresh->tokens()));
      }
}

TEST_F(SessionTest, StrictReuseIsWhatAFreshPromptWouldHaveWritten) {
  const std::vector<int32_t> answer = {7, 8, 9};
  for (const AttentionMode mode : kModes) {
    const auto session =
        Make({.attention = mode, .max_tokens = 40, .deterministic = Determinism::kStrict});
    ASSERT_TRUE(session->Prompt(prompt_));
    for (const int32_t token : answer) ASSERT_TRUE(session->Append(token));
    ASSERT_TRUE(session->Prompt(prompt_));
    const bool one_path = mode != AttentionMode::kAuto;
    EXPECT_EQ(session->reusable_length(), one_path ? 11 : 4);
    session->Truncate(2);
    EXPECT_EQ(session->reusable_length(), 2);
    ASSERT_TRUE(session->Prompt(prompt_));
    EXPECT_EQ(session->reusable_length(), 6);
    // What the number promises: with all of it kept, the bytes are those of a fresh prompt.
    session->Truncate(0);
    ASSERT_TRUE(session->Prompt(prompt_));
    for (const int32_t token : answer) ASSERT_TRUE(session->Append(token));
    session->Truncate(session->reusable_length());
    const std::vector<int32_t> all = {5, 9, 1, 30, 7, 8, 9, 11};
    ASSERT_TRUE(session->Prompt(std::span(all).subspan(static_cast<size_t>(session->length()))));
    const auto fresh =
        Make({.attention = mode, .max_tokens = 40, .deterministic = Determinism::kStrict});
    ASSERT_TRUE(fresh->Prompt(all));
    EXPECT_EQ(Logits(*session), Logits(*fresh)) << Name(mode);
  }
}

TEST_F(SessionTest, TruncateGivesPagesBack) {
  const auto session = Make({.page_tokens = 16, .max_tokens = 40});
  const std::vector<int32_t> full(40, 2);
  for (int i = 0; i < 5; ++i) {  // the pages of 40 tokens are all there are
    ASSERT_TRUE(session->Prompt(full));
    EXPECT_FALSE(session->Append(1));
    session->Truncate(i == 2 ? 33 : 0);
    if (i == 2) {
      ASSERT_TRUE(session->Prompt(std::span(full).first(7)));
      session->Truncate(0);
    }
  }
}

TEST_F(SessionTest, WithoutStrictnessEverythingIsReused) {
  const auto session = Make({.max_tokens = 40});
  ASSERT_TRUE(session->Prompt(prompt_));
  ASSERT_TRUE(session->Append(7));
  EXPECT_EQ(session->reusable_length(), session->length());
  session->Truncate(3);
  EXPECT_EQ(session->reusable_length(), 3);
}

// Rates that make one path free show which one was taken: by the bytes.
TEST_F(SessionTest, AutoTakesTheCheaperPathOfTheWholePrompt) {
  const RateCurve slow{{{1, 1e-3}}};
  const RateCurve fast{{{1, 1e9}}};
  const MlaRates absorbed{.expand = slow, .mha = slow, .absorb = fast, .decode = fast};
  const MlaRates latent{.expand = fast, .mha = fast, .absorb = slow, .decode = slow};
  for (const auto& [rates, mode] :
       {std::pair{absorbed, AttentionMode::kAbsorbed}, std::pair{latent, AttentionMode::kLatent}}) {
    const auto session = Make({.chunk_tokens = 2, .max_tokens = 40, .rates = rates});
    const auto fixed = Make({.attention = mode, .chunk_tokens = 3, .max_tokens = 40});
    ASSERT_TRUE(session->Prompt(prompt_));
    ASSERT_TRUE(fixed->Prompt(prompt_));
    EXPECT_EQ(Logits(*session), Logits(*fixed)) << Name(mode);
  }
}

// A prompt that comes in pieces is priced as a whole: here one token alone would be absorbed.
TEST_F(SessionTest, AdmittedPromptsKeepTheirPath) {
  const RateCurve even{{{1, 1}}};
  const RateCurve by_size{{{1, 1e-3}, {4, 1e6}}};
  const MlaRates rates{
      .expand = by_size, .mha = by_size, .absorb = even, .decode = even, .memory_gbps = 1e9};
  ASSERT_EQ(prompt_.size(), 4u);
  const auto session = Make({.max_tokens = 40, .rates = rates});
  const auto whole = Make({.max_tokens = 40, .rates = rates});
  session->Admit(4);
  for (const int32_t token : prompt_) ASSERT_TRUE(session->Prompt({&token, 1}));
  ASSERT_TRUE(whole->Prompt(prompt_));
  EXPECT_EQ(Logits(*session), Logits(*whole));
  const auto latent = Make({.attention = AttentionMode::kLatent, .max_tokens = 40});
  ASSERT_TRUE(latent->Prompt(prompt_));
  EXPECT_EQ(Logits(*session), Logits(*latent));
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
}  // namespace latte
