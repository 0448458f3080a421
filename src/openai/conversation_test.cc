#include "src/openai/conversation.h"

#include <gtest/gtest.h>

namespace latte::conversation_test {
namespace {

const OpenAiModel& Tiny() {
  static const OpenAiModel model =
      OpenAiModel::Create("tiny", ModelFiles::Load("tiny").value()).value();
  return model;
}

Conversation Chat(std::vector<ChatMessage> messages) {
  return {.settings = DefaultSettings(Tiny()), .messages = std::move(messages)};
}

TEST(Conversation, BecomesTheSameRequestAsAChat) {
  OpenAiRequest made;
  ASSERT_TRUE(AddConversation(Chat({{.role = "user", .content = "Hi"}}), Tiny(), &made));
  const OpenAiRequest chat =
      ParseOpenAiBody(OpenAiEndpoint::kChat, R"({"messages":[{"role":"user","content":"Hi"}]})",
                      Tiny())
          .value();
  ASSERT_EQ(made.requests.size(), 1U);
  EXPECT_EQ(made.requests[0].tokens, chat.requests[0].tokens);
  EXPECT_EQ(made.requests[0].stop.tokens, chat.requests[0].stop.tokens);
  EXPECT_EQ(made.requests[0].sampling.temperature, chat.requests[0].sampling.temperature);
  EXPECT_EQ(made.reply.prompts.back().first_token, chat.reply.prompts.back().first_token);
}

TEST(Conversation, AnErrorOfAMessageNamesTheFieldOfTheRequest) {
  Conversation chat = Chat({{.role = "user", .content = "Hi"}, {.role = "nobody", .content = "?"}});
  chat.places = {"instructions", "input.0"};
  OpenAiRequest out;
  const Status named = AddConversation(chat, Tiny(), &out);
  ASSERT_FALSE(named);
  EXPECT_TRUE(named.error().message.starts_with("input.0: ")) << named.error().message;
  chat.places.clear();
  const Status unnamed = AddConversation(chat, Tiny(), &out);
  ASSERT_FALSE(unnamed);
  EXPECT_EQ("input.0: " + unnamed.error().message, named.error().message);
}

}  // namespace
}  // namespace latte::conversation_test
