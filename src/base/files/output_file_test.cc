#include "src/base/files/output_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.h"
#include "tests/support/scratch_dir.h"

namespace latte::output_file_test {
namespace {

namespace fs = std::filesystem;

const FileKind kPoems = {"a poem", [](std::string_view text) { return text.starts_with("poem"); }};

class OutputFileTest : public testing::Test {
 protected:
  static void Put(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string Text(const std::string& path) { return ReadFile(path, 1 << 20).value(); }
  static Status Append(const OutputFile& file, const std::string& text) {
    return file.Write(std::as_bytes(std::span(text)));
  }
  static Status Save(const std::string& path, const std::string& text) {
    LATTE_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, kPoems));
    LATTE_RETURN_IF_ERROR(Append(file, text));
    return file.Commit();
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_.path()))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  testing_support::ScratchDir dir_;
  std::string path_ = dir_.File("out");
};

TEST_F(OutputFileTest, WhatWasThereStandsUntilTheNewFileIsWhole) {
  Put(path_, "poem 1");
  chmod(path_.c_str(), 0640);
  OutputFile file = OutputFile::Create(path_, kPoems).value();
  ASSERT_TRUE(Append(file, "poem 2"));
  EXPECT_EQ(Text(path_), "poem 1");
  ASSERT_TRUE(file.Commit());
  EXPECT_EQ(Text(path_), "poem 2");
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms(0640));
  EXPECT_EQ(Names(), std::vector<std::string>{"out"});
}

TEST_F(OutputFileTest, WhatIsNotCommittedLeavesNothing) {
  {
    const OutputFile file = OutputFile::Create(path_, kPoems).value();
    ASSERT_TRUE(Append(file, "poem"));
  }
  EXPECT_TRUE(Names().empty());
  Put(path_, "poem 1");
  { const OutputFile file = OutputFile::Create(path_, kPoems).value(); }
  EXPECT_EQ(Text(path_), "poem 1");
  EXPECT_EQ(Names(), std::vector<std::string>{"out"});
}

TEST_F(OutputFileTest, FilesOfAnotherKindStay) {
  for (const std::string& text : {std::string("tale"), std::string("\0\0poem", 6)}) {
    Put(path_, text);
    const Status refused = Save(path_, "poem");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    EXPECT_NE(refused.error().message.find("a poem"), std::string::npos);
    EXPECT_EQ(Text(path_), text);
  }
  Put(path_, "");  // mktemp makes such
  EXPECT_TRUE(Save(path_, "poem"));
}

TEST_F(OutputFileTest, NamesThatAreNoFileAreRefused) {
  fs::create_symlink("nowhere", dir_.File("dangling"));
  Put(dir_.File("file"), "poem");
  const auto code = [&](const std::string& path) { return Save(path, "poem").error().code; };
  EXPECT_EQ(code(""), Code::kInvalidArgument);
  EXPECT_EQ(code(dir_.path()), Code::kInvalidArgument);
  EXPECT_EQ(code(dir_.File("dangling")), Code::kInvalidArgument);
  EXPECT_EQ(code(dir_.File("new/")), Code::kNotFound);
  EXPECT_EQ(code(dir_.File("no/where")), Code::kNotFound);
  EXPECT_EQ(code(dir_.File("file/where")), Code::kNotFound);
  EXPECT_EQ(Names(), (std::vector<std::string>{"dangling", "file"}));
}

TEST_F(OutputFileTest, LinksStayAndLeadToTheNewFile) {
  fs::create_directory(dir_.File("far"));
  Put(dir_.File("far/poem"), "poem 1");
  fs::create_symlink("far/poem", path_);
  fs::create_hard_link(dir_.File("far/poem"), dir_.File("twin"));
  ASSERT_TRUE(Save(path_, "poem 2"));
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(Text(dir_.File("far/poem")), "poem 2");
  EXPECT_EQ(Text(dir_.File("twin")), "poem 1");  // a name of its own
}

TEST_F(OutputFileTest, LeftoversOfRunsThatEndedGoAndNothingElse) {
  const std::vector<std::string> foreign = {"out.tmp", "out.1.tmp", "out.latte-.tmp",
                                            "out.latte-x.tmp", "other.latte-1.tmp"};
  for (const std::string& name : foreign) Put(dir_.File(name), "mine");
  fs::create_directory(dir_.File("out.latte-2.tmp"));
  Put(dir_.File("out.latte-3.tmp"), "half");
  Put(dir_.File("out.latte-4.tmp"), "under way");
  const int fd = open(dir_.File("out.latte-4.tmp").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  ASSERT_TRUE(Save(path_, "poem"));
  close(fd);
  std::vector<std::string> expected = foreign;
  expected.insert(expected.end(), {"out", "out.latte-2.tmp", "out.latte-4.tmp"});
  std::ranges::sort(expected);
  EXPECT_EQ(Names(), expected);
}

TEST_F(OutputFileTest, ALeftoverOfThisProcessNumberIsNoHindrance) {
  Put(path_ + ".latte-" + std::to_string(gettid()) + ".tmp", "half");
  ASSERT_TRUE(Save(path_, "poem"));
  ASSERT_TRUE(WriteFile(path_, {}));
  EXPECT_EQ(Names(), std::vector<std::string>{"out"});
}

TEST_F(OutputFileTest, DevicesAndDescriptorsAreWrittenTo) {
  EXPECT_TRUE(Save("/dev/null", "poem"));
  if (Exists("/dev/full")) {
    EXPECT_EQ(Save("/dev/full", "poem").error().code, Code::kUnavailable);
  }
  const int fd = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_TRUE(Save("/dev/fd/" + std::to_string(fd), "poem"));
  char text[4] = {};
  EXPECT_EQ(pread(fd, text, sizeof(text), 0), 4);  // of the file that the descriptor means
  close(fd);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_TRUE(Save("/dev/fd/" + std::to_string(ends[1]), "poem"));
  EXPECT_EQ(read(ends[0], text, sizeof(text)), 4);
  close(ends[0]);
  close(ends[1]);
}

// As engines of one process do that share a folder of prefixes.
TEST_F(OutputFileTest, ThreadsWriteTheSameFileAtOnce) {
  const std::vector<std::byte> bytes(1 << 16, std::byte{'x'});
  std::vector<std::thread> writers;
  std::vector<std::string> errors(4);
  for (std::string& error : errors)
    writers.emplace_back([&] {
      for (int i = 0; i < 200 && error.empty(); ++i)
        if (const Status written = WriteFile(path_, bytes); !written)
          error = written.error().message;
    });
  for (std::thread& writer : writers) writer.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  EXPECT_EQ(fs::file_size(path_), bytes.size());
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(path_).parent_path()), {}), 1);
}

}  // namespace
}  // namespace latte::output_file_test
