#include "src/api/messages/messages.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace latte::anthropic_messages_test {
namespace {

Result<AnthropicConversation> Parse(const std::string& messages, const std::string& system = "") {
  std::optional<Json> text;
  if (!system.empty())
    text = Json::Parse(fmt::format(R"({{"system":{}}})", system), "body")->Get("system").value();
  const Json body = Json::Parse(fmt::format(R"({{"messages":{}}})", messages), "body").value();
  return ParseAnthropicMessages(text, body.Get("messages").value());
}

// "role: content" of every message; calls and reasoning in brackets.
std::string Shown(const Result<AnthropicConversation>& parsed) {
  if (!parsed) return parsed.error().message;
  std::string out;
  for (const ChatMessage& m : parsed->messages) {
    out += out.empty() ? "" : "|";
    out += m.role + ": " + m.content.value_or("null");
    if (m.reasoning) out += " (" + *m.reasoning + ")";
    for (const ToolCall& call : m.tool_calls)
      out += fmt::format(" [{} {} {}]", call.id, call.name, call.arguments);
    if (m.tool_call_id) out += " #" + *m.tool_call_id;
  }
  return out;
}

constexpr auto kHi = R"([{"role":"user","content":"Hi"}])";
// An assistant's message with the calls 1 and 2.
constexpr auto kCalls =
    R"({"role":"user","content":"Hi"},{"role":"assistant","content":[
       {"type":"text","text":"Wait."},
       {"type":"tool_use","id":"1","name":"f","input":{"b":1,"a":["x",{}]},
        "cache_control":{"type":"ephemeral"}},
       {"type":"tool_use","id":"2","name":"g","input":{}}]})";

TEST(AnthropicMessages, TextIsAStringOrBlocks) {
  EXPECT_EQ(Shown(Parse(kHi)), "user: Hi");
  EXPECT_EQ(Shown(Parse(R"([{"role":"user","content":[
      {"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"5m"}},
      {"type":"text","text":"b","citations":null}]}])")),
            "user: a\nb");
  EXPECT_EQ(Shown(Parse(R"([{"role":"user","content":"Hi"},
      {"role":"assistant","content":"yes"},{"role":"user","content":"no"}])")),
            "user: Hi|assistant: yes|user: no");
}

TEST(AnthropicMessages, SystemComesFirst) {
  EXPECT_EQ(Shown(Parse(kHi, R"("Be brief.")")), "system: Be brief.|user: Hi");
  EXPECT_EQ(Shown(Parse(kHi, R"([{"type":"text","text":"a"},{"type":"text","text":"b"}])")),
            "system: a\nb|user: Hi");
  EXPECT_EQ(Shown(Parse(kHi, R"("")")), "user: Hi");
  EXPECT_EQ(Shown(Parse(kHi, "[]")), "user: Hi");
  EXPECT_EQ(Parse(kHi, R"("Be brief.")")->places,
            (std::vector<std::string>{"body: 'system'", "body: 'messages.0.content'"}));
}

// Claude Code puts a line with a new value before every system text.
TEST(AnthropicMessages, TheLineOfAccountingIsNoPartOfTheSystemText) {
  const std::string line = "x-anthropic-billing-header: cc_version=2.1.177; cch=36ee5;";
  EXPECT_EQ(Shown(Parse(kHi, fmt::format(R"([{{"type":"text","text":"{}"}},
                                             {{"type":"text","text":"b"}}])",
                                         line))),
            "system: b|user: Hi");
  EXPECT_EQ(Shown(Parse(kHi, fmt::format(R"([{{"type":"text","text":"{}\nb"}}])", line))),
            "system: b|user: Hi");
  EXPECT_EQ(Shown(Parse(kHi, fmt::format(R"("{}\nb\nc")", line))), "system: b\nc|user: Hi");
  EXPECT_EQ(Shown(Parse(kHi, fmt::format(R"("{}")", line))), "user: Hi");
  EXPECT_EQ(Shown(Parse(kHi, fmt::format(R"("b {}")", line))), "system: b " + line + "|user: Hi");
}

TEST(AnthropicMessages, ReasoningTextAndCallsAreOneMessage) {
  EXPECT_EQ(Shown(Parse(R"([{"role":"user","content":"Hi"},{"role":"assistant","content":[
      {"type":"thinking","thinking":"so","signature":"latte"},
      {"type":"redacted_thinking","data":"xyz"},
      {"type":"text","text":"a"},{"type":"text","text":"b"},
      {"type":"tool_use","id":"1","name":"f","input":{"b":1,"a":["é",true]}}]}])")),
            R"(user: Hi|assistant: ab (so) [1 f {"b": 1, "a": ["é", true]}])");
  EXPECT_EQ(Parse(R"([{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"}]}])")
                ->notes.size(),
            1U);
}

