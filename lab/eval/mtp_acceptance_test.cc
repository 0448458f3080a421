#include "lab/eval/mtp_acceptance.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/models/registry.h"
#include "src/text/tokenizer.h"
#include "tests/support/scratch_dir.h"

namespace latte::mtp_acceptance_test {
namespace {

const std::string kTiny = std::string(LATTE_SOURCE_DIR) + "/models/tiny";

class MtpAcceptanceTest : public testing::Test {
 protected:
  std::vector<std::vector<int32_t>> Texts() const {
    const auto tokenizer = Tokenizer::Load(kTiny);
    std::vector<std::vector<int32_t>> texts;
    for (const char* text :
         {"Once upon a time, there was a small fox named Tom. He had a home in a green valley.",
          "Long ago, near a shiny lake, there lived a kind duck named Mia. Mia liked singing songs "
          "best of all."})
      texts.push_back(*tokenizer->Encode(text, {.add_bos = true}));
    return texts;
  }
  std::unique_ptr<Model> Load(bool mtp) const { return *LoadModel(kTiny, {.mtp = mtp}); }
  Settings In(const char* attention, const char* dtype = "f32") const {
    const EngineOptions options{.dtype = dtype, .attention = attention};
    return ResolveOptionsForOne(options, *LoadModelConfig(kTiny), machine_, 1).value();
  }

  Machine machine_ = *Machine::Detect();
};

TEST_F(MtpAcceptanceTest, TinyDraftsItsOwnStories) {
  const auto model = Load(true);
  const auto texts = Texts();
  const int64_t positions = static_cast<int64_t>(texts[0].size() + texts[1].size()) - 4 + 2;
  for (const char* mode : {"latent", "absorbed", "decompressed"}) {
    const auto found = MeasureMtpAcceptance(*model, machine_, texts, In(mode));
    ASSERT_TRUE(found) << ToString(found.error());
    EXPECT_EQ(found->drafted, positions);
    // The layer drafts more than 9 of 10 tokens of a story correctly; half of that cannot happen by
    // chance.
    EXPECT_GT(found->accepted, positions / 2) << mode;
  }
}

TEST_F(MtpAcceptanceTest, ModesAgreeInF32) {
  const auto model = Load(true);
  const auto texts = Texts();
  const auto latent = MeasureMtpAcceptance(*model, machine_, texts, In("latent"));
  const auto absorbed = MeasureMtpAcceptance(*model, machine_, texts, In("absorbed"));
  EXPECT_EQ(latent->accepted, absorbed->accepted);
}

// With one key a token, tiny-sparse drafts worse, but only where its indexer chooses.
TEST_F(MtpAcceptanceTest, SparseAttentionIsMeasuredWhereItIsUsed) {
  const std::string source = std::string(LATTE_SOURCE_DIR) + "/models/tiny-sparse/";
  std::string config = *ReadFile(source + "config.json", 1 << 20);
  const std::string topk = "\"index_topk\": 64";
  ASSERT_NE(config.find(topk), std::string::npos);
  config.replace(config.find(topk), topk.size(), "\"index_topk\": 1");
  const testing_support::ScratchDir folder;
  std::ofstream(folder.File("config.json")) << config;
  std::filesystem::create_symlink(source + "model.safetensors", folder.File("model.safetensors"));
  const auto model = *LoadModel(folder.path(), {.mtp = true});
  const auto accepted = [&](const char* attention) {
    const EngineOptions options{.dtype = "f32", .attention = attention};
    const auto settings = ResolveOptionsForOne(options, model->config(), machine_, 1);
    return MeasureMtpAcceptance(*model, machine_, Texts(), *settings)->accepted;
  };
  EXPECT_LT(accepted("auto"), accepted("absorbed") - 5);
  EXPECT_EQ(accepted("auto"), accepted("sparse"));
}

TEST_F(MtpAcceptanceTest, ShortTextsHaveNothingToDraft) {
  const std::vector<std::vector<int32_t>> texts = {{}, {5}, {5, 6}};
  const auto found = MeasureMtpAcceptance(*Load(true), machine_, texts, In("auto", "bf16"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->drafted, 0);
}

TEST_F(MtpAcceptanceTest, RefusesWhatItCannotMeasure) {
  EXPECT_EQ(MeasureMtpAcceptance(*Load(false), machine_, Texts(), In("auto", "bf16")).error().code,
            Code::kInvalidArgument);
  const std::vector<std::vector<int32_t>> outside = {{5, 6, 1 << 20}};
  EXPECT_EQ(MeasureMtpAcceptance(*Load(true), machine_, outside, In("auto", "bf16")).error().code,
            Code::kInvalidArgument);
  const auto without =
      LoadModel(std::string(LATTE_SOURCE_DIR) + "/tests/goldens/v2_lite", {.mtp = true});
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code, Code::kNotFound);
  EXPECT_NE(without.error().message.find("no multi-token-prediction layer"), std::string::npos);
}

}  // namespace
}  // namespace latte::mtp_acceptance_test
