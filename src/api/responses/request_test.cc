#include "src/api/responses/request.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/api/common/error.h"
#include "src/api/request.h"
#include "src/api/responses/reply.h"
#include "src/api/responses/tools.h"
#include "src/base/json_out.h"
#include "tests/support/tiny_tokenizer.h"

namespace latte::responses_request_test {
namespace {

// Shows everything of a conversation, and knows Kimi's calls.
constexpr auto kTemplate =
    "{{ messages | tojson }}{{ tools | tojson if tools }}{# <|tool_calls_section_begin|> #}";

ApiModel ShowingAll() {
  JsonOut file = SmallTokenizer();
  AddToken(&file, "<|tool_calls_section_begin|>", {{"special", false}});
  ApiModel model = ApiModel::Create("tiny", ModelFiles::Load("tiny").value()).value();
  model.tokenizer =
      Tokenizer::FromJson(Dump(file), Dump(JsonOut{{"chat_template", kTemplate}})).value();
  model.chat = ChatPromptBuilder::Create(model.tokenizer, ModelConfig());
  return model;
}

const ApiModel& Model() {
  static const ApiModel model = ShowingAll();
  return model;
}

Result<ApiRequest> Parse(const std::string& members) {
  return ParseApiBody(ApiEndpoint::kResponses, "{" + members + "}", Model());
}

std::string PromptOf(const Result<ApiRequest>& request) {
  if (!request) return request.error().message;
  return Model().tokenizer.Decode(request->requests.front().tokens).value();
}

std::string Prompt(const std::string& members) { return PromptOf(Parse(members)); }

std::string ChatPrompt(const std::string& members) {
  return PromptOf(ParseApiBody(ApiEndpoint::kChat, "{" + members + "}", Model()));
}

const JsonOut& Settings(const ApiRequest& request) { return request.reply.responses->settings; }

TEST(ResponsesRequest, ATextIsAUsersMessage) {
  EXPECT_EQ(Prompt(R"("input":"Hi")"),
            ChatPrompt(R"("messages":[{"role":"user","content":"Hi"}])"));
  EXPECT_EQ(Prompt(R"("instructions":"Be brief.","input":"Hi")"),
            ChatPrompt(R"("messages":[{"role":"system","content":"Be brief."},)"
                       R"({"role":"user","content":"Hi"}])"));
}

// The items of one answer are one message, as in a chat; so both find the same prefix.
TEST(ResponsesRequest, ItemsMakeTheConversationOfAChat) {
  const std::string items =
      R"("input":[{"role":"developer","content":"D"},
        {"type":"message","role":"user","content":[{"type":"input_text","text":"a"},
          {"type":"input_text","text":"b"}]},
        {"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"so"}]},
        {"type":"message","id":"msg_1","role":"assistant","status":"completed",
          "content":[{"type":"output_text","text":"c","annotations":[],"logprobs":[]}]},
        {"type":"function_call","id":"fc_1","call_id":"k1","name":"f","arguments":"{\"x\": 1}"},
        {"type":"function_call","call_id":"k2","name":"g","arguments":""},
        {"type":"function_call_output","call_id":"k1","output":"one"},
        {"type":"function_call_output","call_id":"k2","output":[{"type":"input_text","text":"two"}]},
        {"type":"message","role":"assistant","content":"d"},
        {"type":"message","role":"assistant","content":"e"}])";
  const std::string messages =
      R"("messages":[{"role":"developer","content":"D"},{"role":"user","content":"a\nb"},
        {"role":"assistant","content":"c","reasoning_content":"so","tool_calls":[
          {"id":"k1","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}},
          {"id":"k2","type":"function","function":{"name":"g","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"k1","content":"one"},
        {"role":"tool","tool_call_id":"k2","content":"two"},
        {"role":"assistant","content":"d"},{"role":"assistant","content":"e"}])";
  EXPECT_EQ(Prompt(items), ChatPrompt(messages));
  EXPECT_NE(Prompt(items).find("\"so\""), std::string::npos) << Prompt(items);
}

TEST(ResponsesRequest, ReasoningComesBackFromAClientThatKeepsWhatWasEncrypted) {
  const auto prompt = [](const std::string& reasoning) {
    return Parse(R"("input":[{"type":"message","role":"user","content":"a"},{"type":"reasoning",)"
                 R"("summary":[],)" +
                 reasoning + R"(},{"type":"message","role":"assistant","content":"c"}])");
  };
  const auto given = prompt(R"("content":[{"type":"reasoning_text","text":"so"}])");
  EXPECT_EQ(PromptOf(prompt(R"("encrypted_content":"latte-plain:so")")), PromptOf(given));
  const auto foreign = prompt(R"("encrypted_content":"gAAAA")");
  EXPECT_EQ(PromptOf(foreign).find("gAAAA"), std::string::npos);
  EXPECT_EQ(foreign->notes.size(), 1U);
}

constexpr std::string_view kTools =
    R"("tools":[{"type":"function","name":"f","description":"F","strict":false,
        "parameters":{"type":"object","properties":{"b":{"type":"string"}}}},
      {"type":"web_search"},{"type":"web_search_preview_2025"},
      {"type":"custom","name":"patch","description":"Edit.",
        "format":{"type":"grammar","syntax":"lark","definition":"start: X"}},
      {"type":"namespace","name":"ns","description":"N","tools":[{"type":"function","name":"f"}]}])";

TEST(ResponsesRequest, TheModelSeesFunctions) {
  const std::string chat =
      R"("messages":[{"role":"user","content":"Hi"}],"tools":[
      {"type":"function","function":{"name":"f","description":"F",
        "parameters":{"type":"object","properties":{"b":{"type":"string"}}}}},
      {"type":"function","function":{"name":"patch",
        "description":"Edit.\n\nThe input must match this lark grammar:\nstart: X",
        "parameters":{"type":"object","properties":{"input":{"type":"string"}},
        "required":["input"]}}},
      {"type":"function","function":{"name":"ns__f"}}])";
  const auto parsed = Parse(R"("input":"Hi",)" + std::string(kTools));
  EXPECT_EQ(PromptOf(parsed), ChatPrompt(chat));
  EXPECT_TRUE(parsed->reply.functions->at("f").Of("b").plain_text);
  EXPECT_TRUE(parsed->reply.functions->at("patch").Of("input").plain_text);
  EXPECT_EQ(parsed->notes.size(), 2U);  // tools that are left out
  const ResponsesTools& tools = parsed->reply.responses->tools;
  EXPECT_TRUE(tools.at("patch").custom);
  EXPECT_EQ(tools.at("ns__f").name_space, "ns");
  EXPECT_EQ(tools.at("ns__f").name, "f");
  EXPECT_EQ(Settings(*parsed)["tools"].size(), 3U);
}

