// A client sends an answer with reasoning and calls back, together with the results. The prompt
// then begins with the ids that the model has read and written, so that the prefix cache finds all
// of them, in every format whose template keeps what the model wrote.
#include <gtest/gtest.h>

#include "src/api/common/answer.h"
#include "src/api/completions/completion_body.h"
#include "src/api/request.h"
#include "src/base/json_out.h"
#include "src/checkpoint/model_files.h"
#include "tests/support/chat_data.h"
#include "tests/support/tiny_tokenizer.h"

namespace latte::round_trip_test {
namespace {

using testing_support::ReadChatData;

constexpr const char* kMarks[] = {"<｜begin▁of▁sentence｜>",
                                  "<｜end▁of▁sentence｜>",
                                  "<｜User｜>",
                                  "<｜Assistant｜>",
                                  "<｜tool▁calls▁begin｜>",
                                  "<｜tool▁calls▁end｜>",
                                  "<｜tool▁call▁begin｜>",
                                  "<｜tool▁call▁end｜>",
                                  "<｜tool▁outputs▁begin｜>",
                                  "<｜tool▁outputs▁end｜>",
                                  "<｜tool▁output▁begin｜>",
                                  "<｜tool▁output▁end｜>",
                                  "<｜tool▁sep｜>",
                                  "｜DSML｜",
                                  "<think>",
                                  "</think>",
                                  "<|im_user|>",
                                  "<|im_assistant|>",
                                  "<|im_system|>",
                                  "<|im_middle|>",
                                  "<|im_end|>",
                                  "<|tool_calls_section_begin|>",
                                  "<|tool_calls_section_end|>",
                                  "<|tool_call_begin|>",
                                  "<|tool_call_argument_begin|>",
                                  "<|tool_call_end|>",
                                  "[gMASK]",
                                  "<sop>",
                                  "<|system|>",
                                  "<|user|>",
                                  "<|assistant|>",
                                  "<|observation|>",
                                  "<tool_call>",
                                  "</tool_call>",
                                  "<tool_response>",
                                  "</tool_response>",
                                  "<arg_key>",
                                  "</arg_key>",
                                  "<arg_value>",
                                  "</arg_value>"};

struct Family {
  const char* name;
  const char* model_type;     // of a checkpoint without a template
  const char* chat_template;  // a file of tests/data/chat/templates, or null
  const char* kwargs;         // chat_template_kwargs of the requests
  const char* answer;         // what the model writes after the prompt
  const char* kept;           // the part of it that a format without reasoning shows again, or null
};

// A call without text, text before two calls, and arguments with braces, quotes and line feeds.
const Family kFamilies[] = {
    {"V3", "", "deepseek_v3.jinja", "{}",
     "Wait.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n"
     R"({"b": "}\"\n", "a": [1, {"c": null}]})"
     "\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n"
     "{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     nullptr},
    {"R1", "", "deepseek_v3.jinja", "{}",
     "<think>So.</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n"
     "```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n"
     "```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
    {"V3.1", "deepseek_v3", nullptr, R"({"thinking": false})",
     "Wait.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>"
     R"({"b":"}\"\n","a":[1,{"c":null}]})"
     "<｜tool▁call▁end｜><｜tool▁call▁begin｜>g<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
     "<｜tool▁calls▁end｜>",
     nullptr},
    {"V3.2", "deepseek_v32", nullptr, R"({"thinking": true})",
     "So.\n</think>Wait.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n"
     "<｜DSML｜parameter name=\"b\" string=\"true\">a \"}\"\n</｜DSML｜parameter>\n"
     "<｜DSML｜parameter name=\"a\" string=\"false\">[1, {\"c\": null}]</｜DSML｜parameter>\n"
     "</｜DSML｜invoke>\n<｜DSML｜invoke name=\"g\">\n\n</｜DSML｜invoke>\n"
     "</｜DSML｜function_calls>",
     nullptr},
    {"V3.2 without reasoning", "deepseek_v32", nullptr, R"({"thinking": false})",
     "\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n"
     "<｜DSML｜parameter name=\"b\" string=\"true\">7</｜DSML｜parameter>\n"
     "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
     nullptr},
    {"Kimi-K2", "kimi_k2", nullptr, R"({"thinking": false})",
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
     R"({"b":"}\"\n","a":[1,{"c":null}]})"
     "<|tool_call_end|><|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}"
     "<|tool_call_end|><|tool_calls_section_end|>",
     nullptr},
    {"Kimi-K2-Thinking", "kimi_k2", nullptr, R"({"thinking": true})",
     "<think>So.\n</think>Wait.<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
     R"(<|tool_call_argument_begin|>{"b":1}<|tool_call_end|><|tool_calls_section_end|>)",
     nullptr},
    {"Kimi-K2.5", "", "kimi_k2.5.jinja", "{}",
     " So. </think><|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
     R"(<|tool_call_argument_begin|>{"b":1}<|tool_call_end|><|tool_calls_section_end|>)",
     nullptr},
    {"GLM-4.6", "", "glm.jinja", R"({"version": "4.6"})",
     "\n<think>So.</think>\nWait.\n<tool_call>f\n<arg_key>b</arg_key>\n<arg_value>a "
     "\"}\"</arg_value>\n"
     "<arg_key>a</arg_key>\n<arg_value>[1, {\"c\": null}]</arg_value>\n</tool_call>\n<tool_call>g\n"
     "</tool_call>",
     nullptr},
    {"GLM-4.7", "", "glm.jinja", R"({"version": "4.7"})",
     "So.</think>Wait.<tool_call>f<arg_key>b</arg_key><arg_value>a \"}\"\n</arg_value><arg_key>a"
     "</arg_key><arg_value>[1, {\"c\": null}]</arg_value></tool_call><tool_call>g</tool_call>",
     nullptr},
    {"GLM-4.7 without reasoning", "", "glm.jinja",
     R"({"version": "4.7", "enable_thinking": false})",
     "<tool_call>f<arg_key>b</arg_key><arg_value>01</arg_value></tool_call>", nullptr},
    {"GLM-5", "", "glm.jinja", R"({"version": "5"})",
     "\nSo.\n</think><tool_call>f<arg_key>b</arg_key><arg_value>7</arg_value></tool_call>",
     nullptr},
};

