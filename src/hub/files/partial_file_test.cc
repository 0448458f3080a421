#include "src/hub/files/partial_file.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/hub/files/digest.h"
#include "src/hub/files/snapshot.h"
#include "tests/support/scratch_dir.h"

namespace latte::partial_file_test {
namespace {

namespace fs = std::filesystem;
using Ranges = std::vector<ByteRange>;

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(MissingRanges, ClaimsDoNotOverlap) {
  MissingRanges ranges({{0, 10}, {20, 25}});
  EXPECT_EQ(ranges.Claim(6), (ByteRange{0, 6}));
  EXPECT_EQ(ranges.Claim(6), (ByteRange{6, 10}));
  EXPECT_EQ(ranges.Claim(6), (ByteRange{20, 25}));
  EXPECT_FALSE(ranges.Claim(6));
  EXPECT_EQ(ranges.bytes(), 15) << "claimed bytes are missing until they arrive";
  ranges.Arrived({0, 4});
  ranges.Release({0, 6});
  EXPECT_EQ(ranges.Claim(100), (ByteRange{4, 6}));
  EXPECT_EQ(ranges.missing(), (Ranges{{4, 10}, {20, 25}}));
}

TEST(PartialState, TextAndBack) {
  const PartialState state{"\"tag\"", {{3, 5}, {7, 9}}};
  const auto read = ParseState(StateText(9, state), 9);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->tag, state.tag);
  EXPECT_EQ(read->missing, state.missing);
  EXPECT_TRUE(ParseState(StateText(9, {}), 9)->missing.empty());
}

TEST(PartialState, WhatIsNoStateOfThisFileIsNothing) {
  const std::string good = StateText(9, {"", {{3, 5}, {7, 9}}});
  EXPECT_FALSE(ParseState(good, 8)) << "another size";
  for (size_t n = 0; n + 1 < good.size(); ++n) EXPECT_FALSE(ParseState(good.substr(0, n), 9)) << n;
  const auto with = [](const std::string& line) {
    return "latte-pull-1\nsize 9\ntag \n" + line + "\nend\n";
  };
  EXPECT_TRUE(ParseState(with("missing 0 9"), 9));
  for (const char* bad : {"missing 0 10", "missing -1 3", "missing 3 3", "missing 5 3", "missing 1",
                          "missing 4 6\nmissing 5 7", "gone 1 2", "", "missing x y"})
    EXPECT_FALSE(ParseState(with(bad), 9)) << bad;
}

class Partial : public testing::Test {
 protected:
  Partial() : blob_(scratch_.File("blob")) {}
  std::unique_ptr<PartialFile> Open(int64_t size) {
    auto file = PartialFile::Open(blob_, size);
    EXPECT_TRUE(file) << file.error().message;
    return *std::move(file);
  }
  testing_support::ScratchDir scratch_;
  std::string blob_;
};

TEST_F(Partial, GoesOnWhereItWasSaved) {
  {
    const auto file = Open(6);
    EXPECT_EQ(file->Claim(2), (ByteRange{0, 2}));
    EXPECT_EQ(file->Claim(9), (ByteRange{2, 6}));
    ASSERT_TRUE(file->Write(2, Bytes("cd")));
    file->SetTag("\"t\"");
    ASSERT_TRUE(file->Save());
    ASSERT_TRUE(file->Write(4, Bytes("ef")));  // not saved: fetched again
  }
  EXPECT_EQ(MissingBytes(blob_, 6), 4);
  const auto file = Open(6);
  EXPECT_EQ(file->tag(), "\"t\"");
  EXPECT_EQ(file->Claim(9), (ByteRange{0, 2}));
  ASSERT_TRUE(file->Write(0, Bytes("ab")));
  EXPECT_FALSE(file->TakeComplete());
  EXPECT_EQ(file->Claim(9), (ByteRange{4, 6}));
  ASSERT_TRUE(file->Write(4, Bytes("ef")));
  EXPECT_TRUE(file->TakeComplete());
  EXPECT_FALSE(file->TakeComplete());
  ASSERT_TRUE(file->Commit());
  EXPECT_EQ(*ReadFile(blob_, 100), "abcdef");
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch_.path()), {}), 1);
}

TEST_F(Partial, AnUndividedFileIsClaimedAsAWhole) {
  const auto file = Open(6);
  EXPECT_EQ(file->Claim(2), (ByteRange{0, 2}));
  ASSERT_TRUE(file->Write(0, Bytes("ab")));
  file->MakeUndivided();
  EXPECT_EQ(file->missing(), 6);
  EXPECT_EQ(file->Claim(2), (ByteRange{0, 6}));
  EXPECT_FALSE(file->Claim(2));
  file->MakeUndivided();  // by another connection
  EXPECT_FALSE(file->Claim(2)) << "the claim is kept";
}

