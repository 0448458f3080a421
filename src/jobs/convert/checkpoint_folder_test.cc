#include "src/jobs/convert/checkpoint_folder.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/file.h"
#include "tests/support/scratch_dir.h"

namespace latte::checkpoint_folder_test {
namespace {

namespace fs = std::filesystem;

class CheckpointFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    Put("model/config.json", "{}");
    Put("model/model.safetensors", "weights");
    Put("model/README.md", "a model");
    Put("copy/config.json", "{}");
    Put("copy/model-00001-of-00002.safetensors", "weights");
  }
  void Put(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(dir_.File(name)).parent_path());
    std::ofstream(dir_.File(name)) << text;
  }
  Result<CheckpointFolder> Find(const std::string& name, bool force = true) const {
    return FindCheckpointFolder(dir_.File(name), dir_.File("model"), force);
  }
  // Expects a refusal that names `word`.
  void Refused(const std::string& name, const std::string& word) const {
    const Result<CheckpointFolder> found = Find(name);
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(found.error().code, Code::kInvalidArgument) << name;
    EXPECT_NE(found.error().message.find(word), std::string::npos) << found.error().message;
  }

  testing_support::ScratchDir dir_;
};

TEST_F(CheckpointFolderTest, NamesOfCheckpoints) {
  for (const char* name :
       {"config.json", "model.safetensors", "model-1-of-9.safetensors", "tokenizer.json",
        "model-00001-of-000163.safetensors", "model.safetensors.index.json", "tiktoken.model"})
    EXPECT_TRUE(IsCheckpointFile(name)) << name;
  for (const char* name :
       {"README.md", "adapter_model.safetensors", "adapter_config.json", "model-.safetensors",
        "model-1-of-.safetensors", "model-a-of-b.safetensors", "model.safetensors.bak",
        ".config.json", "mymodel-1-of-2.safetensors", "notes.txt", "Config.json", ""})
    EXPECT_FALSE(IsCheckpointFile(name)) << name;
}

TEST_F(CheckpointFolderTest, NewAndEmptyFoldersNeedNoForce) {
  EXPECT_EQ(Find("new", false)->path, fs::canonical(dir_.path()).string() + "/new");
  EXPECT_TRUE(Find("new//", false));
  fs::create_directory(dir_.File("empty"));
  EXPECT_TRUE(Find("empty/", false)->files.empty());
  EXPECT_FALSE(Find("copy", false));
  EXPECT_EQ(Find("no/where", false).error().code, Code::kNotFound);
  EXPECT_EQ(Find("model/config.json/x", false).error().code, Code::kNotFound);
}

TEST_F(CheckpointFolderTest, ForceGivesUpFilesOfACheckpoint) {
  EXPECT_EQ(Find("copy")->files,
            (std::vector<std::string>{"config.json", "model-00001-of-00002.safetensors"}));
  Put("copy/README.md", "a model");  // identical to the file of the source
  EXPECT_EQ(Find("copy")->files.size(), 3U);
  fs::create_symlink("copy", dir_.File("link"));
  EXPECT_EQ(Find("link")->path, fs::canonical(dir_.File("copy")).string());
}

TEST_F(CheckpointFolderTest, AnythingElseInItIsNamedAndKeepsIt) {
  for (const char* name : {"README.md", "notes.txt", "adapter/adapter_model.bin",
                           "tokenizer.json/x", ".gitattributes", "adapter_model.safetensors"}) {
    Put(std::string("copy/") + name, "mine");
    Refused("copy", fmt::format("'{}'", fs::path(name).begin()->string()));
    fs::remove_all(fs::path(dir_.File("copy")) / *fs::path(name).begin());
  }
  fs::create_symlink("nowhere", dir_.File("copy/model.safetensors"));
  Refused("copy", "model.safetensors");
  fs::remove(dir_.File("copy/config.json"));
  Refused("copy", "no config.json");
}

TEST_F(CheckpointFolderTest, TheSourceIsNeverWrittenTo) {
  fs::create_symlink("model", dir_.File("link"));
  fs::create_directory(dir_.File("model/sub"));
  fs::create_symlink("model/sub", dir_.File("deep"));
  for (const char* name : {"model", "model/", "model/.", "copy/../model", "link", "link/"})
    Refused(name, "the source itself");
  for (const char* name : {"model/sub", "model/new", "link/new", "deep", "deep/new"})
    Refused(name, "one in it");
  for (const char* name : {"", ".", "model/.."}) Refused(name, "one that holds it");
}

TEST_F(CheckpointFolderTest, ASourceOfLinksKeepsTheFilesTheyLeadTo) {
  fs::remove(dir_.File("model/model.safetensors"));
  fs::create_symlink("../copy/model-00001-of-00002.safetensors",
                     dir_.File("model/model.safetensors"));
  Refused("copy", "model.safetensors");
  EXPECT_TRUE(Find("new"));
}

TEST_F(CheckpointFolderTest, NamesThatAreNoFolder) {
  Put("file", "x");
  Refused("file", "found a file");
  fs::create_symlink("nowhere", dir_.File("dangling"));
  Refused("dangling", "leads nowhere");
  for (const char* dir : {"", "/", ".", ".."})
    EXPECT_EQ(FindCheckpointFolder(dir, "", true).error().code, Code::kInvalidArgument) << dir;
  EXPECT_FALSE(FindCheckpointFolder("/proc", "", true));  // a mount point, if present
}

}  // namespace
}  // namespace latte::checkpoint_folder_test