TEST(ResponsesRequest, ToolsMayStandInTheInput) {
  const std::string chat = R"("messages":[{"role":"user","content":"Hi"}],"tools":[
      {"type":"function","function":{"name":"f"}}])";
  EXPECT_EQ(Prompt(R"("input":[{"type":"additional_tools","role":"developer","tools":[
      {"type":"function","name":"f"}]},{"role":"user","content":"Hi"}])"),
            ChatPrompt(chat));
}

TEST(ResponsesRequest, CustomCallsAndNamespacesComeBackAsTheModelWroteThem) {
  EXPECT_EQ(Prompt(R"("input":[{"role":"user","content":"a"},
      {"type":"custom_tool_call","call_id":"k","name":"patch","input":"x\ny"},
      {"type":"custom_tool_call_output","call_id":"k","output":"ok"},
      {"type":"function_call","call_id":"l","namespace":"ns","name":"f","arguments":"{}"},
      {"type":"function_call_output","call_id":"l","output":"ok"}])"),
            ChatPrompt(R"("messages":[{"role":"user","content":"a"},
      {"role":"assistant","tool_calls":[{"id":"k","type":"function",
        "function":{"name":"patch","arguments":"{\"input\":\"x\\ny\"}"}}]},
      {"role":"tool","tool_call_id":"k","content":"ok"},
      {"role":"assistant","tool_calls":[{"id":"l","type":"function",
        "function":{"name":"ns__f","arguments":"{}"}}]},
      {"role":"tool","tool_call_id":"l","content":"ok"}])"));
}