TEST(AnthropicMessages, ResultsComeBeforeTheTextOfTheirMessage) {
  EXPECT_EQ(Shown(Parse(fmt::format(R"([{},{{"role":"user","content":[
      {{"type":"text","text":"Go on."}},
      {{"type":"tool_result","tool_use_id":"1","content":[{{"type":"text","text":"o"}},
        {{"type":"text","text":"ne"}}],"cache_control":{{}}}},
      {{"type":"tool_result","tool_use_id":"2","content":"two"}}]}}])",
                                    kCalls))),
            "user: Hi|assistant: Wait. [1 f {\"b\": 1, \"a\": [\"x\", {}]}] [2 g {}]|"
            "tool: o\nne #1|tool: two #2|user: Go on.");
  const std::string shown = Shown(Parse(fmt::format(R"([{},{{"role":"user","content":[
      {{"type":"tool_result","tool_use_id":"1","is_error":true,"content":"no file"}},
      {{"type":"tool_result","tool_use_id":"2"}}]}}])",
                                                    kCalls)));
  EXPECT_TRUE(shown.ends_with("|tool: Error: no file #1|tool:  #2")) << shown;
}

// Ids as an answer has them become the model's own again.
TEST(AnthropicMessages, ModelsSeeTheirIds) {
  EXPECT_EQ(Shown(Parse(R"([{"role":"assistant","content":[
      {"type":"tool_use","id":"functions-2Ef-3A0","name":"f","input":{}}]},{"role":"user","content":[
      {"type":"tool_result","tool_use_id":"functions-2Ef-3A0","content":"r"}]}])")),
            "assistant:  [functions.f:0 f {}]|tool: r #functions.f:0");
}

TEST(AnthropicMessages, NeighboursOfOneRoleAreOneMessage) {
  EXPECT_EQ(Shown(Parse(R"([{"role":"user","content":"a"},{"role":"user","content":"b"},
      {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":""}]},
      {"role":"assistant","content":[{"type":"text","text":"c"},
        {"type":"tool_use","id":"1","name":"f","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r"}]},
      {"role":"user","content":"d"}])")),
            "user: a\nb|assistant: c (t) [1 f {}]|tool: r #1|user: d");
}

TEST(AnthropicMessages, SystemMessagesKeepTheirPlace) {
  const std::string begin = R"([{"role":"user","content":"a"},{"role":"system","content":"s")";
  EXPECT_EQ(Shown(Parse(begin + "}]")), "user: a|system: s");
  const std::string passing = begin + R"(,"clear_at":"next_user_message"})";
  EXPECT_EQ(Shown(Parse(passing + "]")), "user: a|system: s");
  EXPECT_EQ(Shown(Parse(passing + R"(,{"role":"assistant","content":"b"}])")),
            "user: a|system: s|assistant: b");
  EXPECT_EQ(Shown(Parse(passing + R"(,{"role":"user","content":"b"}])")), "user: a\nb");
}

// Clients keep such blocks for ever, and join a message that was refused to the next one.
TEST(AnthropicMessages, WhatTheModelCannotReadBecomesAText) {
  const std::string shown = "(image left out: the model reads text)";
  const std::string image = R"({"type":"image","source":{"type":"base64","data":"AAAA"}})";
  const std::pair<std::string, std::string> table[] = {
      {R"({"role":"user","content":[)" + image + R"(,{"type":"text","text":"What?"}]})",
       "user: " + shown + "\nWhat?"},
      {R"({"role":"user","content":[{"type":"document","title":"T","source":{"type":"base64","data":"AA"}}]})",
       "user: (document left out: the model reads text)"},
      {R"({"role":"user","content":[{"type":"document","title":"T",
          "source":{"type":"text","media_type":"text/plain","data":"words"}}]})",
       "user: T\nwords"},
      {R"({"role":"user","content":[{"type":"document",
          "source":{"type":"content","content":[{"type":"text","text":"words"}]}}]})",
       "user: words"},
      {R"({"role":"user","content":[{"type":"search_result","source":"http://s","title":"T",
          "content":[{"type":"text","text":"found"}]}]})",
       "user: T\nhttp://s\nfound"},
      {R"({"role":"assistant","content":[{"type":"text","text":"I look."},
          {"type":"server_tool_use","id":"srv1","name":"web_search","input":{"query":"rain"}},
          {"type":"web_search_tool_result","tool_use_id":"srv1","content":[{"type":"web_search_result",
            "title":"Rain","url":"http://r","encrypted_content":"xyz"}]},
          {"type":"text","text":"It rains."}]})",
       "assistant: I look.\n(server_tool_use: web_search\n{\"query\":\"rain\"})\n"
       "(web_search_tool_result: Rain\nhttp://r)\nIt rains."},
      {R"({"role":"assistant","content":[{"type":"compaction","content":"So far."}]})",
       "assistant: (compaction: So far.)"},
      {R"({"role":"assistant","content":[{"type":"mcp_tool_use","name":"f","input":{},"server_name":"s"},
          {"type":"mcp_tool_result","content":[{"type":"text","text":"r"}]}]})",
       "assistant: (mcp_tool_use: f\n{})\n(mcp_tool_result: r)"},
      {R"({"role":"assistant","content":null})", "assistant: "},
      {R"({"role":"user","content":[{"type":"no_one_knows"}]},{"role":"user","content":"a"})",
       "user: (no_one_knows)\na"},
      {std::string(kCalls) + R"(,{"role":"user","content":[{"type":"tool_result","tool_use_id":"1",
          "content":[)" +
           image + R"(,{"type":"tool_reference","tool_name":"mcp__docs__search"}]}]})",
       "user: Hi|assistant: Wait. [1 f {\"b\": 1, \"a\": [\"x\", {}]}] [2 g {}]|tool: " + shown +
           "\n(tool_reference: mcp__docs__search) #1"},
  };
  for (const auto& [messages, expected] : table)
    EXPECT_EQ(Shown(Parse("[" + messages + "]")), expected);
}

