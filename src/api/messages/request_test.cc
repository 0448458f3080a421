#include "src/api/messages/request.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/api/common/error.h"
#include "src/api/messages/fields.h"
#include "src/api/request.h"
#include "src/base/json_out.h"
#include "src/checkpoint/model_files.h"
#include "tests/support/tiny_tokenizer.h"

namespace latte::anthropic_request_test {
namespace {

constexpr auto kMessages = ApiEndpoint::kMessages;
const std::string kHi = R"("messages":[{"role":"user","content":"Hi"}])";

const ApiModel& Tiny() {
  static const ApiModel model = ApiModel::Create("tiny", ModelFiles::Load("tiny").value()).value();
  return model;
}

// Shows tools and switches, and knows Kimi's calls.
ApiModel WithTemplate(const std::string& source) {
  JsonOut file = SmallTokenizer();
  AddToken(&file, "<|tool_calls_section_begin|>", {{"special", false}});
  ApiModel model = Tiny();
  model.tokenizer =
      Tokenizer::FromJson(Dump(file), Dump(JsonOut{{"chat_template", source}})).value();
  model.chat = ChatPromptBuilder::Create(model.tokenizer, ModelConfig());
  return model;
}

constexpr auto kTools =
    "{{ tools | tojson if tools else 'none' }}{{ messages[-1].content }}"
    "{# <|tool_calls_section_begin|> #}";
constexpr auto kSwitch =
    "{{ 'on' if thinking else 'off' }}{{ reasoning_effort }}{{ messages[-1].content }}";

Result<ApiRequest> Parse(const std::string& more, const ApiModel& model = Tiny()) {
  return ParseApiBody(kMessages, "{" + kHi + R"(,"max_tokens":9)" + more + "}", model);
}

std::string Prompt(const ApiModel& model, const std::string& more) {
  const auto parsed = Parse(more, model);
  if (!parsed) return parsed.error().message;
  return model.tokenizer.Decode(parsed->requests.front().tokens).value();
}

std::vector<int32_t> Ids(const std::string& text) {
  return Tiny().tokenizer.Encode(text, {.add_bos = true, .parse_special = true}).value();
}

TEST(AnthropicRequest, DefaultsAreTheModels) {
  const ApiRequest parsed = Parse("").value();
  ASSERT_EQ(parsed.requests.size(), 1U);
  const Request& r = parsed.requests.front();
  EXPECT_EQ(r.tokens, Ids("<｜User｜>Hi<｜Assistant｜>"));
  EXPECT_DOUBLE_EQ(r.sampling.temperature, 0.8);  // generation_config.json
  EXPECT_EQ(r.stop.max_tokens, 9);
  EXPECT_FALSE(r.stop.tokens.empty());
  EXPECT_EQ(parsed.reply.endpoint, kMessages);
  EXPECT_EQ(parsed.reply.model, "tiny");
  EXPECT_EQ(parsed.reply.prompts.size(), 1U);
  EXPECT_FALSE(parsed.reply.stream);
}

TEST(AnthropicRequest, EveryFieldArrives) {
  const ApiRequest parsed = Parse(R"(,"model":"m","system":"Be brief.","stream":true,
      "temperature":0.5,"top_p":0.25,"top_k":7,"stop_sequences":["a","b"])")
                                .value();
  const Request& r = parsed.requests.front();
  EXPECT_EQ(r.tokens, Ids("Be brief.<｜User｜>Hi<｜Assistant｜>"));
  EXPECT_EQ(r.sampling.temperature, 0.5);
  EXPECT_EQ(r.sampling.top_p, 0.25);
  EXPECT_EQ(r.sampling.top_k, 7);
  EXPECT_EQ(r.stop.strings, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(parsed.reply.model, "m");
  EXPECT_TRUE(parsed.reply.stream);
  EXPECT_TRUE(parsed.ignored.empty());
}

// What Claude Code sends around the conversation.
TEST(AnthropicRequest, FieldsThatChangeNothingAreIgnored) {
  const ApiRequest parsed = Parse(R"(,"metadata":{"user_id":"u"},"service_tier":"auto",
      "speed":"standard","context_management":{"edits":[{"type":"clear_thinking_20251015"}]},
      "cache_control":{"type":"ephemeral"},"diagnostics":{"previous_message_id":null},
      "inference_geo":"us","user_profile_id":"p","workspace_id":"w","fallbacks":[{"model":"m"}],
      "mcp_servers":[],"container":null,"thread":null,"what_no_one_knows":null)")
                                .value();
  std::vector<std::string> ignored = parsed.ignored;
  std::sort(ignored.begin(), ignored.end());
  EXPECT_EQ(ignored,
            (std::vector<std::string>{"cache_control", "context_management", "diagnostics",
                                      "fallbacks", "inference_geo", "mcp_servers", "metadata",
                                      "service_tier", "speed", "user_profile_id", "workspace_id"}));
  const std::vector<std::string_view> names = AnthropicIgnoredNames();
  for (const std::string& name : ignored)
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
}

TEST(AnthropicRequest, WhatIsWrongIsNamedByItsField) {
  const std::pair<std::string, std::string> table[] = {
      {R"(,"temperature":1.5)", "temperature': expected a number in [0, 1], found 1.5"},
      {R"(,"top_p":2)", "top_p: expected"},
      {R"(,"top_k":-2)", "top_k: expected"},
      {R"(,"max_tokens":2.5)", "max_tokens'"},
      {R"(,"stop_sequences":"a")", "stop_sequences': expected an array"},
      {R"(,"stop_sequences":[""])", "stop_sequences.0': expected a string of 1 to 256 bytes"},
      {R"(,"stop_sequences":["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"])",
       "stop_sequences': expected at most 16 strings, found 17"},
      {R"(,"stream":1)", "stream'"},
      {R"(,"n":2)", "n': /v1/messages has no such field"},
      {R"(,"service_tier":"priority")", "service_tier': this value is not supported"},
      {R"(,"container":{"id":"c"})", "container': this field is not supported"},
      {R"(,"mcp_servers":[{}])", "mcp_servers': this value is not supported"},
      {R"(,"thinking":{"type":"on"})", "thinking': expected type enabled"},
      {R"(,"thinking":{"type":"enabled","budget_tokens":"a"})", "thinking.budget_tokens'"},
      {R"(,"output_config":{"effort":"none"})", "output_config': expected effort low"},
      {R"(,"output_config":{"format":{"type":"json_schema"}})",
       "output_config.format': key 'schema'"},
      {R"(,"output_config":{"format":{"type":"text"}})", "expected type json_schema, found 'text'"},
      {R"(,"tools":[{"type":"web_search_20250305","name":"web_search"}])",
       "tools.0': tools of type 'web_search_20250305' are not supported"},
      {R"(,"tools":[{"name":"f"}])", "'input_schema' is missing"},
      {R"(,"tools":[{"name":"f","input_schema":7}])", "tools.0.input_schema': expected a JSON"},
      {R"(,"tools":[{"name":"f","input_schema":{},"x":1}])", "tools.0.x': unknown field"},
      {R"(,"tool_choice":7)", "tool_choice': expected none, auto"},
      {R"(,"tool_choice":{"type":"each"})", "tool_choice': a choice of type 'each'"},
      {R"(,"tool_choice":"required")", "tool_choice': expected tools to choose from"},
      {R"(,"tool_choice":{"type":"any"})", "tool_choice': expected tools to choose from"},
  };
  for (const auto& [more, words] : table) {
    const auto parsed = Parse(more);
    ASSERT_FALSE(parsed) << more;
    EXPECT_EQ(HttpStatus(parsed.error().code), 400) << more;
    EXPECT_NE(parsed.error().message.find(words), std::string::npos) << parsed.error().message;
  }
  EXPECT_EQ(ParseApiBody(kMessages, "{" + kHi + "}", Tiny()).error().message,
            "max_tokens: this field is missing");
  EXPECT_EQ(ParseApiBody(kMessages, R"({"max_tokens":1})", Tiny()).error().message,
            "messages: this field is missing");
}

// The messages of a chat format's errors are counted otherwise than the client's.
TEST(AnthropicRequest, ErrorsOfTheChatFormatNameTheClientsMessage) {
  const auto parsed = ParseApiBody(kMessages, R"({"max_tokens":9,"system":"s","messages":[
      {"role":"user","content":"a"},{"role":"user","content":"b"},
      {"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r"}]}]})",
                                   Tiny());
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message.find("body: 'messages.2.content': "), 0U)
      << parsed.error().message;
}

