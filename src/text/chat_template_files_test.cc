#include "src/text/chat_template_files.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/json_out.h"
#include "src/text/tokenizer.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/tiny_tokenizer.h"

namespace latte::chat_template_files_test {
namespace {

ChatTemplate Read(const std::string& value) {
  return ReadChatTemplate(
      Json::Parse(fmt::format(R"({{"chat_template": {}}})", value), "file.json").value());
}

TEST(ReadChatTemplate, IsATextAListOrAnObject) {
  EXPECT_EQ(Read("\"text\"").text, "text");
  EXPECT_EQ(
      Read(R"([{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}])").text,
      "d");
  const ChatTemplate object = Read(R"({"tool_use": "t", "default": "d", "rag": "r"})");
  EXPECT_EQ(object.text, "d");
  EXPECT_EQ(object.unused.size(), 2u);
  EXPECT_FALSE(object.problem);
  for (const char* none : {"null", "\"\"", "[]", "{}"}) {
    EXPECT_EQ(Read(none).text, "") << none;
    EXPECT_FALSE(Read(none).problem) << none;
  }
}

TEST(ReadChatTemplate, WhatIsOfNoUseIsNamed) {
  const std::pair<const char*, const char*> kCases[] = {
      {"7", "'chat_template': expected a string"},
      {"[7]", "chat_template.0"},
      {R"([{"name": "default"}])", "'template'"},
      {R"([{"template": "d"}])", "'name'"},
      {R"({"default": ["d"]})", "chat_template.default"},
      {R"([{"name": "rag", "template": "r"}])", "found 'rag'"},
      {R"({"rag": "r", "tool_use": "t"})", "found 'rag', 'tool_use'"}};
  for (const auto& [value, words] : kCases) {
    const ChatTemplate read = Read(value);
    EXPECT_EQ(read.text, "") << value;
    ASSERT_TRUE(read.problem) << value;
    EXPECT_NE(read.problem->message.find("file.json"), std::string::npos) << read.problem->message;
    EXPECT_NE(read.problem->message.find(words), std::string::npos) << read.problem->message;
  }
  std::string many = "{";
  for (int i = 0; i < 5000; ++i) many += fmt::format(R"("{}{}": "t",)", i, std::string(100, 'x'));
  EXPECT_LT(Read(many + R"("last": "t"})").problem->message.size(), 1500u);
}

class ChatTemplateFolder : public testing::Test {
 protected:
  ChatTemplateFolder() { Write("tokenizer.json", Dump(SmallTokenizer())); }
  void Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(dir_.File(name)).parent_path());
    std::ofstream(dir_.File(name), std::ios::binary) << text;
  }
  Tokenizer Load() {
    Result<Tokenizer> out = Tokenizer::Load(dir_.path());
    EXPECT_TRUE(out) << ToString(out.error());
    return *std::move(out);
  }
  std::string Problem() {
    const Status status = Load().CheckChatTemplate();
    return status ? "" : status.error().message;
  }
  testing_support::ScratchDir dir_;
};

// Adds templates from the last place to the first.
TEST_F(ChatTemplateFolder, TheFirstPlaceThatHasATemplateCounts) {
  EXPECT_EQ(Load().chat_template(), "");
  Write("additional_chat_templates/default.jinja", "of the folder");
  EXPECT_EQ(Load().chat_template(), "of the folder");
  Write("chat_template.json", R"({"chat_template": "of the json"})");
  EXPECT_EQ(Load().chat_template(), "of the json");
  Write("tokenizer_config.json", R"({"chat_template": "of the config"})");
  EXPECT_EQ(Load().chat_template(), "of the config");
  Write("chat_template.jinja", "of the jinja");
  EXPECT_EQ(Load().chat_template(), "of the jinja");
  EXPECT_EQ(Load().unused_chat_templates().size(), 3u);
  EXPECT_EQ(Problem(), "");
}

TEST_F(ChatTemplateFolder, TheSameTemplateTwiceLeavesNothingAside) {
  Write("tokenizer_config.json", R"({"chat_template": "t"})");
  Write("chat_template.json", R"({"chat_template": "t"})");
  Write("chat_template.jinja", "t");
  EXPECT_TRUE(Load().unused_chat_templates().empty());
}

TEST_F(ChatTemplateFolder, TemplatesByNameAreLeftAsideByName) {
  Write("chat_template.jinja", "t");
  Write("additional_chat_templates/tool_use.jinja", "x");
  Write("additional_chat_templates/rag.jinja", "y");
  Write("additional_chat_templates/README.md", "z");
  const std::vector<std::string> unused = Load().unused_chat_templates();
  ASSERT_EQ(unused.size(), 2u);
  EXPECT_NE(unused[0].find("'rag'"), std::string::npos) << unused[0];
  EXPECT_NE(unused[1].find("'tool_use'"), std::string::npos) << unused[1];
}

TEST_F(ChatTemplateFolder, OneOfNoUseFailsChatsOnly) {
  const std::pair<const char*, const char*> kCases[] = {
      {"tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "r"}]})"},
      {"tokenizer_config.json", R"({"chat_template": 7})"},
      {"chat_template.json", R"({"chat_template": {"rag": "r"}})"},
      {"chat_template.json", "{"},
      {"additional_chat_templates/rag.jinja", "r"}};
  for (const auto& [name, text] : kCases) {
    Write(name, text);
    EXPECT_EQ(Load().chat_template(), "") << name;
    EXPECT_NE(Problem().find(dir_.File(std::string(name).substr(0, 12))), std::string::npos)
        << name << ": " << Problem();
    Write("chat_template.jinja", "better");
    EXPECT_EQ(Load().chat_template(), "better") << name;
    EXPECT_EQ(Problem(), "") << name;
    std::filesystem::remove(dir_.File("chat_template.jinja"));
    std::filesystem::remove(dir_.File(name));
  }
}

}  // namespace
}  // namespace latte::chat_template_files_test
