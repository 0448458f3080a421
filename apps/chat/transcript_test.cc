#include "apps/chat/transcript.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace latte::transcript_test {
namespace {

std::string File(const std::string& name) {
  return testing::TempDir() + "/latte_" + std::to_string(getpid()) + "_" + name;
}

std::string ErrorOf(const std::string& messages) {
  const auto parsed =
      ParseTranscript(R"({"latte_chat": 1, "messages": )" + messages + "}", "t.json");
  return parsed ? "" : parsed.error().message;
}

TEST(Transcript, ComesBackAsItWas) {
  std::vector<ChatMessage> messages = {
      {"system", "Be brief."}, {"user", "a\n\"b\""}, {"assistant", "ü"}};
  messages[2].reasoning = "hm";
  const std::string path = File("back.json");
  ASSERT_TRUE(SaveTranscript(path, "tiny", messages));
  ASSERT_TRUE(SaveTranscript(path, "tiny", messages));  // replaces its own kind
  const auto loaded = LoadTranscript(path);
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*loaded)[i].role, messages[i].role);
    EXPECT_EQ((*loaded)[i].content, messages[i].content);
    EXPECT_EQ((*loaded)[i].reasoning, messages[i].reasoning);
  }
  std::filesystem::remove(path);
}

TEST(Transcript, FilesOfOtherKindsStay) {
  const std::string path = File("other.txt");
  std::ofstream(path) << "my notes";
  const Status saved = SaveTranscript(path, "tiny", {});
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code, Code::kInvalidArgument);
  std::string text;
  std::getline(std::ifstream(path), text);
  EXPECT_EQ(text, "my notes");
  std::filesystem::remove(path);
}

TEST(Transcript, TurnsAlternate) {
  EXPECT_EQ(ErrorOf("[]"), "");
  EXPECT_NE(ErrorOf(R"([{"role": "user", "content": "a"}])").find("an answer"), std::string::npos);
  EXPECT_NE(ErrorOf(R"([{"role": "assistant", "content": "a"}])").find("'user'"),
            std::string::npos);
  EXPECT_NE(ErrorOf(R"([{"role": "user", "content": 1}])").find("content"), std::string::npos);
  EXPECT_NE(ErrorOf("{}").find("array"), std::string::npos);
  EXPECT_FALSE(ParseTranscript("{}", "t.json"));
  EXPECT_FALSE(ParseTranscript(R"({"latte_chat": 2, "messages": []})", "t.json"));
  EXPECT_FALSE(LoadTranscript(File("none.json")));
}

}  // namespace
}  // namespace latte::transcript_test
