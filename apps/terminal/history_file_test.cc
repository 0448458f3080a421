#include "apps/terminal/history_file.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace latte::history_file_test {
namespace {

class HistoryFileTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_ = testing::TempDir() + "/latte_history_" + std::to_string(getpid());
  std::string path_ = folder_ + "/state/history";
};

using Texts = std::vector<std::string>;

TEST_F(HistoryFileTest, KeepsMessagesForItsOwnerAlone) {
  const HistoryFile file(path_);
  EXPECT_EQ(file.Load().value(), Texts{});
  for (const char* text : {"a", "two\nlines", "ü \"q\""}) ASSERT_TRUE(file.Append(text));
  EXPECT_EQ(HistoryFile(path_).Load().value(), (Texts{"a", "two\nlines", "ü \"q\""}));
  struct stat info = {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(HistoryFileTest, LinesOfOtherProgramsAreLeftOut) {
  const HistoryFile file(path_);
  ASSERT_TRUE(file.Append("a"));
  std::ofstream(path_, std::ios::app) << "no JSON\n7\n\"b\"\n\"cut";
  EXPECT_EQ(file.Load().value(), (Texts{"a", "b"}));
}

TEST_F(HistoryFileTest, LongMessagesAreNotKept) {
  const HistoryFile file(path_);
  ASSERT_TRUE(file.Append(std::string(HistoryFile::kMessageBytes + 1, 'x')));
  ASSERT_TRUE(file.Append("a"));
  EXPECT_EQ(file.Load().value(), Texts{"a"});
}

TEST_F(HistoryFileTest, AGrownFileIsShortened) {
  const HistoryFile file(path_);
  ASSERT_TRUE(file.Append("first"));
  {
    std::ofstream out(path_, std::ios::app);
    for (size_t i = 0; i < 2 * HistoryFile::kMessages; ++i) out << '"' << i << "\"\n";
  }
  const auto size = std::filesystem::file_size(path_);
  const Texts loaded = file.Load().value();
  EXPECT_EQ(loaded.size(), HistoryFile::kMessages);
  EXPECT_EQ(loaded.back(), std::to_string(2 * HistoryFile::kMessages - 1));
  EXPECT_LT(std::filesystem::file_size(path_), size);
  EXPECT_EQ(file.Load().value(), loaded);
}

TEST_F(HistoryFileTest, SeveralWritersLoseNothing) {
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&] {
      for (int k = 0; k < 50; ++k) ASSERT_TRUE(HistoryFile(path_).Append(std::string(2000, 'x')));
    });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(HistoryFile(path_).Load().value().size(), 200u);
}

TEST_F(HistoryFileTest, AFolderThatCannotBeWrittenIsTold) {
  const Status kept = HistoryFile("/dev/null/latte/history").Append("a");
  ASSERT_FALSE(kept);
  EXPECT_NE(kept.error().message.find("/dev/null/latte/history"), std::string::npos);
  EXPECT_TRUE(HistoryFile("").Append("a"));
}

}  // namespace
}  // namespace latte::history_file_test
