#include "src/api/common/tools/tools.h"

#include <gtest/gtest.h>

#include "src/api/completions/completion_body.h"
#include "src/api/request.h"
#include "src/api/running.h"
#include "src/base/json_out.h"
#include "src/checkpoint/model_files.h"
#include "tests/support/tiny_tokenizer.h"
#include "tests/support/transcripts.h"

namespace latte::tools_test {
namespace {

using testing_support::Describe;
using testing_support::kToolFormats;
using testing_support::ReadTranscripts;
using testing_support::Transcript;
using testing_support::TranscriptAnswer;

constexpr auto kChat = ApiEndpoint::kChat;
constexpr auto kHi = R"("messages":[{"role":"user","content":"Hi"}])";
// Shows tools, and knows Kimi's calls.
constexpr auto kTemplate =
    "{{ tools | tojson if tools else 'none' }}{{ messages[-1].content }}"
    "{# <|tool_calls_section_begin|> #}";

ApiModel Tiny() { return ApiModel::Create("tiny", ModelFiles::Load("tiny").value()).value(); }

ApiModel WithTemplate(const std::string& source, bool special_marks = false) {
  JsonOut file = SmallTokenizer();
  AddToken(&file, "<|tool_calls_section_begin|>", {{"special", special_marks}});
  ApiModel model = Tiny();
  model.tokenizer =
      Tokenizer::FromJson(Dump(file), Dump(JsonOut{{"chat_template", source}})).value();
  model.chat = ChatPromptBuilder::Create(model.tokenizer, ModelConfig());
  return model;
}

Result<ApiRequest> Parse(const ApiModel& model, const std::string& more) {
  return ParseApiBody(kChat, std::string("{") + kHi + more + "}", model);
}

std::string Prompt(const ApiModel& model, const std::string& more) {
  const auto parsed = Parse(model, more);
  if (!parsed) return parsed.error().message;
  return model.tokenizer.Decode(parsed->requests.front().tokens).value();
}

constexpr std::string_view kTools =
    R"(,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object",)"
    R"("properties":{"b":{"type":"string"},"a":{"type":"integer"}}}}}])";

TEST(ApiTools, ThePromptShowsThemInTheOrderOfTheRequest) {
  const ApiModel model = WithTemplate(kTemplate);
  EXPECT_EQ(Prompt(model, std::string(kTools)),
            R"([{"type": "function", "function": {"name": "f", "parameters": {"type": "object", )"
            R"("properties": {"b": {"type": "string"}, "a": {"type": "integer"}}}}}]Hi)");
  EXPECT_EQ(Prompt(model, R"(,"tools":[])"), "noneHi");
  EXPECT_EQ(Prompt(model, std::string(kTools) + R"(,"tool_choice":"none")"), "noneHi");
}

TEST(ApiTools, TheReplySaysHowCallsAreRead) {
  const ApiModel model = WithTemplate(kTemplate);
  const ApiRequest parsed =
      Parse(model, std::string(kTools) + R"(,"parallel_tool_calls":false)").value();
  EXPECT_EQ(parsed.reply.calls, ToolFormat::kKimiK2);
  const ValueSchema text{.types = kJsonString, .plain_text = true};
  EXPECT_EQ(parsed.reply.functions->at("f").Of("b"), text);
  EXPECT_EQ(parsed.reply.functions->at("f").Of("a"), ValueSchema{.types = kJsonInteger});
  EXPECT_EQ(parsed.requests.front().call_format, "kimi_k2");
  EXPECT_FALSE(parsed.reply.parallel_calls);
  EXPECT_FALSE(parsed.requests.front().keep_special);
  EXPECT_EQ(Parse(model, std::string(kTools) + R"(,"tool_choice":"none")")->reply.calls,
            std::nullopt);
  EXPECT_EQ(Parse(model, "")->reply.calls, std::nullopt);
  const ApiModel special = WithTemplate(kTemplate, true);
  EXPECT_TRUE(Parse(special, std::string(kTools))->requests.front().keep_special);
  EXPECT_FALSE(Parse(special, "")->requests.front().keep_special);
}

// What one API writes for a choice, clients send to the others.
TEST(ApiTools, AChoiceMayHaveTheFormOfAnyApi) {
  const std::pair<std::string, ApiTools::Choice> table[] = {
      {R"("auto")", ApiTools::Choice::kAuto},
      {R"({"type":"auto"})", ApiTools::Choice::kAuto},
      {R"("none")", ApiTools::Choice::kNone},
      {R"({"type":"none"})", ApiTools::Choice::kNone},
      {R"("required")", ApiTools::Choice::kRequired},
      {R"("any")", ApiTools::Choice::kRequired},
      {R"({"type":"any"})", ApiTools::Choice::kRequired},
      {R"({"type":"required"})", ApiTools::Choice::kRequired},
      {R"({"type":"function","function":{"name":"f"}})", ApiTools::Choice::kNamed},
      {R"({"type":"function","name":"f"})", ApiTools::Choice::kNamed},
      {R"({"function":{"name":"f"}})", ApiTools::Choice::kNamed},
      {R"({"type":"tool","name":"f"})", ApiTools::Choice::kNamed},
      {R"({"type":"custom","custom":{"name":"f"}})", ApiTools::Choice::kNamed},
  };
  for (const auto& [text, choice] : table) {
    ApiTools tools;
    const Status read = ReadToolChoice(Json::Parse(text, "tool_choice").value(), &tools);
    ASSERT_TRUE(read) << text << ": " << read.error().message;
    EXPECT_EQ(tools.choice, choice) << text;
    EXPECT_EQ(tools.function, choice == ApiTools::Choice::kNamed ? "f" : "") << text;
  }
  ApiTools one;
  ASSERT_TRUE(ReadToolChoice(
      Json::Parse(R"({"type":"auto","disable_parallel_tool_use":true})", "c").value(), &one));
  EXPECT_FALSE(one.parallel);
}

TEST(ApiTools, WhatTheModelCannotDoIsRefused) {
  const std::string tools(kTools);
  const auto error = [&](const std::string& source, const std::string& more) {
    return Prompt(WithTemplate(source), more);
  };
  EXPECT_NE(error("{{ messages[0].content }}", tools).find("has no calls of functions"),
            std::string::npos);
  EXPECT_NE(error("{{ messages[0].content }}{# <|tool_calls_section_begin|> #}", tools)
                .find("does not show tools"),
            std::string::npos);
  EXPECT_NE(
      error(kTemplate, tools + R"(,"tool_choice":{"type":"function","function":{"name":"g"}})")
          .find("no function 'g'"),
      std::string::npos);
}

// Pieces of whole characters, as the events of the engine have them.
std::vector<std::string> Pieces(const std::string& text, size_t step) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(at + step, text.size());
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    out.push_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

TokenEvent Event(std::string text) {
  TokenEvent event;
  event.text = std::move(text);
  event.generated_tokens = 1;
  return event;
}

ApiRunning Running(const Transcript& one, bool stream) {
  static const ApiModel model = Tiny();
  ApiRequest request;
  request.requests.resize(1);
  request.reply = {.endpoint = kChat, .stream = stream, .in_thought = one.in_thought};
  request.reply.calls = one.format;
  request.reply.functions = one.functions;
  return {std::move(request), &model, "7", 11};
}

TokenEvent End(const Transcript& one) {
  TokenEvent event = Event("");
  event.finish = one.cut ? FinishReason::kLength : FinishReason::kStop;
  return event;
}

std::string TextOf(const JsonOut& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? "" : found->get<std::string>();
}

// `done` is not written in answers.
std::string Expected(const Transcript& one) {
  TranscriptAnswer answer = one.answer;
  for (size_t i = 0; i < answer.calls.size(); ++i) {
    answer.calls[i].done = true;
    if (answer.calls[i].id.empty()) answer.calls[i].id = "call_7_0_" + std::to_string(i);
  }
  return Describe(answer);
}

std::string FinishOf(const Transcript& one) {
  const bool called = !one.answer.calls.empty() && one.answer.calls.back().done;
  return one.cut ? "length" : called ? "tool_calls" : "stop";
}

TEST(ApiTools, WholeAnswersHaveReasoningContentAndCalls) {
  for (const ToolFormat format : kToolFormats)
    for (const Transcript& one : ReadTranscripts(format)) {
      ApiRunning running = Running(one, false);
      std::string sse;
      for (const std::string& piece : Pieces(one.text, 1)) running.Add(0, Event(piece), &sse);
      running.Add(0, End(one), &sse);
      const JsonOut choice = JsonOut::parse(running.Body())["choices"][0];
      const JsonOut& message = choice["message"];
      TranscriptAnswer answer{TextOf(message, "reasoning_content"), TextOf(message, "content"), {}};
      if (message.contains("tool_calls"))
        for (const JsonOut& call : message["tool_calls"]) {
          EXPECT_EQ(call["type"], "function");
          answer.calls.push_back(
              {call["id"], call["function"]["name"], call["function"]["arguments"], true});
        }
      EXPECT_EQ(Describe(answer), Expected(one)) << Name(format) << ": " << one.name;
      EXPECT_EQ(choice["finish_reason"], FinishOf(one)) << one.name;
      EXPECT_EQ(message["content"].is_null(),
                one.answer.content.empty() && !one.answer.calls.empty());
    }
}

// Joins the chunks as clients do: by the index of a call, with its id and name once.
TranscriptAnswer JoinChunks(std::string_view sse, std::string* finish) {
  TranscriptAnswer out;
  while (sse.starts_with("data: {")) {
    const size_t end = sse.find("\n\n");
    const JsonOut choice = JsonOut::parse(sse.substr(6, end - 6))["choices"][0];
    sse.remove_prefix(end + 2);
    const JsonOut& delta = choice["delta"];
    out.reasoning += TextOf(delta, "reasoning_content");
    out.content += TextOf(delta, "content");
    if (!choice["finish_reason"].is_null()) *finish = choice["finish_reason"];
    if (!delta.contains("tool_calls")) continue;
    std::set<size_t> seen;
    for (const JsonOut& call : delta["tool_calls"]) {
      const size_t index = call["index"];
      EXPECT_TRUE(seen.insert(index).second) << "two entries of a call in a chunk";
      if (index == out.calls.size()) {
        EXPECT_EQ(call["type"], "function");
        out.calls.push_back({call["id"], call["function"]["name"], "", true});
      } else {
        EXPECT_FALSE(call.contains("id") || call["function"].contains("name"));
      }
      out.calls.at(index).arguments += call["function"]["arguments"];
    }
  }
  EXPECT_EQ(sse, "data: [DONE]\n\n");
  return out;
}

TEST(ApiTools, StreamsSayWhatWholeAnswersSay) {
  for (const ToolFormat format : kToolFormats)
    for (const Transcript& one : ReadTranscripts(format))
      for (const size_t step : {size_t{1}, size_t{5}, size_t{64}, one.text.size() + 1}) {
        ApiRunning running = Running(one, true);
        std::string sse;
        for (const std::string& piece : Pieces(one.text, step)) running.Add(0, Event(piece), &sse);
        running.Add(0, End(one), &sse);
        std::string finish;
        EXPECT_EQ(Describe(JoinChunks(sse, &finish)), Expected(one))
            << Name(format) << ": " << one.name;
        EXPECT_EQ(finish, FinishOf(one)) << one.name;
      }
}

TEST(ApiTools, WithoutParallelCallsTheFirstCounts) {
  const Transcript one = ReadTranscripts(ToolFormat::kKimiK2).front();
  ApiReply reply{.endpoint = kChat};
  reply.calls = one.format;
  reply.parallel_calls = false;
  ApiAnswer answer(reply);
  answer.Add(Event(one.text));
  answer.Add(End(one));
  const JsonOut choice =
      JsonOut::parse(CompletionBody(answer, Tiny().tokenizer, "7", 11))["choices"][0];
  EXPECT_EQ(choice["message"]["tool_calls"].size(), 1U);
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
}

TEST(ApiTools, EveryCallHasAnIdOfItsOwn) {
  const std::string call =
      "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>";
  ApiReply reply{.endpoint = kChat};
  reply.calls = ToolFormat::kKimiK2;
  ApiAnswer answer(reply);
  answer.Add(Event("<|tool_calls_section_begin|>" + call + call + "<|tool_calls_section_end|>"));
  TokenEvent end;
  end.finish = FinishReason::kStop;
  answer.Add(end);
  const JsonOut calls = JsonOut::parse(
      CompletionBody(answer, Tiny().tokenizer, "7", 11))["choices"][0]["message"]["tool_calls"];
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0]["id"], "functions.f:0");
  EXPECT_EQ(calls[1]["id"], "call_7_0_1");
}

// Without tools, marks are text like any other.
TEST(ApiTools, AnAnswerWithoutToolsHasNoCalls) {
  const Transcript one = ReadTranscripts(ToolFormat::kKimiK2).front();
  ApiAnswer answer(ApiReply{.endpoint = kChat});
  answer.Add(Event(one.text));
  answer.Add(End(one));
  const JsonOut choice =
      JsonOut::parse(CompletionBody(answer, Tiny().tokenizer, "7", 11))["choices"][0];
  EXPECT_EQ(choice["message"]["content"], one.text);
  EXPECT_EQ(choice["finish_reason"], "stop");
}

}  // namespace
}  // namespace latte::tools_test