TEST_F(Partial, BytesWithoutAStateOrOfAnotherSizeAreNotTrusted) {
  std::ofstream(blob_ + ".latte.incomplete") << "xxxxxx";
  EXPECT_EQ(MissingBytes(blob_, 6), 6);
  EXPECT_EQ(Open(6)->missing(), 6);
  {
    const auto file = Open(6);
    ASSERT_TRUE(file->Write(0, Bytes("abc")));
    ASSERT_TRUE(file->Save());
  }
  EXPECT_EQ(MissingBytes(blob_, 6), 3);
  fs::resize_file(blob_ + ".latte.incomplete", 4);
  EXPECT_EQ(MissingBytes(blob_, 6), 6);
}

TEST_F(Partial, ALinkInThePlaceOfTheBytesIsNotFollowed) {
  fs::create_symlink(scratch_.File("elsewhere"), blob_ + ".latte.incomplete");
  Open(6);
  EXPECT_FALSE(fs::exists(scratch_.File("elsewhere")));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(blob_ + ".latte.incomplete")));
}

TEST_F(Partial, BytesThatComeLateChangeNoCompleteFile) {
  const auto file = Open(6);
  ASSERT_TRUE(file->Write(0, Bytes("abcdef")));
  ASSERT_TRUE(file->TakeComplete());
  ASSERT_TRUE(file->Write(0, Bytes("evil")));  // of a connection whose claim was forgotten
  ASSERT_TRUE(file->Commit());
  ASSERT_TRUE(file->Write(0, Bytes("evil")));
  EXPECT_EQ(*ReadFile(blob_, 100), "abcdef");
}

TEST_F(Partial, AFileThatWasExchangedGetsNoName) {
  for (const bool second_name : {false, true}) {
    const auto file = Open(6);
    ASSERT_TRUE(file->Write(0, Bytes("abcdef")));
    ASSERT_TRUE(file->TakeComplete());
    const std::string bytes = blob_ + ".latte.incomplete";
    if (second_name) {
      fs::create_hard_link(bytes, scratch_.File("second"));
    } else {
      fs::remove(bytes);
      std::ofstream(bytes) << "abcdeg";
    }
    EXPECT_EQ(file->Commit().error().code, Code::kUnavailable);
    EXPECT_FALSE(fs::exists(blob_));
    fs::remove(bytes);
  }
}

TEST_F(Partial, OneProcessAtATime) {
  const auto file = Open(6);
  const auto second = PartialFile::Open(blob_, 6);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("another program"), std::string::npos);
}

// The values are of `git hash-object` and `sha256sum`.
TEST_F(Partial, ChecksumsOfBothKinds) {
  std::ofstream(blob_) << "hello\n";
  const std::atomic<bool> stop = false;
  const std::string sha1 = "ce013625030ba8dba906f756967f9e9ca394464a";
  const std::string sha256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
  EXPECT_TRUE(VerifyFile(blob_, {"f", 6, sha1}, stop));
  EXPECT_TRUE(VerifyFile(blob_, {"f", 6, sha256}, stop));
  for (const HubFile& wrong : {HubFile{"f", 6, std::string(40, '0')},
                               HubFile{"f", 6, std::string(64, '0')}, HubFile{"f", 5, sha256}})
    EXPECT_EQ(VerifyFile(blob_, wrong, stop).error().code, Code::kCorrupt);
}

TEST_F(Partial, ASnapshotLinksToBlobs) {
  const RepoFolder folder(scratch_.File("hub"), "org/name");
  const std::string commit(40, 'a');
  const std::vector<HubFile> files = {{"config.json", 2, std::string(40, '1')},
                                      {"a/b/c.json", 2, std::string(40, '1')}};
  ASSERT_TRUE(folder.Create());
  EXPECT_FALSE(folder.HasBlob(files[0]));
  EXPECT_FALSE(folder.Publish({commit, files}, files, "main")) << "no link to nothing";
  std::ofstream(folder.Blob(files[0])) << "{}";
  EXPECT_TRUE(folder.HasBlob(files[0]));
  for (int twice = 0; twice < 2; ++twice)
    ASSERT_TRUE(folder.Publish({commit, files}, files, "refs/pr/1"));
  for (const HubFile& file : files)
    EXPECT_EQ(*ReadFile(folder.Snapshot(commit) + "/" + file.path, 9), "{}") << file.path;
  EXPECT_EQ(fs::read_symlink(folder.Snapshot(commit) + "/a/b/c.json"),
            "../../../../blobs/" + std::string(40, '1'));
  EXPECT_EQ(*ReadFile(folder.path() + "/refs/refs/pr/1", 99), commit);
}

}  // namespace
}  // namespace latte::partial_file_test