TEST(AnthropicRequest, AMessageOfTheAssistantIsNotContinued) {
  const auto parsed = ParseApiBody(kMessages, R"({"max_tokens":9,"messages":[
      {"role":"user","content":"a"},{"role":"assistant","content":"b"}]})",
                                   Tiny());
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, Code::kUnsupported);
  EXPECT_NE(parsed.error().message.find("messages.1.content"), std::string::npos);
}

TEST(AnthropicTools, ThePromptShowsThemAsFunctions) {
  const ApiModel model = WithTemplate(kTools);
  const std::string tools =
      R"(,"tools":[{"name":"f","description":"Does f","strict":true,"type":"custom",
        "cache_control":{"type":"ephemeral"},"input_schema":{"type":"object",
        "properties":{"b":{"type":"string"},"a":{"type":"integer"}}}},
        {"name":"g","input_schema":{}}])";
  EXPECT_EQ(Prompt(model, tools),
            R"([{"type": "function", "function": {"name": "f", "description": "Does f", )"
            R"("parameters": {"type": "object", "properties": {"b": {"type": "string"}, )"
            R"("a": {"type": "integer"}}}}}, )"
            R"({"type": "function", "function": {"name": "g", "parameters": {}}}]Hi)");
  EXPECT_EQ(Prompt(model, R"(,"tools":[])"), "noneHi");
  EXPECT_EQ(Prompt(model, tools + R"(,"tool_choice":{"type":"none"})"), "noneHi");
  const ApiReply reply =
      Parse(tools + R"(,"tool_choice":{"type":"auto","disable_parallel_tool_use":true})", model)
          ->reply;
  EXPECT_EQ(reply.calls, ToolFormat::kKimiK2);
  EXPECT_TRUE(reply.functions->at("f").Of("b").plain_text);
  EXPECT_TRUE(reply.functions->contains("g"));
  EXPECT_FALSE(reply.parallel_calls);
  EXPECT_TRUE(Parse(tools, model)->reply.parallel_calls);
  EXPECT_NE(Prompt(model, tools + R"(,"tool_choice":{"type":"tool","name":"h"})")
                .find("the tools have no function 'h'"),
            std::string::npos);
}

