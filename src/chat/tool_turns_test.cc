// Conversations with reasoning, calls and results, as the template or encoder of each family
// renders them. tools/chat/tool_turns.py writes the expected prompts and names their sources.
//
// Templates of others are not in the repository. LATTE_TEST_CHAT_TEMPLATES names a folder that has
// them; without it, templates of our own stand for two of them.
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "tests/support/chat_data.h"

namespace latte::tool_turns_test {
namespace {

using jinja::Value;
using testing_support::ChatText;
using testing_support::ReadChatData;
using testing_support::ReadChatJson;
using testing_support::ReadMessages;
using testing_support::ToJsonText;
using testing_support::WithChatTemplate;

struct Source {
  std::string name;
  std::string file;
  std::optional<std::string> encoder;
  bool thinking = false;
  std::vector<std::pair<std::string, std::string>> prompts;  // of each chat
};

class ToolTurns : public testing::Test {
 protected:
  ToolTurns() : file_(ReadChatJson("tool_turns.json")) {
    for (const Value& item : file_.dict().Find("sources")->list().items) {
      Source source{*ChatText(item.dict(), "name"),
                    *ChatText(item.dict(), "file"),
                    ChatText(item.dict(), "encoder"),
                    item.dict().Find("thinking")->boolean(),
                    {}};
      for (const auto& [chat, prompt] : item.dict().Find("prompts")->dict().entries)
        source.prompts.emplace_back(chat.bytes(), prompt.bytes());
      sources_.push_back(std::move(source));
    }
  }

  std::vector<ChatMessage> Chat(std::string_view name) const {
    return ReadMessages(*file_.dict().Find("chats")->dict().Find(name));
  }

  // Compares prompts from the text of the first question on if `turns_only`: a list of tools may be
  // in other words.
  void Expect(const ChatRenderer& renderer, const Source& source, bool turns_only,
              std::optional<std::string> variables = {}) const {
    ChatOptions options;
    options.thinking = source.thinking;
    options.tools = ToJsonText(*file_.dict().Find("tools"));
    options.variables = std::move(variables);
    for (const auto& [name, golden] : source.prompts) {
      const std::vector<ChatMessage> messages = Chat(name);
      const auto pieces = renderer.Render(renderer.WithCallsShown(messages), options);
      ASSERT_TRUE(pieces) << source.name << ": " << name << ": " << pieces.error().message;
      const std::string& question =
          *std::find_if(messages.begin(), messages.end(), [](const ChatMessage& m) {
             return m.role == "user";
           })->content;
      const auto part = [&](const std::string& text) {
        return turns_only ? text.substr(text.find(question)) : text;
      };
      EXPECT_EQ(part(JoinPieces(*pieces)), part(golden)) << source.name << ": " << name;
    }
  }

  Value file_;
  std::vector<Source> sources_;
};

ChatFormat FormatOf(const std::string& name) {
  for (const ChatFormat format :
       {ChatFormat::kDeepseekV31, ChatFormat::kDeepseekV32, ChatFormat::kKimiK2})
    if (ChatFormatName(format) == name) return format;
  ADD_FAILURE() << "no encoder " << name;
  return ChatFormat::kTemplate;
}

TEST_F(ToolTurns, EncodersEqualTheirSources) {
  size_t compared = 0;
  for (const Source& source : sources_)
    if (source.encoder) {
      // Copies of V3.2's encoder differ in the blank lines between its instructions.
      Expect(ChatRenderer::Create(FormatOf(*source.encoder), {}).value(), source,
             source.name == "deepseek_v3.2");
      ++compared;
    }
  EXPECT_EQ(compared, 5U);
}

TEST_F(ToolTurns, TemplatesOfOurOwnEqualTheirSources) {
  size_t compared = 0;
  for (const Source& source : sources_) {
    const bool glm = source.name.starts_with("glm_");
    if (!glm && source.name != "deepseek_r1") continue;
    const std::string text =
        ReadChatData(glm ? "templates/glm.jinja" : "templates/deepseek_v3.jinja");
    Expect(ChatRenderer::Create(WithChatTemplate(text)).value(), source, true,
           R"({"version": ")" + source.name.substr(source.name.find('_') + 1) + "\"}");
    ++compared;
  }
  EXPECT_EQ(compared, 7U);
}

TEST_F(ToolTurns, TemplatesOfOthersAreRenderedAsByTheirInterpreter) {
  const char* folder = std::getenv("LATTE_TEST_CHAT_TEMPLATES");
  if (!folder) GTEST_SKIP() << "LATTE_TEST_CHAT_TEMPLATES does not name a folder of templates";
  for (const Source& source : sources_) {
    const std::filesystem::path path = std::filesystem::path(folder) / source.file;
    if (path.extension() != ".jinja" || !std::filesystem::exists(path)) continue;
    const std::string text = ReadFile(path.string(), 1 << 20).value();
    Expect(ChatRenderer::Create(WithChatTemplate(text)).value(), source, false);
  }
}

}  // namespace
}  // namespace latte::tool_turns_test