TEST(AnthropicMessages, WhatTheModelCannotReadIsNamedByTypeAndPlace) {
  const std::pair<std::string, std::vector<std::string>> table[] = {
      {R"([{"role":"user","content":[{"type":"thinking","thinking":""}]}])",
       {"messages.0.content.0", "'thinking'", "role user"}},
      {R"([{"role":"user","content":[{"type":"no_one_knows"}]}])", {"'no_one_knows'"}},
      {R"([{"role":"user","content":"a"},{"role":"system","content":[{"type":"image"}]}])",
       {"messages.1.content.0", "'image'", "the model reads text"}},
  };
  for (const auto& [messages, words] : table) {
    const auto parsed = Parse(messages);
    ASSERT_FALSE(parsed) << messages;
    EXPECT_EQ(parsed.error().code, Code::kUnsupported) << parsed.error().message;
    for (const std::string& word : words)
      EXPECT_NE(parsed.error().message.find(word), std::string::npos) << parsed.error().message;
  }
}

TEST(AnthropicMessages, WhatIsWrongIsNamedByItsPlace) {
  const std::pair<std::string, std::string> table[] = {
      {"[]", "messages': expected an array of at least one message"},
      {R"({"role":"user"})", "messages': expected an array"},
      {R"([{"role":"user"}])", "'content' is missing"},
      {R"([{"content":"a"}])", "'role' is missing"},
      {R"([{"role":"tool","content":"a"}])",
       "expected role user, assistant or system, found 'tool'"},
      {R"([{"role":"user","content":"a","name":"b"}])", "messages.0.name': unknown field"},
      {R"([{"role":"user","content":[]}])", "messages.0.content': expected a string or an array"},
      {R"([{"role":"user","content":7}])", "messages.0.content': expected a string or an array"},
      {R"([{"role":"user","content":["a"]}])", "messages.0.content.0': expected an object"},
      {R"([{"role":"user","content":[{"type":"text","text":7}]}])", "messages.0.content.0.text'"},
      {R"([{"role":"user","content":[{"type":"text","text":"a","x":1}]}])", ".0.x': unknown field"},
      {R"([{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f"}]}])",
       "'input' is missing"},
      {R"([{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":[]}]}])",
       "messages.0.content.0.input': expected an object"},
  };
  for (const auto& [messages, words] : table)
    EXPECT_NE(Shown(Parse(messages)).find(words), std::string::npos)
        << messages << ": " << Shown(Parse(messages));
  EXPECT_NE(Shown(Parse(kHi, "7")).find("'system'"), std::string::npos);
}

}  // namespace
}  // namespace latte::anthropic_messages_test
