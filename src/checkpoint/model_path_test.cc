#include "src/checkpoint/model_path.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "src/checkpoint/config/generation_config.h"

namespace latte::model_path_test {
namespace {

namespace fs = std::filesystem;

void Write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// A Hugging Face cache that contains one model.
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

TEST_F(HubCache, NearNamesAreSuggested) {
  const auto suggested = [](const std::string& model, const std::string& name) {
    const auto found = ResolveModelPath(model);
    return !found && found.error().message.ends_with("; did you mean " + name + "?");
  };
  EXPECT_TRUE(suggested("tinny", "tiny"));
  EXPECT_TRUE(suggested("org/nmae", "org/name"));
  const std::string folder = (root_ / "models--org--name").string();
  EXPECT_TRUE(suggested(folder + "/snapshot", folder + "/snapshots"));
  const auto far = ResolveModelPath("someone/else");
  ASSERT_FALSE(far);
  EXPECT_EQ(far.error().message.find("did you mean"), std::string::npos);
}

TEST_F(HubCache, AFileInPlaceOfAFolderIsNamed) {
  const auto message = [&](const std::string& name, const std::string& content = "x") {
    const std::string file = (root_ / name).string();
    Write(file, content);
    const auto found = ResolveModelPath(file);
    return found ? "" : found.error().message;
  };
  EXPECT_NE(message("renamed.bin", "GGUF\3").find("a name that ends with .gguf"),
            std::string::npos);
  EXPECT_EQ(message("m-Q4.gguf", "GGUF\3"), "");
  EXPECT_NE(message("m-Q4.gguf").find("found another file"), std::string::npos);
  for (const char* name : {"empty.gguf", "empty.safetensors"})
    EXPECT_TRUE(message(name, "").ends_with("found an empty file"));
  EXPECT_NE(message("model-1.safetensors").find("give the folder"), std::string::npos);
  EXPECT_NE(message("notes.txt").find("found another file"), std::string::npos);
  EXPECT_EQ(message("config.json"), "");
}

TEST_F(HubCache, AFolderOfOneGgufModelIsThatModel) {
  const std::string folder = (root_ / "gguf").string();
  const auto resolved = [&] { return ResolveModelPath(folder).value_or("refused"); };
  std::filesystem::create_directories(folder);
  EXPECT_EQ(resolved(), folder);
  for (const char* part : {"m-00002-of-00002.gguf", "m-00001-of-00002.gguf", "mmproj-m.gguf"})
    Write(folder + "/" + part, "GGUF");
  Write(folder + "/config.json", "{}");
  EXPECT_EQ(resolved(), folder + "/m-00001-of-00002.gguf");
  EXPECT_EQ(*ResolveModelPath(folder + "/m-00002-of-00002.gguf"),
            folder + "/m-00002-of-00002.gguf");
  Write(folder + "/other.gguf", "GGUF");
  const auto two = ResolveModelPath(folder);
  ASSERT_FALSE(two);
  EXPECT_NE(two.error().message.find("found 2"), std::string::npos) << two.error().message;
  EXPECT_NE(two.error().message.find("other.gguf"), std::string::npos);
  Write(folder + "/model.safetensors", "x");
  EXPECT_EQ(resolved(), folder);
}

TEST_F(HubCache, AQuantNamesAGgufModelOfTheSnapshot) {
  const auto why = [](const std::string& model) {
    const auto found = ResolveModelPath(model);
    return found ? "found " + *found : found.error().message;
  };
  const std::string top = (root_ / "models--org--g/snapshots/c0ffee").string();
  Write(root_ / "models--org--g/refs/main", "c0ffee");
  for (const char* file : {"X-Q8_0.gguf", "mmproj-F16.gguf"}) Write(top + "/" + file, "GGUF");
  EXPECT_EQ(why("org/g"), "found " + top + "/X-Q8_0.gguf");
  EXPECT_EQ(why("org/g:q8_0"), "found " + top + "/X-Q8_0.gguf");
  const std::string part = top + "/Q4_K/X-Q4_K-00001-of-00002.gguf";
  Write(part, "GGUF");
  EXPECT_NE(why("org/g").find("found 2: Q4_K (4 B), Q8_0 (4 B); write one of them"),
            std::string::npos)
      << why("org/g");
  EXPECT_NE(why("org/g:Q4_K").find("'X-Q4_K-00002-of-00002.gguf' is missing"), std::string::npos);
  EXPECT_NE(why("org/g:Q4_K").find("`latte pull org/g:Q4_K`"), std::string::npos);
  Write(top + "/Q4_K/X-Q4_K-00002-of-00002.gguf", "GGUF");
  EXPECT_EQ(why("org/g:Q4_K"), "found " + part);
  EXPECT_EQ(why("org/g:Q4_K@c0ffee"), "found " + part);
  EXPECT_EQ(why("org/g@main:Q4_K"), "found " + part);
  EXPECT_NE(why("org/g:Q2_K").find("`latte pull org/g:Q2_K`"), std::string::npos);
  EXPECT_NE(why("org/name:Q2_K").find("found none"), std::string::npos);
  EXPECT_NE(why("org/other:Q2_K").find("`latte pull org/other:Q2_K`"), std::string::npos);
  Write(top + "/model.safetensors", "x");
  EXPECT_EQ(why("org/g"), "found " + top);
  EXPECT_EQ(why("org/g:Q8_0"), "found " + top + "/X-Q8_0.gguf");
}

TEST_F(HubCache, WhatIsNoQuantIsRefused) {
  const std::string long_quant(256, 'Q');
  for (const std::string bad :
       {"", " ", "Q4 K", "a/b", "..", ".Q4", "Q4\\K", "Q4\n", "*", long_quant.c_str()}) {
    const auto found = ResolveModelPath("org/name:" + bad);
    ASSERT_FALSE(found) << bad;
    EXPECT_NE(found.error().message.find("expected a quant such as Q4_K_M after ':'"),
              std::string::npos)
        << found.error().message;
  }
  for (const char* bad : {"org/name:Q4:Q5", "org/name@main@v1", "org/name:Q4@"})
    EXPECT_NE(ResolveModelPath(bad).error().message.find(":QUANT"), std::string::npos) << bad;
  for (const char* bad : {"C:/models/x.gguf", "C:\\models\\x.gguf", "tiny:Q4", ":", ":Q4"})
    EXPECT_NE(ResolveModelPath(bad).error().message.find("expected a Hugging Face folder"),
              std::string::npos)
        << bad;
}

TEST_F(HubCache, APathThatExistsIsNoRepository) {
  const fs::path before = fs::current_path();
  Write(root_ / "org/name:Q4/config.json", "{}");
  Write(root_ / "org/name:Q5.gguf", "GGUF");
  fs::current_path(root_);
  EXPECT_EQ(ResolveModelPath("org/name:Q4").value_or("refused"), "org/name:Q4");
  EXPECT_EQ(ResolveModelPath("org/name:Q5.gguf").value_or("refused"), "org/name:Q5.gguf");
  fs::current_path(before);
}

TEST_F(HubCache, ModelsOfTheCacheByTheirNames) {
  Write(root_ / "models--org--both/snapshots/a/X-Q8_0.gguf", "GGUF");
  Write(root_ / "models--org--both/snapshots/a/model.safetensors", "x");
  Write(root_ / "models--org--g/snapshots/a/X-Q4_K-00001-of-00002.gguf", "GGUF");
  Write(root_ / "models--org--g/snapshots/a/Y-Q2_K.gguf", "GG");
  fs::create_directories(root_ / "models--org--h/snapshots");
  std::string all;
  for (const CachedModel& model : CachedModels())
    all += fmt::format("{} {}{}\n", model.name, model.gguf_bytes, model.path.empty() ? " -" : "");
  EXPECT_EQ(all,
            "org/both 0\norg/both:Q8_0 4\norg/g:Q2_K 2\norg/g:Q4_K 4 -\norg/h 0 -\norg/name 0\n");
}

TEST_F(HubCache, ARevisionNamesARefOrACommit) {
  Write(root_ / "models--org--name/refs/refs/pr/1", "def456");
  Write(root_ / "models--org--name/snapshots/def456/config.json", "{}");
  const std::string other = (root_ / "models--org--name/snapshots/def456").string();
  EXPECT_EQ(*ResolveModelPath("org/name@refs/pr/1"), other);
  EXPECT_EQ(*ResolveModelPath("org/name@def456"), other);
  EXPECT_NE(*ResolveModelPath("org/name@main"), other);
  const auto found = ResolveModelPath("org/name@v2");
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("refs/v2 is missing"), std::string::npos);
  EXPECT_NE(found.error().message.find("latte pull org/name@v2"), std::string::npos);
  for (const char* bad : {"org/name@", "org/name@../x", "org/name@a//b", "org/name@a b", "@main"})
    EXPECT_FALSE(ResolveModelPath(bad)) << bad;
}

TEST_F(HubCache, WithARevisionTheOnlySnapshotIsNotTaken) {
  Write(root_ / "models--org--copied/snapshots/c0ffee/config.json", "{}");
  EXPECT_TRUE(ResolveModelPath("org/copied"));
  EXPECT_FALSE(ResolveModelPath("org/copied@v1"));
}

TEST_F(HubCache, SaysWhereItLookedAndHowToGetTheModel) {
  Write(root_ / "models--org--half/refs/main", "gone");
  Write(root_ / "models--org--evil/refs/main", "../../models--org--name/snapshots/abc123");
  for (const char* id : {"org/other", "org/half", "org/evil"}) {
    const auto found = ResolveModelPath(id);
    ASSERT_FALSE(found) << id;
    EXPECT_EQ(found.error().code, Code::kNotFound);
    EXPECT_NE(found.error().message.find(root_.string()), std::string::npos);
    EXPECT_NE(found.error().message.find("latte pull"), std::string::npos);
  }
  for (const char* bad : {"", "../x", "org/..", "a/b/c", "no-such-model", "org/na me"})
    EXPECT_FALSE(ResolveModelPath(bad)) << bad;
}

TEST_F(HubCache, WithoutRefsTheOnlySnapshotCounts) {
  Write(root_ / "models--org--copied/snapshots/c0ffee/config.json", "{}");
  EXPECT_EQ(*ResolveModelPath("org/copied"),
            (root_ / "models--org--copied/snapshots/c0ffee").string());
  // Other refs, an empty main and other files next to the snapshot change nothing.
  Write(root_ / "models--org--copied/refs/v1", "c0ffee");
  Write(root_ / "models--org--copied/snapshots/.DS_Store", "");
  EXPECT_TRUE(ResolveModelPath("org/copied"));
  Write(root_ / "models--org--copied/refs/main", "\n");
  EXPECT_TRUE(ResolveModelPath("org/copied"));
}

TEST_F(HubCache, SnapshotsThatCannotBeToldApartAreNamed) {
  const auto message = [](const char* id) { return ResolveModelPath(id).error().message; };
  Write(root_ / "models--org--two/snapshots/aaa/config.json", "{}");
  Write(root_ / "models--org--two/snapshots/bbb/config.json", "{}");
  EXPECT_NE(message("org/two").find("found 2 snapshots in"), std::string::npos);
  EXPECT_NE(message("org/two").find("aaa, bbb; give the folder"), std::string::npos);
  // The commit that main names is missing; another one is present.
  Write(root_ / "models--org--stale/refs/main", "new");
  Write(root_ / "models--org--stale/snapshots/old/config.json", "{}");
  EXPECT_NE(message("org/stale").find("names 'new', which is not there; found one snapshot"),
            std::string::npos);
  for (int i = 0; i < 100; ++i)
    fs::create_directories(root_ / "models--org--many/snapshots" /
                           (std::string(200, 'x') + std::to_string(i)));
  EXPECT_LT(message("org/many").size(), 2000u);
  fs::create_symlink("snapshots", root_ / "models--org--name/snapshots/loop");
  EXPECT_TRUE(ResolveModelPath("org/name"));
}

TEST_F(HubCache, APathFromAnotherFolderIsNotOnlyAdvisedToBeDownloaded) {
  const std::string message = ResolveModelPath("models/tiny-of-mine").error().message;
  EXPECT_NE(message.find(fs::current_path().string()), std::string::npos) << message;
  EXPECT_NE(message.find("if a folder is meant"), std::string::npos) << message;
  EXPECT_NE(message.find("latte pull models/tiny-of-mine"), std::string::npos) << message;
  fs::create_symlink("loop", root_ / "loop");
  EXPECT_NE(ResolveModelPath((root_ / "loop/x").string()).error().message.find("symbolic links"),
            std::string::npos);
}

// The search places of huggingface_hub 1.x, in its order.
class HubPlaces : public testing::Test {
 protected:
  static constexpr const char* kNames[] = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME",
                                           "XDG_CACHE_HOME", "HOME"};
  void SetUp() override {
    for (const char* name : kNames) {
      const char* value = std::getenv(name);
      if (value != nullptr) before_.emplace_back(name, value);
      unsetenv(name);
    }
    Write(Hub("hub"), "{}");
    Write(Hub("huggingface/hub"), "{}");
    Write(Hub(".cache/huggingface/hub"), "{}");
  }
  void TearDown() override {
    for (const char* name : kNames) unsetenv(name);
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
    unsetenv("LATTE_TEST_ROOT");
    fs::remove_all(root_);
  }
  fs::path Hub(const std::string& at) const {
    return root_ / at / "models--org--name/snapshots/abc/config.json";
  }
  // The folder of the model, relative to root_.
  std::string Found() const {
    const auto found = ResolveModelPath("org/name");
    if (!found) return found.error().message;
    return fs::path(*found).parent_path().parent_path().parent_path().lexically_relative(root_);
  }
  const fs::path root_ = fs::path(testing::TempDir()) / ("hubs_" + std::to_string(getpid()));
  std::vector<std::pair<std::string, std::string>> before_;
};