constexpr auto kTools = R"([{"type": "function", "function": {"name": "f", "parameters": {"type":
  "object", "properties": {"b": {"type": "string"}, "a": {"type": "array"}}}}},
  {"type": "function", "function": {"name": "g"}}])";

// `base`: any model; its tokenizer and chat format are replaced.
ApiModel ModelOf(const Family& family, ApiModel base) {
  JsonOut file = SmallTokenizer({"t o", "to o", "\" }", "a r"});
  // <|im_middle|> tells Kimi from the others.
  const bool kimi = std::string_view(family.name).starts_with("Kimi");
  for (const char* mark : kMarks)
    if (kimi || !std::string_view(mark).starts_with("<|im_")) AddToken(&file, mark);
  if (std::string_view(family.name) == "V3.1") AddToken(&file, "<｜search▁begin｜>");
  JsonOut config = {{"bos_token", kMarks[0]}, {"eos_token", kMarks[1]}};
  if (family.chat_template)
    config["chat_template"] = ReadChatData(std::string("templates/") + family.chat_template);
  base.tokenizer = Tokenizer::FromJson(Dump(file), Dump(config)).value();
  ModelConfig of_type;
  of_type.model_type = family.model_type;
  base.chat = ChatPromptBuilder::Create(base.tokenizer, of_type);
  return base;
}

ApiModel Tiny() { return ApiModel::Create("tiny", ModelFiles::Load("tiny").value()).value(); }

Result<ApiRequest> Parse(const ApiModel& model, const Family& family, const JsonOut& messages) {
  const JsonOut body = {{"messages", messages},
                        {"tools", JsonOut::parse(kTools)},
                        {"chat_template_kwargs", JsonOut::parse(family.kwargs)}};
  return ParseApiBody(ApiEndpoint::kChat, Dump(body), model);
}

std::vector<int32_t> Ids(const ApiRequest& request) {
  return {request.requests.front().tokens.begin(), request.requests.front().tokens.end()};
}

// The ids that a model writes: marks are tokens.
std::vector<int32_t> Generated(const ApiModel& model, std::string_view answer) {
  const TextPiece piece{std::string(answer), true};
  return model.tokenizer.EncodePieces({&piece, 1}).value();
}

JsonOut MessageOf(const ApiModel& model, const ApiRequest& request, std::string_view answer) {
  ApiAnswer out(request.reply);
  TokenEvent event;
  event.text = answer;
  out.Add(event);
  TokenEvent end;
  end.finish = FinishReason::kStop;
  out.Add(end);
  return JsonOut::parse(CompletionBody(out, model.tokenizer, "7", 11))["choices"][0]["message"];
}

JsonOut User(std::string_view text) { return {{"role", "user"}, {"content", text}}; }

void AddAnswer(const JsonOut& message, std::string_view result, JsonOut* messages) {
  messages->push_back(message);
  for (const JsonOut& call : message["tool_calls"])
    messages->push_back({{"role", "tool"}, {"tool_call_id", call["id"]}, {"content", result}});
}

std::string TextOf(const ApiModel& model, const std::vector<int32_t>& ids) {
  return model.tokenizer.Decode(ids).value();
}