TEST(AnthropicRequest, TakesTheFormsOfOpenAisApi) {
  const std::string tools = R"(,"tools":[{"name":"f","input_schema":{}}],"tool_choice":)";
  const ApiModel model = WithTemplate(kTools);
  for (const char* choice : {R"("auto")", R"({"type":"auto"})"})
    EXPECT_EQ(Parse(tools + choice, model)->reply.calls, ToolFormat::kKimiK2) << choice;
  EXPECT_EQ(Parse(tools + R"("none")", model)->reply.calls, std::nullopt);
  EXPECT_NE(Prompt(model, tools + R"({"type":"function","function":{"name":"h"}})")
                .find("the tools have no function 'h'"),
            std::string::npos);
  const auto most = [](const std::string& number) {
    const std::string body = "{" + kHi + R"(,"max_tokens":)" + number + "}";
    return ParseApiBody(kMessages, body, Tiny())->requests.front().stop.max_tokens;
  };
  EXPECT_EQ(most("4.0"), 4);
  EXPECT_GE(most("-1"), int64_t{1} << 30);
  EXPECT_EQ(Parse(R"(,"top_k":-1)")->requests.front().sampling.top_k, 0);
}

TEST(AnthropicReasoning, SetsTheSwitchOfModelsThatHaveOne) {
  const ApiModel model = WithTemplate(kSwitch);
  EXPECT_EQ(Prompt(model, ""), "offHi");
  EXPECT_EQ(Prompt(model, R"(,"thinking":{"type":"enabled","budget_tokens":1024})"), "onHi");
  EXPECT_EQ(Prompt(model, R"(,"thinking":{"type":"disabled"})"), "offHi");
  EXPECT_EQ(Prompt(model, R"(,"thinking":{"type":"adaptive","display":"omitted"})"), "offHi");
  EXPECT_EQ(Prompt(model, R"(,"thinking":{"type":"auto"})"), "offHi");
  EXPECT_EQ(Prompt(model, R"(,"thinking":{"budget_tokens":1024})"), "onHi");
  EXPECT_EQ(Prompt(model, R"(,"output_config":{"effort":"low"})"), "offlowHi");
  // For other models it is a wish.
  for (const char* more : {R"(,"thinking":{"type":"enabled","budget_tokens":1024})",
                           R"(,"output_config":{"effort":"low"})"}) {
    const auto parsed = Parse(more);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->notes.size(), 1U) << more;
  }
  EXPECT_TRUE(Parse(R"(,"thinking":{"type":"disabled"})")->notes.empty());
}

TEST(AnthropicCount, CountsThePromptOfTheSameConversation) {
  const auto count = [](const std::string& body) {
    const auto counted = CountTokensBody(body, {"tiny", "other"}, Tiny());
    return counted ? *counted : counted.error().message;
  };
  const size_t tokens = Ids("Be brief.<｜User｜>Hi<｜Assistant｜>").size();
  const std::string body = R"("model":"other","system":"Be brief.",)" + kHi;
  EXPECT_EQ(count("{" + body + "}"), fmt::format(R"({{"input_tokens":{}}})", tokens));
  EXPECT_EQ(count("{" + body + R"(,"max_tokens":5,"stream":true})"),
            fmt::format(R"({{"input_tokens":{}}})", tokens));
  // Clients also count conversations that end with an answer.
  EXPECT_NE(count(R"({"messages":[{"role":"assistant","content":"a"}]})").find("input_tokens"),
            std::string::npos);
  EXPECT_EQ(count("{}"), "messages: this field is missing");
  EXPECT_EQ(count(R"({"model":"m",)" + kHi + "}"), "model: expected 'tiny' or 'other', found 'm'");
  EXPECT_EQ(CountTokensBody("{", {"tiny"}, Tiny()).error().code, Code::kInvalidArgument);
  EXPECT_EQ(CountTokensBody(R"({"messages":7})", {"tiny"}, Tiny()).error().code,
            Code::kInvalidArgument);
  EXPECT_EQ(CountTokensBody(R"({"model":7})", {"tiny"}, Tiny()).error().code,
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace latte::anthropic_request_test
