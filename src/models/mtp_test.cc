// Which drafting layers of a checkpoint are loaded.
#include "src/models/mtp.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "src/models/registry.h"
#include "tests/support/scratch_dir.h"

namespace latte::mtp_test {
namespace {

// A checkpoint with two drafting layers, whose config says `layers`.
class MtpTest : public testing::Test {
 protected:
  Result<std::unique_ptr<Model>> Load(int layers, const ModelOptions& options) {
    const std::filesystem::path from =
        std::filesystem::path(LATTE_SOURCE_DIR) / "tests/goldens/v3_mtp2";
    std::stringstream config;
    config << std::ifstream(from / "config.json").rdbuf();
    std::string text = config.str();
    const std::string key = "\"num_nextn_predict_layers\": ";
    const size_t at = text.find(key + "2");
    EXPECT_NE(at, std::string::npos);
    text.replace(at + key.size(), 1, std::to_string(layers));
    std::ofstream(dir_.File("config.json")) << text;
    std::filesystem::copy_file(from / "model.safetensors", dir_.File("model.safetensors"),
                               std::filesystem::copy_options::overwrite_existing);
    return LoadModel(dir_.path(), options);
  }

  const testing_support::ScratchDir dir_;
};

TEST_F(MtpTest, AllLayersOrNone) {
  for (const int layers : {1, 2}) {
    const auto model = Load(layers, {.mtp = true});
    ASSERT_TRUE(model) << ToString(model.error());
    EXPECT_EQ((*model)->draft_layers(), layers);
    EXPECT_EQ((*model)->config().mtp_layers, layers);
  }
  const auto without = Load(2, {});
  ASSERT_TRUE(without) << ToString(without.error());
  EXPECT_FALSE((*without)->drafts());
  EXPECT_EQ((*without)->config().mtp_layers, 0);
}

TEST_F(MtpTest, ALayerThatIsNotThere) {
  const auto needed = Load(3, {.mtp = true});
  ASSERT_FALSE(needed);
  EXPECT_EQ(needed.error().code, Code::kNotFound);
  EXPECT_NE(needed.error().message.find("model.layers.4.eh_proj.weight"), std::string::npos)
      << needed.error().message;
  const auto optional = Load(3, {.mtp = true, .mtp_optional = true});
  ASSERT_TRUE(optional) << ToString(optional.error());
  EXPECT_FALSE((*optional)->drafts());
  EXPECT_EQ((*optional)->config().mtp_layers, 0);
}

}  // namespace
}  // namespace latte::mtp_test