TEST(ToolsRoundTrip, ThePromptBeginsWithTheIdsOfTheLastOneAndItsAnswer) {
  const ApiModel tiny = Tiny();
  for (const Family& family : kFamilies) {
    SCOPED_TRACE(family.name);
    const ApiModel model = ModelOf(family, tiny);
    JsonOut messages = JsonOut::array({User("Hi")});
    const auto first = Parse(model, family, messages);
    ASSERT_TRUE(first) << first.error().message;
    std::vector<int32_t> known = Ids(*first);
    for (const int32_t id : Generated(model, family.kept ? family.kept : family.answer))
      known.push_back(id);
    const JsonOut message = MessageOf(model, *first, family.answer);
    ASSERT_TRUE(message.contains("tool_calls")) << Dump(message);
    for (const bool silent_as_null : {true, false}) {
      JsonOut sent = message;
      if (sent["content"].is_null() && !silent_as_null) sent["content"] = "";
      messages = JsonOut::array({User("Hi")});
      AddAnswer(sent, "7", &messages);
      const auto second = Parse(model, family, messages);
      ASSERT_TRUE(second) << second.error().message;
      std::vector<int32_t> ids = Ids(*second);
      ASSERT_GT(ids.size(), known.size());
      ids.resize(known.size());
      EXPECT_EQ(TextOf(model, ids), TextOf(model, known));
      EXPECT_EQ(ids, known);
    }
  }
}

// A client that reads and writes arguments may change their white space. Formats that write
// arguments as text show what the client sent; the others write them as the model does.
TEST(ToolsRoundTrip, ArgumentsKeepTheOrderAndTheFormInWhichTheyAreSent) {
  constexpr auto kSent = R"({"b":"first" , "a":[1,2]})";
  const ApiModel tiny = Tiny();
  for (const Family& family : kFamilies) {
    SCOPED_TRACE(family.name);
    const ApiModel model = ModelOf(family, tiny);
    JsonOut message =
        MessageOf(model, Parse(model, family, JsonOut::array({User("Hi")})).value(), family.answer);
    message["tool_calls"].erase(message["tool_calls"].begin() + 1, message["tool_calls"].end());
    message["tool_calls"][0]["function"]["arguments"] = kSent;
    JsonOut messages = JsonOut::array({User("Hi")});
    AddAnswer(message, "7", &messages);
    const auto request = Parse(model, family, messages);
    ASSERT_TRUE(request) << request.error().message;
    const std::string prompt = TextOf(model, Ids(*request));
    const std::string_view name = family.name;
    const bool text = name == "V3.1" || name.starts_with("Kimi");
    EXPECT_NE(prompt.find(text ? kSent : "[1, 2]"), std::string::npos) << prompt;
    EXPECT_LT(prompt.rfind("first"), prompt.rfind("[1,")) << prompt;
  }
}

// The arguments of an answer that was cut.
TEST(ToolsRoundTrip, ArgumentsThatAreNoJsonAreShown) {
  const ApiModel tiny = Tiny();
  for (const Family& family : kFamilies) {
    SCOPED_TRACE(family.name);
    const ApiModel model = ModelOf(family, tiny);
    JsonOut message =
        MessageOf(model, Parse(model, family, JsonOut::array({User("Hi")})).value(), family.answer);
    message["tool_calls"][0]["function"]["arguments"] = R"({"b": "cut)";
    JsonOut messages = JsonOut::array({User("Hi")});
    AddAnswer(message, "7", &messages);
    const auto request = Parse(model, family, messages);
    ASSERT_TRUE(request) << request.error().message;
    const std::string_view name = family.name;
    const bool text = name == "V3.1" || name.starts_with("Kimi");
    const std::string prompt = TextOf(model, Ids(*request));
    EXPECT_NE(prompt.find(text ? R"({"b": "cut)" : "INVALID_JSON"), std::string::npos) << prompt;
  }
}

// Questions, results and arguments may spell any mark.
TEST(ToolsRoundTrip, TextOfAMessageIsNeverAMark) {
  std::string marks;
  for (const char* mark : kMarks) marks += mark;
  const auto special = [](const ApiModel& model, const std::vector<int32_t>& ids) {
    return std::count_if(ids.begin(), ids.end(),
                         [&](int32_t id) { return model.tokenizer.IsSpecial(id); });
  };
  const ApiModel tiny = Tiny();
  for (const Family& family : kFamilies) {
    SCOPED_TRACE(family.name);
    const ApiModel model = ModelOf(family, tiny);
    JsonOut message =
        MessageOf(model, Parse(model, family, JsonOut::array({User("Hi")})).value(), family.answer);
    std::vector<std::vector<int32_t>> prompts;
    for (const std::string& text : {std::string("x"), marks}) {
      message["reasoning_content"] = text;
      message["tool_calls"][0]["function"]["arguments"] =
          Dump(JsonOut{{"b", text}, {"a", JsonOut::array({text})}});
      JsonOut messages = {{{"role", "system"}, {"content", text}}, User(text)};
      AddAnswer(message, text, &messages);
      const auto request = Parse(model, family, messages);
      ASSERT_TRUE(request) << request.error().message;
      prompts.push_back(Ids(*request));
    }
    EXPECT_EQ(special(model, prompts[1]), special(model, prompts[0]));
    EXPECT_NE(TextOf(model, prompts[1]).find(marks), std::string::npos);
  }
}

}  // namespace
}  // namespace latte::round_trip_test
