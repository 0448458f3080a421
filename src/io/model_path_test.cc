#include "src/io/model_path.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "src/io/generation_config.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

void Write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// A Hugging Face cache with one model in it.
class HubCache : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("hub_" + std::to_string(getpid()));
    Write(root_ / "models--org--name/refs/main", "abc123\n");
    Write(root_ / "models--org--name/snapshots/abc123/config.json", "{}");
    setenv("HF_HUB_CACHE", root_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("HF_HUB_CACHE");
    fs::remove_all(root_);
  }
  fs::path root_;
};

TEST_F(HubCache, FindsTheSnapshotThatMainPointsTo) {
  EXPECT_EQ(*ResolveModelPath("org/name"), (root_ / "models--org--name/snapshots/abc123").string());
}

TEST_F(HubCache, SaysWhereItLookedAndHowToGetTheModel) {
  Write(root_ / "models--org--half/refs/main", "gone");
  Write(root_ / "models--org--evil/refs/main", "../../models--org--name/snapshots/abc123");
  for (const char* id : {"org/other", "org/half", "org/evil"}) {
    const auto found = ResolveModelPath(id);
    ASSERT_FALSE(found) << id;
    EXPECT_EQ(found.error().code, Code::kNotFound);
    EXPECT_NE(found.error().message.find(root_.string()), std::string::npos);
    EXPECT_NE(found.error().message.find("huggingface-cli download"), std::string::npos);
  }
  for (const char* bad : {"", "../x", "org/..", "a/b/c", "no-such-model", "org/na me"})
    EXPECT_FALSE(ResolveModelPath(bad)) << bad;
}

TEST_F(HubCache, AFolderIsTakenAsItStands) {
  EXPECT_EQ(*ResolveModelPath(root_.string()), root_.string());
}

TEST(ModelPath, TinyIsFoundFromTheBuildTree) {
  const auto found = ResolveModelPath("tiny");
  ASSERT_TRUE(found) << ToString(found.error());
  EXPECT_TRUE(fs::exists(fs::path(*found) / "model.safetensors"));
}

TEST_F(HubCache, GenerationDefaults) {
  EXPECT_EQ(LoadGenerationDefaults(root_.string())->temperature, 0.0);
  Write(root_ / "generation_config.json", R"({"do_sample": true, "top_p": 0.95, "top_k": null})");
  const auto sampled = LoadGenerationDefaults(root_.string());
  ASSERT_TRUE(sampled);
  EXPECT_EQ(sampled->temperature, 1.0);
  EXPECT_EQ(sampled->top_p, 0.95);
  Write(root_ / "generation_config.json", R"({"temperature": 0.3})");
  EXPECT_EQ(LoadGenerationDefaults(root_.string())->temperature, 0.0);
  EXPECT_EQ(LoadGenerationDefaults(root_.string())->repetition_penalty, 1.0);
  Write(root_ / "generation_config.json", R"({"repetition_penalty": 1.05})");
  EXPECT_EQ(LoadGenerationDefaults(root_.string())->repetition_penalty, 1.05);
  Write(root_ / "generation_config.json", R"({"do_sample": true, "temperature": "hot"})");
  EXPECT_NE(LoadGenerationDefaults(root_.string()).error().message.find("'temperature'"),
            std::string::npos);
}

}  // namespace
}  // namespace latte
