#include "src/engine/core/given_sequence.h"

#include <climits>

#include <gtest/gtest.h>

#include "src/models/registry.h"

namespace latte::given_sequence_test {
namespace {

// A small checkpoint with random weights; sequences of up to 40 tokens.
class GivenSequenceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loaded = LoadModel(std::string(LATTE_SOURCE_DIR) + "/tests/goldens/v3_noaux");
    ASSERT_TRUE(loaded) << ToString(loaded.error());
    model_ = std::move(*loaded);
  }
  Settings SettingsFor(const EngineOptions& options, int64_t tokens = 40) const {
    return ResolveOptionsForOne(options, model_->config(), machine_, tokens).value();
  }
  std::unique_ptr<GivenSequence> Make(const Settings& settings) const {
    return GivenSequence::Create(*model_, machine_, settings).value();
  }
  // Logits of the last token of prompt_ and of `generated` more.
  std::vector<float> LastLogits(const Settings& settings, int generated = 0) const {
    std::vector<float> last;
    const auto keep = [&](int64_t, const TensorView& logits) -> Status {
      const float* row = logits.Row<float>(logits.shape[0] - 1);
      last.assign(row, row + logits.shape[1]);
      return {};
    };
    const auto sequence = Make(settings);
    EXPECT_TRUE(sequence->AppendPrompt(prompt_, keep));
    for (int i = 0; i < generated; ++i) EXPECT_TRUE(sequence->AppendGenerated(7 + i, keep));
    return last;
  }
  static Status Ignore(int64_t, const TensorView&) { return {}; }

  Machine machine_ = *Machine::Detect();
  std::unique_ptr<Model> model_;
  const std::vector<int32_t> prompt_ = {5, 9, 1, 30};
};

TEST_F(GivenSequenceTest, RefusesWhatItCannotRun) {
  const auto sequence = Make(SettingsFor({}));
  EXPECT_NE(sequence->AppendPrompt({}, Ignore).error().message.find("empty"), std::string::npos);
  const auto vocab = static_cast<int32_t>(model_->config().vocab);
  for (const int32_t bad : {-1, vocab, INT32_MAX}) {
    const std::vector<int32_t> tokens = {1, bad};
    const Status status = sequence->AppendPrompt(tokens, Ignore);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    EXPECT_NE(status.error().message.find(std::to_string(bad)), std::string::npos);
  }
  const std::vector<int32_t> longer(41, 1);
  EXPECT_NE(sequence->AppendPrompt(longer, Ignore).error().message.find("41"), std::string::npos);
  // A refused call leaves nothing behind.
  EXPECT_TRUE(sequence->AppendPrompt(std::span(longer).first(40), Ignore));
  EXPECT_FALSE(sequence->AppendGenerated(1, Ignore));
}

TEST_F(GivenSequenceTest, WorkspaceDoesNotGrowWithTheContext) {
  const auto workspace_after = [&](size_t tokens) {
    EngineOptions options;
    options.attention = "latent";
    options.max_batch_tokens = 512;
    options.max_sequences = 1;
    options.prefill_workspace_tokens = 512;
    const auto sequence = Make(SettingsFor(options, 6144));
    EXPECT_TRUE(sequence->AppendPrompt(std::vector<int32_t>(tokens, 3), Ignore));
    return sequence->workspace_bytes();
  };
  EXPECT_EQ(workspace_after(1024), workspace_after(6144));
}

TEST_F(GivenSequenceTest, StrictAutoTakesTheLatentPathForPromptsAndTheAbsorbedOneAfter) {
  const auto logits_after = [&](const char* mode, int generated) {
    EngineOptions options;
    options.attention = mode;
    options.dtype = "f32";
    options.deterministic = "strict";
    return LastLogits(SettingsFor(options), generated);
  };
  // Both paths are exact but round in different places, so their last bits tell them apart.
  EXPECT_EQ(logits_after("auto", 0), logits_after("latent", 0));
  EXPECT_NE(logits_after("auto", 0), logits_after("absorbed", 0));
  EXPECT_NE(logits_after("auto", 3), logits_after("latent", 3));
}

// Rates that make one path free show by the bytes which one was taken. A prompt that is computed in
// chunks is priced as a whole.
TEST_F(GivenSequenceTest, AutoTakesTheCheaperPathOfTheWholePrompt) {
  const RateCurve slow{{{1, 1e-3}}};
  const RateCurve fast{{{1, 1e9}}};
  const RateCurve even{{{1, 1}}};
  const RateCurve by_size{{{1, 1e-3}, {4, 1e6}}};  // one token alone would be absorbed
  const MlaRates absorbed{.expand = slow, .mha = slow, .absorb = fast, .decode = fast};
  const MlaRates latent{.expand = fast, .mha = fast, .absorb = slow, .decode = slow};
  const MlaRates whole{
      .expand = by_size, .mha = by_size, .absorb = even, .decode = even, .memory_gbps = 1e9};
  ASSERT_EQ(prompt_.size(), 4u);
  for (const auto& [rates, mode] :
       {std::pair{absorbed, "absorbed"}, std::pair{latent, "latent"}, std::pair{whole, "latent"}}) {
    Settings automatic = SettingsFor({});
    automatic.rates = rates;
    automatic.options.max_batch_tokens = 1;
    EngineOptions options;
    options.attention = mode;
    EXPECT_EQ(LastLogits(automatic), LastLogits(SettingsFor(options))) << mode;
  }
}

}  // namespace
}  // namespace latte::given_sequence_test
