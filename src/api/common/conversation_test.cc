#include "src/api/common/conversation.h"

#include <gtest/gtest.h>

#include "src/api/request.h"

namespace latte::conversation_test {
namespace {

const ApiModel& Tiny() {
  static const ApiModel model = ApiModel::Create("tiny", ModelFiles::Load("tiny").value()).value();
  return model;
}

Conversation Chat(std::vector<ChatMessage> messages) {
  return {.settings = DefaultSettings(Tiny()), .messages = std::move(messages)};
}

TEST(Conversation, BecomesTheSameRequestAsAChat) {
  ApiRequest made;
  ASSERT_TRUE(AddConversation(Chat({{.role = "user", .content = "Hi"}}), Tiny(), {}, &made));
  const ApiRequest chat =
      ParseApiBody(ApiEndpoint::kChat, R"({"messages":[{"role":"user","content":"Hi"}]})", Tiny())
          .value();
  ASSERT_EQ(made.requests.size(), 1U);
  EXPECT_EQ(made.requests[0].tokens, chat.requests[0].tokens);
  EXPECT_EQ(made.requests[0].stop.tokens, chat.requests[0].stop.tokens);
  EXPECT_EQ(made.requests[0].sampling.temperature, chat.requests[0].sampling.temperature);
  EXPECT_EQ(made.reply.prompts.back().first_token, chat.reply.prompts.back().first_token);
}

// Shows messages in order, and knows DeepSeek-V3's calls.
ApiModel ShowingOrder() {
  ApiModel model = Tiny();
  EXPECT_TRUE(model.UseChatTemplate(
      "{% for m in messages %}{{ m.role }}:{{ m.content }}{% for c in m.tool_calls or [] %}"
      "({{ c.function.name }}{{ c.function.arguments }}){% endfor %};{% endfor %}"
      "{% if add_generation_prompt %}<｜Assistant｜>{% endif %}",
      ModelConfig()));
  return model;
}

std::string PromptOf(const ApiModel& model, ApiEndpoint endpoint, const std::string& body) {
  const auto parsed = ParseApiBody(endpoint, body, model);
  if (!parsed) return parsed.error().message;
  return model.tokenizer.Decode(parsed->requests.front().tokens).value();
}

// The result of the second call comes first, between them a message of the system.
TEST(Conversation, ResultsBelongToTheirCallsInEveryApi) {
  const ApiModel model = ShowingOrder();
  const auto chat = [&](const std::string& id, const std::string& results) {
    return PromptOf(
        model, ApiEndpoint::kChat,
        R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[
        {"id":"x","function":{"name":"f"}},{"id":"y","function":{"name":"g"}}]},)" +
            results + R"({"role":"tool","tool_call_id":")" + id + R"(","content":"RX"}]})");
  };
  const std::string y =
      R"({"role":"tool","tool_call_id":"y","content":"RY"},{"role":"system","content":"s"},)";
  const std::string expected =
      "user:a;assistant:(f{})(g{});tool:RX;tool:RY;system:s;<｜Assistant｜>";
  EXPECT_EQ(chat("x", y), expected);
  EXPECT_EQ(PromptOf(model, ApiEndpoint::kResponses, R"({"input":[{"role":"user","content":"a"},
      {"role":"assistant","content":""},
      {"type":"function_call","call_id":"x","name":"f","arguments":"{}"},
      {"type":"function_call","call_id":"y","name":"g","arguments":"{}"},
      {"type":"function_call_output","call_id":"y","output":"RY"},{"role":"system","content":"s"},
      {"type":"function_call_output","call_id":"x","output":"RX"}]})"),
            expected);
  EXPECT_EQ(PromptOf(model, ApiEndpoint::kMessages,
                     R"({"max_tokens":9,"messages":[{"role":"user","content":"a"},
      {"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":{}},
        {"type":"tool_use","id":"y","name":"g","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"y","content":"RY"}]},
      {"role":"system","content":"s"},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"RX"}]}]})"),
            expected);
  // A gap, and an id that no call has.
  EXPECT_EQ(chat("y", ""), "user:a;assistant:(f{})(g{});tool:(no result);tool:RX;<｜Assistant｜>");
  const std::string unknown = chat("z", y);
  for (const char* word : {"messages.4: ", "'z'", "without a result: 'x'"})
    EXPECT_NE(unknown.find(word), std::string::npos) << unknown;
  const std::string of_user =
      PromptOf(model, ApiEndpoint::kMessages, R"({"max_tokens":9,"messages":[
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"9"}]}]})");
  for (const char* word : {"messages.0.content.0", "'9'", "without a result: none"})
    EXPECT_NE(of_user.find(word), std::string::npos) << of_user;
}

TEST(Conversation, AnErrorOfAMessageNamesTheFieldOfTheRequest) {
  Conversation chat = Chat({{.role = "user", .content = "Hi"}, {.role = "nobody", .content = "?"}});
  chat.places = {"instructions", "input.0"};
  ApiRequest out;
  const Status named = AddConversation(chat, Tiny(), {}, &out);
  ASSERT_FALSE(named);
  EXPECT_TRUE(named.error().message.starts_with("input.0: ")) << named.error().message;
  chat.places.clear();
  const Status unnamed = AddConversation(chat, Tiny(), {}, &out);
  ASSERT_FALSE(unnamed);
  EXPECT_TRUE(unnamed.error().message.starts_with("messages.1: ")) << unnamed.error().message;
}

TEST(Conversation, HasAtMostSoManyMessages) {
  const auto list = [](size_t messages, std::string_view one) {
    std::string out = "[";
    for (size_t i = 0; i < messages; ++i) out += std::string(i > 0 ? "," : "") + std::string(one);
    return out + "]";
  };
  constexpr std::string_view kMessage = R"({"role":"user","content":"a"})";
  const std::string many = list(kMaxMessages + 1, kMessage);
  const std::string results =
      R"([{"role":"user","content":)" +
      list(kMaxMessages + 1, R"({"type":"tool_result","tool_use_id":"x","content":"a"})") + "}]";
  const std::vector<std::pair<ApiEndpoint, std::string>> bodies = {
      {ApiEndpoint::kChat, R"({"messages":)" + many + "}"},
      {ApiEndpoint::kResponses, R"({"input":)" + many + "}"},
      {ApiEndpoint::kMessages, R"({"model":"tiny","max_tokens":1,"messages":)" + many + "}"},
      {ApiEndpoint::kMessages, R"({"model":"tiny","max_tokens":1,"messages":)" + results + "}"}};
  for (const auto& [endpoint, body] : bodies) {
    const auto refused = ParseApiBody(endpoint, body, Tiny());
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("at most 16384 messages, found 16385"),
              std::string::npos)
        << refused.error().message;
  }
  const Json most = Json::Parse(list(kMaxMessages, kMessage), "body").value();
  EXPECT_TRUE(CheckMessageList(most));
}

}  // namespace
}  // namespace latte::conversation_test