TEST(ResponsesRequest, OutputsBelongToTheCallsWithTheirIds) {
  const auto prompt = [](const std::string& outputs) {
    return Prompt(R"("input":[{"role":"user","content":"a"},
      {"type":"function_call","call_id":"x","name":"f","arguments":"{}"},
      {"type":"function_call","call_id":"y","name":"g","arguments":"{}"},)" +
                  outputs + "]");
  };
  const std::string x = R"({"type":"function_call_output","call_id":"x","output":"RX"})";
  const std::string y = R"({"type":"function_call_output","call_id":"y","output":"RY"})";
  const std::string note = R"({"role":"developer","content":"D"})";
  EXPECT_EQ(prompt(y + "," + x), prompt(x + "," + y));
  EXPECT_EQ(prompt(y + "," + note + "," + x), prompt(x + "," + y + "," + note));
  const std::string gap = prompt(y);
  EXPECT_LT(gap.find("(no result)"), gap.find("RY"));
  const std::string unknown =
      prompt(x + R"(,{"type":"custom_tool_call_output","call_id":"z","output":"RZ"})");
  for (const char* word : {"input.4", "'z'", "without a result: 'y'"})
    EXPECT_NE(unknown.find(word), std::string::npos) << unknown;
  // Without text, and in the form of older clients.
  EXPECT_EQ(prompt(R"({"type":"function_call_output","call_id":"x","output":null},)" + y),
            prompt(R"({"type":"function_call_output","call_id":"x","output":""},)" + y));
  EXPECT_NE(prompt(R"({"type":"function_call_output","call_id":"x","output":{"content":"RX"}})")
                .find("RX"),
            std::string::npos);
}

// Items that a resumed conversation keeps.
TEST(ResponsesRequest, WhatOtherServersDidBecomesAText) {
  const auto prompt = [](const std::string& items) {
    return Prompt(R"("input":[{"role":"user","content":"a"},)" + items +
                  R"(,{"role":"user","content":"b"}])");
  };
  const auto chat = [](const std::string& messages) {
    return ChatPrompt(R"("messages":[{"role":"user","content":"a"},)" + messages +
                      R"(,{"role":"user","content":"b"}])");
  };
  const std::string answer = R"({"type":"message","role":"assistant","content":"c"})";
  EXPECT_EQ(prompt(R"({"type":"web_search_call","id":"ws_1","status":"completed",
                       "action":{"type":"search","query":"rain"}},)" +
                   answer),
            chat(R"j({"role":"assistant","content":"(web_search_call: rain)\nc"})j"));
  EXPECT_EQ(
      prompt(R"({"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"so"}]},
                      {"type":"image_generation_call","id":"ig_1","result":"AAAA"},
                      {"type":"reasoning","summary":[],"encrypted_content":"gAAA"},)" +
             answer),
      chat(
          R"j({"role":"assistant","reasoning_content":"so","content":"(image_generation_call)\nc"})j"));
  EXPECT_EQ(
      prompt(answer + R"(,{"type":"web_search_call","action":{"type":"search","query":"rain"}})"),
      chat(R"j({"role":"assistant","content":"c\n(web_search_call: rain)"})j"));
  EXPECT_EQ(prompt(R"({"type":"mcp_list_tools","server_label":"s","tools":[]},
                      {"type":"mcp_call","name":"f","arguments":"{}","output":"r","server_label":"s"})"),
            chat(R"j({"role":"assistant","content":"(mcp_call: f\ns\n{}\nr)"})j"));
  EXPECT_EQ(prompt(R"({"type":"compaction","encrypted_content":"gAAA"})"),
            chat(R"j({"role":"user","content":
              "(the conversation before was compacted by another server and cannot be read here)"})j"));
  EXPECT_EQ(
      prompt(R"({"type":"local_shell_call","call_id":"k","action":{"type":"exec","command":["ls"]}},
                      {"type":"function_call_output","call_id":"k","output":"files"})"),
      chat(R"j({"role":"assistant","tool_calls":[{"id":"k","function":{"name":"local_shell",
                    "arguments":"{\"type\":\"exec\",\"command\":[\"ls\"]}"}}]},
                    {"role":"tool","tool_call_id":"k","content":"files"})j"));
  EXPECT_EQ(prompt(R"({"type":"tool_search_call","call_id":"k","arguments":"rain"},
                      {"type":"tool_search_output","call_id":"k","tools":[{"type":"function","name":"f"}]})"),
            chat(R"j({"role":"assistant","tool_calls":[{"id":"k","function":{"name":"tool_search",
                    "arguments":"{\"arguments\": \"rain\"}"}}]},
                    {"role":"tool","tool_call_id":"k","content":"f"})j"));
  EXPECT_EQ(prompt(R"({"type":"computer_call","call_id":"k","action":{"type":"screenshot"}},
                      {"type":"computer_call_output","call_id":"k","output":{"type":"computer_screenshot"}})"),
            chat(R"j({"role":"assistant","tool_calls":[{"id":"k","function":{"name":"computer",
                    "arguments":"{\"type\":\"screenshot\"}"}}]},
                    {"role":"tool","tool_call_id":"k","content":"(computer_call_output)"})j"));
}

