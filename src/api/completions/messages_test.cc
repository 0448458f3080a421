#include "src/api/completions/messages.h"

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
      {R"([{"role":"user","content":[{"type":"refusal","refusal":"no"}]}])", {"'refusal'"}},
      {R"([{"role":"system","content":[{"type":"image_url"}]}])", {"0.content.0", "'image_url'"}},
      {R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"},
          {"role":"user","content":[{"type":"image_url"}]},{"role":"system","content":"c"}])",
       {"2.content.0", "'image_url'"}},
      {R"([{"role":"user","content":"a","refusal":"no"}])", {"0.refusal"}},
      {R"([{"role":"assistant","content":"a","function_call":{"name":"f","arguments":"{}"}}])",
       {"'function_call'"}},
      {R"([{"role":"assistant","content":"a","prefix":true}])", {"'prefix'"}},
      {R"([{"role":"assistant","tool_calls":[{"type":"mcp"}]}])", {"tool_calls.0", "'mcp'"}},
      {R"([{"role":"function","name":"f","content":"a"}])", {"'function'", "'tool'"}},
  };
  for (const auto& [messages, words] : table) {
    const auto parsed = Messages(messages);
    ASSERT_FALSE(parsed) << messages;
    EXPECT_EQ(HttpStatus(parsed.error().code), 400) << parsed.error().message;
    for (const std::string& word : words)
      EXPECT_NE(parsed.error().message.find(word), std::string::npos) << parsed.error().message;
  }
}

// Every later request repeats them: a refusal would end the conversation.
TEST(OpenAiMessages, WhatTheModelCannotReadBecomesATextInHistories) {
  const std::string image =
      R"({"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}})";
  const std::string shown = "(image left out: the model reads text)";
  const std::string yes = R"({"role":"assistant","content":"yes"})";
  const std::string more = R"({"role":"user","content":"more"})";
  const std::string call =
      R"({"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f"}}]})";
  const std::pair<std::string, std::string> table[] = {
      {R"([{"role":"user","content":[{"type":"text","text":"a"},)" + image + "]}," + yes + "," +
           more + "]",
       "a\n" + shown},
      // It was refused, and the user asks again.
      {R"([{"role":"user","content":[)" + image + "]}," + more + "]", shown},
      // It has been answered with a call.
      {R"([{"role":"user","content":[)" + image + "]}," + call +
           R"(,{"role":"tool","tool_call_id":"1","content":"r"}])",
       shown},
      {R"([{"role":"user","content":[{"type":"input_audio","input_audio":{}}]},)" + yes + "," +
           more + "]",
       "(audio left out: the model reads text)"},
      {R"([{"role":"user","content":[{"type":"file","file":{"filename":"x"}}]},)" + more + "]",
       "(file left out: the model reads text)"},
      {R"([{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]},)" + more + "]",
       "no"},
      {R"([{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},
          {"type":"text","text":"so"}]},)" +
           more + "]",
       "so"},
      {R"([{"role":"assistant","content":[{"type":"web_search_call","query":"rain"}]},)" + more +
           "]",
       "(web_search_call: rain)"},
      {R"([{"role":"assistant","content":null,"refusal":"no"},)" + more + "]", "no"},
      {R"([{"role":"assistant","content":null,"audio":{"id":"1"}},)" + more + "]",
       "(audio left out: the model reads text)"},
      {R"([{"role":"assistant","content":"a","images":[{"type":"image_url"}]},)" + more + "]",
       "a\n" + shown},
  };
  for (const auto& [messages, content] : table) {
    const auto parsed = Messages(messages);
    ASSERT_TRUE(parsed) << messages << parsed.error().message;
    EXPECT_EQ(parsed->front().content, content) << messages;
  }
  const auto result = Messages("[" + call + R"(,{"role":"tool","tool_call_id":"1","content":[)" +
                               image + R"(,{"type":"text","text":"a"}]}])");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->back().content, shown + "\na");
}

TEST(OpenAiMessages, AnswersAndResultsMayBeWithoutText) {
  for (const char* content :
       {R"("content":null)", R"("content":"")", R"("content":[])", R"("name":null)"}) {
    for (const char* role : {R"("role":"assistant",)", R"("role":"tool","tool_call_id":"1",)"}) {
      const auto parsed = Messages(fmt::format("[{{{}{}}}]", role, content));
      ASSERT_TRUE(parsed) << role << content << parsed.error().message;
      EXPECT_EQ(parsed->front().content, "") << role << content;
    }
    EXPECT_EQ(Messages(fmt::format(R"([{{"role":"user",{}}}])", content)).has_value(),
              std::string(content).find("null") == std::string::npos)
        << content;
  }
}

TEST(OpenAiMessages, CallsOfCustomToolsAreCallsOfFunctionsWithOneParameter) {
  const auto parsed = Messages(R"([{"role":"assistant","tool_calls":[
      {"id":"1","type":"custom","custom":{"name":"patch","input":"x\ny"}}]}])");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->front().tool_calls[0].name, "patch");
  EXPECT_EQ(parsed->front().tool_calls[0].arguments, R"({"input":"x\ny"})");
}

TEST(OpenAiMessages, ReasoningComesBackInTheWordsOfOtherServers) {
  const std::pair<std::string, std::optional<std::string>> table[] = {
      {R"("thinking_blocks":[{"type":"thinking","thinking":"so","signature":"x"}])", "so"},
      {R"("reasoning_details":[{"type":"reasoning.text","text":"a"},{"type":"reasoning.summary","summary":"b"}])",
       "ab"},
      {R"("reasoning_content":"own","thinking_blocks":[{"thinking":"so"}])", "own"},
      {R"("reasoning_details":[{"type":"reasoning.encrypted","data":"x"}])", std::nullopt},
      {R"("thinking_blocks":[7],"reasoning_details":{})", std::nullopt},
  };
  for (const auto& [members, reasoning] : table) {
    const auto parsed = Messages(R"([{"role":"assistant","content":"a",)" + members + "}]");
    ASSERT_TRUE(parsed) << members << parsed.error().message;
    EXPECT_EQ(parsed->front().reasoning, reasoning) << members;
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
