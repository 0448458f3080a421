// Compares prompts of generated chats with jinja2 and the families' own encoders.
// tools/chat/make_goldens.py writes the expected prompts and names their sources.
#include <algorithm>
#include <cstdlib>
#include <functional>

#include <gtest/gtest.h>

#include "src/base/json.h"
#include "src/chat/arrange.h"
#include "tests/support/chat_data.h"
#include "tests/support/parameter_name.h"

namespace latte::golden_test {
namespace {

using jinja::Value;
using testing_support::ReadChatJson;
using testing_support::ReadMessages;
using testing_support::ToJsonText;
using testing_support::WithChatTemplate;

std::string Fnv(std::string_view bytes) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

struct Chat {
  std::vector<ChatMessage> messages;
  ChatOptions options;
};

std::vector<Chat> Conversations() {
  std::vector<Chat> out;
  const Value file = ReadChatJson("conversations.json");
  for (const Value& item : file.list().items) {
    Chat chat;
    chat.messages = ReadMessages(*item.dict().Find("messages"));
    chat.options.add_generation_prompt = item.dict().Find("generate")->boolean();
    chat.options.thinking = item.dict().Find("thinking")->boolean();
    if (const Value* tools = item.dict().Find("tools")) chat.options.tools = ToJsonText(*tools);
    out.push_back(std::move(chat));
  }
  return out;
}

// The variants of each chat, as in make_goldens.py.
Chat Plain(Chat chat) {
  std::erase_if(chat.messages,
                [](const ChatMessage& m) { return m.role == "tool" || !m.tool_calls.empty(); });
  chat.options.tools.reset();
  return chat;
}

Chat OneRound(Chat chat) {
  int rounds = 0;
  bool inside = false;
  std::vector<ChatMessage> kept;
  for (ChatMessage& m : chat.messages) {
    rounds += m.tool_calls.empty() ? 0 : 1;
    inside = !m.tool_calls.empty() || (inside && m.role == "tool");
    if (!inside || rounds <= 1) kept.push_back(std::move(m));
  }
  chat.messages = std::move(kept);
  chat.options.tools.reset();
  return chat;
}

Chat SystemFirst(Chat chat) {
  if (chat.messages.empty() || chat.messages[0].role != "system") {
    ChatMessage system;
    system.role = "system";
    system.content = "S";
    chat.messages.insert(chat.messages.begin(), system);
  }
  return chat;
}

// Without the system messages at the end, unless they follow a message of the user.
Chat SystemAfterUser(Chat chat) {
  std::vector<ChatMessage>& messages = chat.messages;
  size_t end = messages.size();
  while (end > 0 && messages[end - 1].role == "system") --end;
  if (end == 0 || messages[end - 1].role != "user") messages.resize(end);
  return chat;
}

Chat Same(Chat chat) { return chat; }

// The results of each answer in the opposite order, and brought into that of the calls again.
Chat ResultsRearranged(Chat chat) {
  std::vector<ChatMessage>& messages = chat.messages;
  const auto is_result = [](const ChatMessage& message) { return message.role == "tool"; };
  for (auto begin = messages.begin(); begin != messages.end();) {
    begin = std::find_if(begin, messages.end(), is_result);
    const auto end = std::find_if_not(begin, messages.end(), is_result);
    std::reverse(begin, end);
    begin = end;
  }
  chat.messages = ArrangeToolResults(ChatFormat::kTemplate, messages)->messages;
  return chat;
}

void ExpectGoldens(const ChatRenderer& renderer, const std::string& golden,
                   const std::function<Chat(Chat)>& view) {
  const Value file = ReadChatJson(golden);
  const std::vector<Value>& hashes = file.dict().Find("hashes")->list().items;
  const std::vector<Value>& texts = file.dict().Find("texts")->list().items;
  const std::vector<Chat> chats = Conversations();
  ASSERT_EQ(chats.size(), hashes.size());
  ASSERT_GE(chats.size(), 200u);
  for (size_t i = 0; i < chats.size(); ++i) {
    const Chat chat = view(chats[i]);
    const auto pieces = renderer.Render(chat.messages, chat.options);
    if (hashes[i].bytes().empty()) {
      EXPECT_FALSE(pieces) << golden << " chat " << i << ": the reference refuses it";
      continue;
    }
    ASSERT_TRUE(pieces) << golden << " chat " << i << ": " << ToString(pieces.error());
    const std::string prompt = JoinPieces(*pieces);
    if (i < texts.size()) {
      EXPECT_EQ(prompt, texts[i].bytes()) << golden << " chat " << i;
    }
    EXPECT_EQ(Fnv(prompt), hashes[i].bytes()) << golden << " chat " << i << ":\n" << prompt;
  }
}

ChatModel FromFolder(const std::string& folder) {
  const std::string text = ReadFile(folder + "/tokenizer_config.json", 1 << 24).value();
  return WithChatTemplate(Json::Parse(text, "config").value().GetString("chat_template").value());
}

TEST(ChatGolden, TemplateOfTheModelThatComesWithLatte) {
  const ChatModel model = FromFolder(std::string(LATTE_SOURCE_DIR) + "/models/tiny");
  ExpectGoldens(ChatRenderer::Create(model).value(), "tiny.json", Same);
}

TEST(ChatGolden, TemplateOfDeepseekV3) {
  const char* folder = std::getenv("LATTE_TEST_TOKENIZER_DIR");
  if (!folder) GTEST_SKIP() << "LATTE_TEST_TOKENIZER_DIR does not name DeepSeek-V3's tokenizer";
  const ChatModel model = FromFolder(folder);
  ExpectGoldens(ChatRenderer::Create(model).value(), "deepseek_v3_template.json", Same);
}

struct Case {
  ChatFormat format;
  const char* golden;
  Chat (*view)(Chat);

  friend void PrintTo(const Case& c, std::ostream* out) {
    *out << ChatFormatName(c.format) << " as " << c.golden;
  }
};

class EncoderGolden : public testing::TestWithParam<Case> {};

TEST_P(EncoderGolden, EqualsWhatTheFamilyShips) {
  const ChatRenderer renderer = ChatRenderer::Create(GetParam().format, {}).value();
  ExpectGoldens(renderer, GetParam().golden, GetParam().view);
}

TEST_P(EncoderGolden, ResultsMayComeInAnyOrder) {
  const ChatRenderer renderer = ChatRenderer::Create(GetParam().format, {}).value();
  ExpectGoldens(renderer, GetParam().golden,
                [](Chat chat) { return ResultsRearranged(GetParam().view(std::move(chat))); });
}

INSTANTIATE_TEST_SUITE_P(
    Formats, EncoderGolden,
    testing::Values(Case{ChatFormat::kDeepseekV2, "deepseek_v2.json", Plain},
                    Case{ChatFormat::kDeepseekV25, "deepseek_v3.json", Plain},
                    Case{ChatFormat::kDeepseekV3, "deepseek_v3.json", Plain},
                    Case{ChatFormat::kDeepseekV3, "deepseek_v3_tools.json", OneRound},
                    Case{ChatFormat::kDeepseekR1, "deepseek_r1.json", OneRound},
                    Case{ChatFormat::kDeepseekV31, "deepseek_v3.1.json", Same},
                    Case{ChatFormat::kDeepseekV32, "deepseek_v3.2.json", SystemAfterUser},
                    Case{ChatFormat::kKimiK2, "kimi_k2.json", SystemFirst}),
    testing_support::ParameterName());

}  // namespace
}  // namespace latte::golden_test