TEST(ResponsesRequest, ImagesOfThePastBecomeAText) {
  const std::string image = R"({"type":"input_image","image_url":"data:image/png;base64,AA"})";
  const std::string shown = "(image left out: the model reads text)";
  const std::string old = Prompt(R"("input":[{"role":"user","content":[)" + image + R"(]},
      {"role":"assistant","content":[{"type":"output_text","text":"b"},{"type":"output_image"}]},
      {"role":"user","content":"c"}])");
  EXPECT_EQ(old, ChatPrompt(R"("messages":[{"role":"user","content":")" + shown + R"("},
      {"role":"assistant","content":"b\n)" +
                            shown + R"("},{"role":"user","content":"c"}])"));
  const std::string seen = Prompt(R"("input":[{"role":"user","content":"a"},
      {"type":"function_call","call_id":"k","name":"view_image","arguments":"{}"},
      {"type":"function_call_output","call_id":"k","output":[)" +
                                  image + "]}]");
  EXPECT_NE(seen.find(shown), std::string::npos) << seen;
}

TEST(ResponsesRequest, TheAnswerRepeatsTheSettings) {
  const auto parsed = Parse(
      R"("input":"Hi","model":"m","instructions":"Be brief.","max_output_tokens":7,"temperature":0.5,
      "top_p":0.25,"metadata":{"a":"b"},"user":"u","store":true,"reasoning":{"effort":"low",
      "summary":"auto"},"include":["reasoning.encrypted_content"],"parallel_tool_calls":false,
      "truncation":"disabled","text":{"verbosity":"low"},"stream":true,"top_k":3)");
  ASSERT_TRUE(parsed) << parsed.error().message;
  const JsonOut& settings = Settings(*parsed);
  EXPECT_EQ(settings["instructions"], "Be brief.");
  EXPECT_EQ(settings["max_output_tokens"], 7);
  EXPECT_EQ(settings["temperature"], 0.5);
  EXPECT_EQ(settings["top_p"], 0.25);
  EXPECT_EQ(settings["metadata"]["a"], "b");
  EXPECT_EQ(settings["user"], "u");
  EXPECT_FALSE(settings.contains("safety_identifier"));
  EXPECT_EQ(settings["store"], false);
  EXPECT_EQ(settings["reasoning"]["effort"], "low");
  EXPECT_EQ(settings["tool_choice"], "auto");
  EXPECT_EQ(Dump(settings["text"]), R"({"format":{"type":"text"}})");
  EXPECT_TRUE(parsed->reply.stream);
  EXPECT_TRUE(parsed->reply.responses->gives_reasoning_back);
  EXPECT_EQ(parsed->requests.front().stop.max_tokens, 7);
  EXPECT_EQ(parsed->requests.front().sampling.top_k, 3);
}

// The answer repeats a choice in the form of this API, whichever form it came in.
TEST(ResponsesRequest, AChoiceMayHaveTheFormOfAnyApi) {
  const std::string tools = R"("input":"Hi","tools":[{"type":"function","name":"f"},)"
                            R"({"type":"namespace","name":"ns","tools":[{"type":"function",)"
                            R"("name":"g"}]}],"tool_choice":)";
  const std::pair<const char*, const char*> table[] = {
      {R"("any")", R"("required")"},
      {R"({"type":"any"})", R"("required")"},
      {R"({"type":"auto"})", R"("auto")"},
      {R"({"type":"none"})", R"("none")"},
      {R"({"type":"tool","name":"f"})", R"({"type":"function","name":"f"})"},
      {R"({"type":"function","function":{"name":"f"}})", R"({"type":"function","name":"f"})"},
      {R"({"type":"function","name":"g","namespace":"ns"})",
       R"({"type":"function","name":"g","namespace":"ns"})"},
      {R"({"type":"custom","name":"f"})", R"({"type":"custom","name":"f"})"},
  };
  for (const auto& [choice, repeated] : table) {
    ApiTools read;
    JsonOut shown;
    ASSERT_TRUE(ReadResponsesToolChoice(Json::Parse(choice, "c").value(), &read, &shown)) << choice;
    EXPECT_EQ(Dump(shown), repeated) << choice;
  }
  const auto settings = Parse(tools + R"({"type":"none"})");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(Settings(*settings)["tool_choice"], "none");
}