TEST_F(HubPlaces, EachGoesBeforeTheNext) {
  setenv("HOME", root_.c_str(), 1);
  EXPECT_EQ(Found(), ".cache/huggingface/hub");
  setenv("XDG_CACHE_HOME", root_.c_str(), 1);
  EXPECT_EQ(Found(), "huggingface/hub");
  setenv("HF_HOME", root_.c_str(), 1);
  EXPECT_EQ(Found(), "hub");
  setenv("HUGGINGFACE_HUB_CACHE", (root_ / ".cache/huggingface/hub").c_str(), 1);
  EXPECT_EQ(Found(), ".cache/huggingface/hub");
  setenv("HF_HUB_CACHE", (root_ / "huggingface/hub").c_str(), 1);
  EXPECT_EQ(Found(), "huggingface/hub");
  for (const char* name : kNames) setenv(name, name == std::string("HOME") ? root_.c_str() : "", 1);
  EXPECT_EQ(Found(), ".cache/huggingface/hub") << "empty is as good as not set";
}

TEST_F(HubPlaces, TildeAndVariablesAreThoseOfPython) {
  setenv("HOME", root_.c_str(), 1);
  setenv("LATTE_TEST_ROOT", root_.c_str(), 1);
  const std::pair<const char*, const char*> rows[] = {{"HF_HUB_CACHE", "~/hub"},
                                                      {"HF_HUB_CACHE", "$LATTE_TEST_ROOT/hub"},
                                                      {"HUGGINGFACE_HUB_CACHE", "${HOME}/hub"},
                                                      {"HF_HOME", "~"},
                                                      {"HF_HOME", "$HOME/"}};
  for (const auto& [name, value] : rows) {
    setenv(name, value, 1);
    EXPECT_EQ(Found(), "hub") << name << "=" << value;
    unsetenv(name);
  }
  setenv("XDG_CACHE_HOME", "~/$LATTE_TEST_NONE", 1);
  EXPECT_NE(Found().find((root_ / "$LATTE_TEST_NONE/huggingface").string()), std::string::npos);
  for (const char* value : {"$", "${", "${}", "$/x", "~no such user/x", "/a$$b"}) {
    setenv("XDG_CACHE_HOME", value, 1);
    EXPECT_NE(Found().find(std::string(value) + "/huggingface/hub"), std::string::npos) << Found();
  }
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
}  // namespace latte::model_path_test
