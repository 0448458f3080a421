#include "src/jobs/convert/staging_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "src/base/file.h"
#include "tests/support/scratch_dir.h"

namespace latte::staging_folder_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMarkerText = "latte: an unfinished copy; files of the one it replaces:\n";

class StagingFolderTest : public testing::Test {
 protected:
  static void Put(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::vector<std::string> NamesIn(const std::string& dir) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir)) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  std::vector<std::string> Names() const { return NamesIn(dir_.path()); }
  using List = std::vector<std::string>;

  testing_support::ScratchDir dir_;
  std::string out_ = dir_.File("out");
};

TEST_F(StagingFolderTest, TakesTheTargetsPlaceOrGoes) {
  { const StagingFolder gone = StagingFolder::Make(out_).value(); }
  EXPECT_TRUE(Names().empty());
  StagingFolder first = StagingFolder::Make(out_).value();
  Put(first.path() + "/a", "1");
  ASSERT_TRUE(first.Publish({}));
  EXPECT_EQ(NamesIn(out_), List{"a"});
  StagingFolder second = StagingFolder::Make(out_).value();
  Put(second.path() + "/b", "2");
  EXPECT_EQ(NamesIn(out_), List{"a"});
  ASSERT_TRUE(second.Publish({"a"}));
  EXPECT_EQ(NamesIn(out_), List{"b"});
  EXPECT_EQ(Names(), List{"out"});
  EXPECT_TRUE(second.notes().empty());
}

TEST_F(StagingFolderTest, AFolderThatFilledMeanwhileIsNotReplaced) {
  fs::create_directory(out_);
  StagingFolder staging = StagingFolder::Make(out_).value();
  Put(out_ + "/notes", "mine");
  EXPECT_FALSE(staging.Publish({}));
  EXPECT_EQ(NamesIn(out_), List{"notes"});
}

TEST_F(StagingFolderTest, WhatCameMeanwhileIsKeptAndNoted) {
  Put(out_ + "/a", "1");
  StagingFolder staging = StagingFolder::Make(out_).value();
  Put(staging.path() + "/a", "2");
  Put(out_ + "/notes", "mine");
  ASSERT_TRUE(staging.Publish({"a"}));
  EXPECT_EQ(NamesIn(out_), List{"a"});
  const std::string kept = fmt::format("{}.{}.tmp/old", out_, getpid());
  EXPECT_EQ(NamesIn(kept), List{"notes"});
  ASSERT_EQ(staging.notes().size(), 1U);
  EXPECT_NE(staging.notes().front().find(kept), std::string::npos);
  // a later run does not touch it either
  const StagingFolder next = StagingFolder::Make(out_).value();
  EXPECT_EQ(NamesIn(kept), List{"notes"});
}

TEST_F(StagingFolderTest, LeftoversOfRunsThatEndedGo) {
  Put(out_ + ".7.tmp/written-by-latte", kMarkerText);
  Put(out_ + ".7.tmp/new/model.safetensors", "half");
  Put(out_ + ".8-1.tmp/written-by-latte", std::string(kMarkerText) + "config.json\n");
  Put(out_ + ".8-1.tmp/old/config.json", "{}");
  Put(out_ + "/a", "1");
  const StagingFolder staging = StagingFolder::Make(out_).value();
  EXPECT_EQ(Names(), (List{"out", fmt::format("out.{}.tmp", getpid())}));
  EXPECT_TRUE(staging.notes().empty());
}

TEST_F(StagingFolderTest, ACopyThatWasAboutToBeReplacedIsPutBack) {
  Put(out_ + ".7.tmp/written-by-latte", std::string(kMarkerText) + "config.json\n");
  Put(out_ + ".7.tmp/new/config.json", "new");
  Put(out_ + ".7.tmp/old/config.json", "old");
  const StagingFolder staging = StagingFolder::Make(out_).value();
  EXPECT_EQ(*ReadFile(out_ + "/config.json", 100), "old");
  EXPECT_EQ(Names().size(), 2U);
  ASSERT_EQ(staging.notes().size(), 1U);
  EXPECT_NE(staging.notes().front().find("put back"), std::string::npos);
}

TEST_F(StagingFolderTest, WhatIsNotKnownToBeALeftoverStaysAndIsNoted) {
  Put(out_ + ".7.tmp/model.safetensors", "no marker");
  Put(out_ + ".8.tmp/written-by-latte", "another text");
  Put(out_ + ".9.old/config.json", "no marker");
  Put(out_ + ".x.tmp/written-by-latte", kMarkerText);  // not a number
  Put(dir_.File("out2.7.tmp/written-by-latte"), kMarkerText);
  const StagingFolder held = StagingFolder::Make(out_).value();  // belongs to this run
  const size_t before = Names().size();
  const StagingFolder staging = StagingFolder::Make(out_).value();
  EXPECT_EQ(Names().size(), before + 1);
  EXPECT_EQ(staging.notes().size(), 3U);
  EXPECT_TRUE(Exists(out_ + ".7.tmp/model.safetensors"));
}

TEST_F(StagingFolderTest, OnlyFilesThatAMarkerListsGoFromAnOldCopy) {
  Put(out_ + ".7.tmp/written-by-latte", std::string(kMarkerText) + "config.json\n../../notes\n");
  Put(dir_.File("notes"), "mine");
  Put(out_ + ".7.tmp/old/config.json", "{}");
  Put(out_ + ".7.tmp/old/notes", "mine");
  Put(out_ + "/config.json", "{}");
  const StagingFolder staging = StagingFolder::Make(out_).value();
  EXPECT_EQ(NamesIn(out_ + ".7.tmp/old"), List{"notes"});
  EXPECT_TRUE(Exists(dir_.File("notes")));
  EXPECT_EQ(staging.notes().size(), 1U);
}

}  // namespace
}  // namespace latte::staging_folder_test
