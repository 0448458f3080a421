#include "src/openai/messages.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/json.h"

namespace latte::messages_test {
namespace {

TEST(OpenAiMessages, EveryFieldArrives) {
  const Json messages = Json::Parse(R"([
      {"role":"user","content":"Hi","name":"me"},
      {"role":"assistant","content":null,"reasoning_content":"so","tool_calls":[
        {"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},
      {"role":"tool","tool_call_id":"1","content":"2"}])",
                                    "body")
                            .value();
  const std::vector<ChatMessage> parsed = ParseOpenAiMessages(messages).value();
  ASSERT_EQ(parsed.size(), 3U);
  EXPECT_EQ(parsed[0].role, "user");
  EXPECT_EQ(parsed[0].content, "Hi");
  EXPECT_EQ(parsed[0].name, "me");
  EXPECT_EQ(parsed[1].content, std::nullopt);
  EXPECT_EQ(parsed[1].reasoning, "so");
  ASSERT_EQ(parsed[1].tool_calls.size(), 1U);
  EXPECT_EQ(parsed[1].tool_calls[0].id, "1");
  EXPECT_EQ(parsed[1].tool_calls[0].name, "f");
  EXPECT_EQ(parsed[1].tool_calls[0].arguments, "{}");
  EXPECT_EQ(parsed[2].tool_call_id, "1");
}

Result<std::vector<ChatMessage>> Messages(const std::string& json) {
  return ParseOpenAiMessages(Json::Parse(json, "body").value());
}

TEST(OpenAiMessages, AnswersComeBackAsClientsDumpThem) {
  const auto parsed = Messages(R"([
      {"role":"assistant","content":"yes","refusal":null,"annotations":[],"audio":null,
       "function_call":null,"tool_calls":null,"name":null,"reasoning_content":null},
      {"role":"assistant","content":"yes","refusal":"","annotations":[{"type":"url_citation"}],
       "tool_calls":[],"provider_specific_fields":{"refusal":null},"images":[],"prefix":false},
      {"role":"assistant","content":null,"tool_calls":[
        {"index":0,"id":null,"type":null,"function":{"name":"f","arguments":null}},
        {"id":"2","function":{"name":"g","arguments":"","x":null}}]},
      {"role":"assistant","content":null,"reasoning_content":"hm"},
      {"role":"user","what_no_one_knows":null,"content":[
        {"type":"text","text":"a","annotations":[],"cache_control":{"type":"ephemeral"},
         "image_url":null}]}])");
  ASSERT_TRUE(parsed) << parsed.error().message;
  const std::vector<ChatMessage>& m = *parsed;
  EXPECT_EQ(m[0].content, "yes");
  EXPECT_FALSE(m[0].reasoning || m[0].name);
  EXPECT_TRUE(m[0].tool_calls.empty() && m[1].tool_calls.empty());
  ASSERT_EQ(m[2].tool_calls.size(), 2U);
  EXPECT_EQ(m[2].tool_calls[0].arguments, "{}");
  EXPECT_EQ(m[2].tool_calls[1].arguments, "{}");
  EXPECT_EQ(m[3].content, "");
  EXPECT_EQ(m[3].reasoning, "hm");
  EXPECT_EQ(m[4].content, "a");
}

TEST(OpenAiMessages, WhatIsNoTextIsNamedByTypeAndPlace) {
  const std::pair<std::string, std::vector<std::string>> table[] = {
      {R"([{"role":"user","content":[{"type":"text","text":"a"},
          {"type":"image_url","image_url":{"url":"u"}}]}])",
       {"0.content.1", "'image_url'"}},
      {R"([{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}])",
       {"0.content.0", "'input_audio'"}},
      {R"([{"role":"user","content":[{"type":"file","file":{}}]}])", {"0.content.0", "'file'"}},
      {R"([{"role":"user","content":[{"type":"video_url"}]}])", {"0.content.0", "'video_url'"}},
      {R"([{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}])", {"'refusal'"}},
      {R"([{"role":"assistant","content":null,"refusal":"no"}])", {"0.refusal", "'refusal'"}},
      {R"([{"role":"assistant","content":"a","audio":{"id":"1"}}])", {"0.audio", "'audio'"}},
      {R"([{"role":"assistant","content":"a","function_call":{"name":"f","arguments":"{}"}}])",
       {"'function_call'"}},
      {R"([{"role":"assistant","content":"a","prefix":true}])", {"'prefix'"}},
      {R"([{"role":"assistant","tool_calls":[{"type":"custom","custom":{"name":"f"}}]}])",
       {"tool_calls.0", "'custom'"}},
      {R"([{"role":"function","name":"f","content":"a"}])", {"'function'", "'tool'"}},
  };
  for (const auto& [messages, words] : table) {
    const auto parsed = Messages(messages);
    ASSERT_FALSE(parsed) << messages;
    EXPECT_EQ(parsed.error().code, Code::kUnsupported) << parsed.error().message;
    EXPECT_EQ(parsed.error().message.find("leave it out"), std::string::npos);
    for (const std::string& word : words)
      EXPECT_NE(parsed.error().message.find(word), std::string::npos) << parsed.error().message;
  }
}

TEST(OpenAiMessages, OnlyAssistantsThinkAndCall) {
  for (const char* role : {"user", "system", "tool"}) {
    const std::string begin = fmt::format(R"([{{"role":"{}","content":"a",)", role);
    for (const char* rest : {R"("reasoning_content":"b"}])",
                             R"("tool_calls":[{"id":"1","function":{"name":"f"}}]}])"}) {
      const auto parsed = Messages(begin + rest);
      ASSERT_FALSE(parsed);
      EXPECT_NE(parsed.error().message.find(role), std::string::npos) << parsed.error().message;
    }
  }
}

}  // namespace
}  // namespace latte::messages_test
