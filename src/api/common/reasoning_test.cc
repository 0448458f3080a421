#include "src/api/common/reasoning.h"

#include <gtest/gtest.h>

#include "src/api/request.h"
#include "src/base/json_out.h"
#include "src/checkpoint/model_files.h"
#include "tests/support/tiny_tokenizer.h"

namespace latte::reasoning_test {
namespace {

constexpr auto kChat = ApiEndpoint::kChat;
const std::string kHi = R"("messages":[{"role":"user","content":"Hi"}])";

ApiModel Tiny() { return ApiModel::Create("tiny", ModelFiles::Load("tiny").value()).value(); }

// The model "tiny" with another chat template.
ApiModel WithTemplate(const std::string& source) {
  JsonOut file = SmallTokenizer();
  AddToken(&file, "<think>", {{"special", false}});
  const JsonOut config = {{"chat_template", source}};
  ApiModel model = Tiny();
  model.tokenizer = Tokenizer::FromJson(Dump(file), Dump(config)).value();
  model.chat = ChatPromptBuilder::Create(model.tokenizer, ModelConfig());
  return model;
}

struct Rendered {
  std::string prompt;  // or the message of the error
  std::vector<std::string> notes;
};

Rendered Render(const ApiModel& model, const std::string& more) {
  const auto parsed =
      ParseApiRequest(kChat, Json::Parse("{" + kHi + more + "}", "body").value(), model);
  if (!parsed) return {parsed.error().message, {}};
  return {model.tokenizer.Decode(parsed->requests.front().tokens).value(), parsed->notes};
}

TEST(ApiReasoning, EveryNameOfTheSwitchWorks) {
  const ApiModel model = WithTemplate(
      "{{ messages[0].content }}{% if thinking is defined and thinking %}+"
      "{% elif enable_thinking is defined %}-{% endif %}{{ reasoning_effort }}");
  const std::pair<const char*, const char*> table[] = {
      {"", "Hi"},
      {R"(,"chat_template_kwargs":{"thinking":true})", "Hi+"},
      {R"(,"chat_template_kwargs":{"enable_thinking":true})", "Hi+"},
      {R"(,"chat_template_kwargs":{"thinking":false})", "Hi-"},
      {R"(,"enable_thinking":false)", "Hi-"},
      {R"(,"thinking":{"type":"enabled"})", "Hi+"},
      {R"(,"thinking":{"type":"disabled"})", "Hi-"},
      {R"(,"thinking":{"type":"auto"})", "Hi"},
      {R"(,"reasoning_effort":"none")", "Hi-none"},
      {R"(,"reasoning_effort":"minimal")", "Hi+minimal"},
      {R"(,"reasoning_effort":"high")", "Hi+high"},
      // the switch takes precedence
      {R"(,"reasoning_effort":"high","enable_thinking":false)", "Hi-high"},
      {R"(,"reasoning_effort":"low","chat_template_kwargs":{"reasoning_effort":7})", "Hi+7"},
      {R"(,"enable_thinking":true,"thinking":{"type":"enabled"})", "Hi+"},
  };
  for (const auto& [more, prompt] : table) {
    EXPECT_EQ(Render(model, more).prompt, prompt) << more;
    EXPECT_TRUE(Render(model, more).notes.empty()) << more;
  }
}

TEST(ApiReasoning, TakesTheFormsOfAnthropicsApi) {
  const ApiModel model = WithTemplate(
      "{{ messages[0].content }}{{ '+' if thinking else '-' if thinking is defined }}");
  const std::pair<const char*, const char*> table[] = {
      {R"(,"thinking":{"type":"enabled","budget_tokens":2048})", "Hi+"},
      {R"(,"thinking":{"type":"disabled","budget_tokens":0})", "Hi-"},
      {R"(,"thinking":{"type":"adaptive"})", "Hi"},
      {R"(,"thinking":{"type":"between_tools","display":"summarized"})", "Hi"},
      // Without a type, the budget says it.
      {R"(,"thinking":{"budget_tokens":1024.0})", "Hi+"},
      {R"(,"thinking":{"budget_tokens":0})", "Hi-"},
      {R"(,"thinking":{"budget_tokens":-1})", "Hi"},
  };
  for (const auto& [more, prompt] : table) EXPECT_EQ(Render(model, more).prompt, prompt) << more;
  const Rendered noted = Render(model, R"(,"thinking":{"type":"enabled","budget_tokens":2048})");
  ASSERT_EQ(noted.notes.size(), 1U);
  EXPECT_NE(noted.notes[0].find("thinking.budget_tokens"), std::string::npos) << noted.notes[0];
}

TEST(ApiReasoning, OtherVariablesReachTheTemplate) {
  const ApiModel model =
      WithTemplate("{{ messages[0].content }}{{ a }}{{ b | tojson }}{{ add_generation_prompt }}");
  EXPECT_EQ(
      Render(model, R"(,"chat_template_kwargs":{"a":"x","b":[1,2.5,null,{"c":true}]})").prompt,
      R"(Hix[1, 2.5, null, {"c": true}]True)");
  const Rendered unused =
      Render(WithTemplate("{{ messages[0].content }}"),
             R"(,"chat_template_kwargs":{"add_generation_prompt":true,"unheard":1})");
  ASSERT_EQ(unused.notes.size(), 1U);
  EXPECT_NE(unused.notes[0].find("'unheard'"), std::string::npos);
}

TEST(ApiReasoning, WhatAModelCannotDoIsNamed) {
  const ApiModel plain = WithTemplate("{{ messages[0].content }}");
  const ApiModel thinker = WithTemplate("{{ messages[0].content }}<think>");
  const ApiModel either = WithTemplate("{{ messages[0].content }}{{ thinking }}");
  const auto has = [](const ApiModel& model, const std::string& more, std::string_view word) {
    const std::string message = Render(model, more).prompt;
    EXPECT_NE(message.find(word), std::string::npos) << more << ": " << message;
  };
  // A request may ask for the default behaviour of a model.
  EXPECT_EQ(Render(plain, R"(,"enable_thinking":false)").prompt, "Hi");
  EXPECT_EQ(Render(thinker, R"(,"thinking":{"type":"enabled"})").prompt, "Hi<think>");
  has(plain, R"(,"chat_template_kwargs":{"thinking":true})", "chat_template_kwargs.thinking");
  has(plain, R"(,"thinking":{"type":"enabled"})", "no switch");
  has(thinker, R"(,"enable_thinking":false)", "always begins with it");
  has(thinker, R"(,"reasoning_effort":"none")", "reasoning_effort");
  // reasoning_effort is a wish, not a requirement.
  EXPECT_EQ(Render(plain, R"(,"reasoning_effort":"none")").prompt, "Hi");
  const Rendered wish = Render(plain, R"(,"reasoning_effort":"high")");
  EXPECT_EQ(wish.prompt, "Hi");
  EXPECT_EQ(wish.notes.size(), 1U);
  has(either, R"(,"enable_thinking":true,"thinking":{"type":"disabled"})", "contradicts");
  has(either, R"(,"chat_template_kwargs":{"thinking":true,"enable_thinking":false})",
      "contradicts");
  has(either, R"(,"thinking":true)", "thinking");
  has(either, R"(,"thinking":{"type":"enabled","budget_tokens":"9"})", "budget_tokens");
  has(either, R"(,"thinking":{"type":"enabled","clear_thinking":false})", "clear_thinking");
  has(either, R"(,"thinking":{"type":"on"})", "'on'");
  has(either, R"(,"enable_thinking":"yes")", "enable_thinking");
  has(either, R"(,"reasoning_effort":"huge")", "'huge'");
  has(either, R"(,"chat_template_kwargs":{"messages":[]})", "chat_template_kwargs.messages");
  has(either, R"(,"chat_template_kwargs":{"add_generation_prompt":false})", "cannot be given");
  has(either, R"(,"chat_template_kwargs":[1])", "chat_template_kwargs");
  ApiModel encoder = Tiny();
  ModelConfig config;
  config.model_type = "deepseek_v2";
  encoder.tokenizer = Tokenizer::FromJson(Dump(SmallTokenizer())).value();
  encoder.chat = ChatPromptBuilder::Create(encoder.tokenizer, config);
  has(encoder, R"(,"chat_template_kwargs":{"a":1})", "'a'");
  has(encoder, R"(,"reasoning_effort":"high")", "User: Hi");
}

}  // namespace
}  // namespace latte::reasoning_test