TEST(ResponsesRequest, MinusOneTokenIsNoLimit) {
  const auto parsed = Parse(R"("input":"Hi","max_output_tokens":-1)");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_GE(parsed->requests.front().stop.max_tokens, int64_t{1} << 30);
  EXPECT_EQ(Settings(*parsed)["max_output_tokens"], nullptr);
  EXPECT_EQ(Parse(R"("input":"Hi","max_output_tokens":4.0)")->requests.front().stop.max_tokens, 4);
  EXPECT_FALSE(Parse(R"("input":"Hi","max_output_tokens":-2)"));
}

TEST(ResponsesRequest, RefusalsNameTheField) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("model":"tiny")", "input"},
      {R"("input":[])", "input"},
      {R"("input":7)", "input"},
      {R"("input":"Hi","messages":[])", "messages"},
      {R"("input":"Hi","n":2)", "n"},
      {R"("input":"Hi","max_tokens":2)", "max_tokens"},
      {R"("input":"Hi","max_output_tokens":0)", "max_output_tokens"},
      {R"("input":"Hi","top_p":2)", "top_p"},
      {R"("input":"Hi","previous_response_id":"resp_1")", "previous_response_id"},
      {R"("input":"Hi","conversation":"c")", "conversation"},
      {R"("input":"Hi","background":true)", "background"},
      {R"("input":"Hi","truncation":"auto")", "truncation"},
      {R"("input":"Hi","include":["message.output_text.logprobs"])", "include.0"},
      {R"("input":"Hi","top_logprobs":2)", "top_logprobs"},
      {R"("input":"Hi","metadata":{"a":1})", "metadata.a"},
      {R"("input":"Hi","tools":[{"type":"mcp"}])", "tools.0"},
      {R"("input":"Hi","tools":[{"type":"function","name":7}])", "tools.0.name"},
      {R"("input":"Hi","tools":[{"type":"function","name":"f"},{"type":"function","name":"f"}])",
       "tools.1"},
      {R"("input":"Hi","tool_choice":{"type":"function","name":"g"}, "tools":[{"type":"function",)"
       R"("name":"f"}])",
       "tool_choice"},
      {R"("input":"Hi","tool_choice":{"type":"mcp"})", "tool_choice"},
      {R"("input":"Hi","text":{"format":{"type":"yaml"}})", "text.format"},
      {R"("input":"Hi","text":{"form":1})", "text.form"},
      {R"("input":"Hi","reasoning":{"effort":"huge"})", "reasoning.effort"},
      {R"("input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}])",
       "input.0.content.0"},
      {R"("input":[{"role":"robot","content":"x"}])", "input.0"},
      {R"("input":[{"role":"user","content":"x","extra":1}])", "input.0.extra"},
      {R"("input":[{"role":"user"}])", "input.0"},
      {R"("input":[{"type":"item_reference","id":"x"}])", "input.0"},
      {R"("input":[{"type":"mesage"}])", "input.0"},
      {R"("input":[{"role":"user","content":"a"},{"type":"function_call_output","call_id":"k",)"
       R"("output":"r"}])",
       "input.1"},
      {R"("input":[{"type":"function_call","name":"f","arguments":"{}"}])", "input.0"},
  };
  for (const auto& [members, field] : cases) {
    const auto parsed = Parse(members);
    ASSERT_FALSE(parsed) << members;
    EXPECT_EQ(HttpStatus(parsed.error().code), 400) << members;
    const auto param = DescribeError(parsed.error()).param;
    // A missing key is reported at the object that lacks it, or under its own name.
    EXPECT_TRUE(param && param->starts_with(field)) << members << ": " << parsed.error().message;
  }
}

}  // namespace
}  // namespace latte::responses_request_test
