#include "src/chat/check.h"

#include <gtest/gtest.h>

namespace latte::check_test {
namespace {

using Left = std::vector<Unshown>;

ChatMessage Call(std::string name, std::string arguments = "{}") {
  ChatMessage message;
  message.role = "assistant";
  message.tool_calls = {{"functions." + name + ":0", std::move(name), std::move(arguments)}};
  return message;
}

ChatRenderer Template(std::string source) {
  ChatModel model;
  model.chat_template = std::move(source);
  return ChatRenderer::Create(model).value();
}

Left LeftOut(const ChatRenderer& renderer, const std::vector<ChatMessage>& messages,
             const ChatOptions& options = {}) {
  const auto prompt = renderer.Render(messages, options);
  EXPECT_TRUE(prompt) << ToString(prompt.error());
  return FindUnshown(renderer, messages, options, *prompt);
}

// Like many templates: it shows two roles and nothing for any other.
constexpr const char* kTwoRoles =
    "{% for m in messages %}{% if m.role == 'user' %}U{{ m.content }}{% elif m.role == 'assistant' "
    "%}A{{ m.content }}{% endif %}{% endfor %}";

TEST(ChatCheck, ARoleThatATemplateDoesNotKnow) {
  const ChatRenderer renderer = Template(kTwoRoles);
  EXPECT_EQ(LeftOut(renderer, {{"user", "a"}, {"assistant", "b"}}), Left{});
  EXPECT_EQ(LeftOut(renderer, {{"system", "a"}, {"user", "b"}, {"tool", "c"}}),
            (Left{{0, MessagePart::kText}, {2, MessagePart::kText}}));
  // The same text is in the prompt, but with another role.
  EXPECT_EQ(LeftOut(renderer, {{"developer", "a"}, {"user", "a"}}),
            (Left{{0, MessagePart::kText}}));
}

TEST(ChatCheck, APlaceThatATemplateDoesNotShow) {
  const ChatRenderer last_system = Template(
      "{% set ns = namespace(s='') %}{% for m in messages if m.role == 'system' %}"
      "{% set ns.s = m.content %}{% endfor %}{{ ns.s }}"
      "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}");
  EXPECT_EQ(LeftOut(last_system, {{"system", "a"}, {"user", "b"}, {"system", "c"}}),
            (Left{{0, MessagePart::kText}}));
  const ChatRenderer first_system = Template(
      "{% if messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}"
      "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}");
  EXPECT_EQ(LeftOut(first_system, {{"system", "a"}, {"user", "b"}, {"system", "c"}}),
            (Left{{2, MessagePart::kText}}));
}

TEST(ChatCheck, TextThatATemplateChangesIsShown) {
  const std::vector<ChatMessage> messages = {
      {"user", " Hi \n"}, {"assistant", "<think>why</think>\n\nso"}, {"user", "\"<e>\""}};
  for (const char* shown : {"m.content | trim", "m.content.split('</think>')[-1] | trim",
                            "m.content | tojson", "m.content | upper", "m.content[3:]"}) {
    const ChatRenderer renderer =
        Template("{% for m in messages %}{{ " + std::string(shown) + " }}{% endfor %}");
    EXPECT_EQ(LeftOut(renderer, messages), Left{}) << shown;
  }
}

TEST(ChatCheck, WhatSaysNothingIsNotMissed) {
  ChatMessage thought = {"assistant", ""};
  thought.reasoning = "hm";
  EXPECT_EQ(LeftOut(Template(kTwoRoles), {{"system", " \n"}, {"tool", ""}, thought}), Left{});
}

TEST(ChatCheck, CallsAndNames) {
  const ChatRenderer renderer = Template(kTwoRoles);
  ChatMessage named = {"user", "a"};
  named.name = "Ann";
  EXPECT_EQ(LeftOut(renderer, {named, Call("f")}),
            (Left{{0, MessagePart::kName}, {1, MessagePart::kCalls}}));
  const ChatRenderer by_id = Template(
      "{% for m in messages %}{{ m.name }}:{{ m.content }}{% for c in m.tool_calls %}{{ c.id }} "
      "{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}");
  EXPECT_EQ(LeftOut(by_id, {named, Call("f"), Call("f", R"( {"a": {"b": 1}})")}), Left{});
}

TEST(ChatCheck, ATemplateThatRefusesMarksIsSearchedForTheText) {
  const ChatRenderer picky = Template(
      "{% for m in messages %}{% if m.role == 'system' and m.content not in ['en', 'de'] %}"
      "{{ raise_exception('no such language') }}{% endif %}"
      "{% if m.role != 'tool' %}{{ m.content }}{% endif %}{% endfor %}");
  EXPECT_EQ(LeftOut(picky, {{"system", "de"}, {"user", " a b "}}), Left{});
  EXPECT_EQ(LeftOut(picky, {{"system", "de"}, {"tool", "rain"}}), (Left{{1, MessagePart::kText}}));
}

TEST(ChatCheck, TheFamiliesFormatsShowAllThatTheyTake) {
  ChatMessage thought = {"assistant", "so"};
  thought.reasoning = "hm";
  std::vector<ChatMessage> messages = {{"system", "a"},
                                       {"user", "b"},
                                       thought,
                                       {"system", "c"},
                                       {"system", "d"},
                                       {"user", "e"},
                                       {"assistant", "<think>x</think>f"},
                                       {"user", "g"}};
  for (const ChatFormat format :
       {ChatFormat::kDeepseekV2, ChatFormat::kDeepseekV25, ChatFormat::kDeepseekV3,
        ChatFormat::kDeepseekR1, ChatFormat::kDeepseekV31, ChatFormat::kDeepseekV32,
        ChatFormat::kKimiK2}) {
    const ChatRenderer renderer = ChatRenderer::Create(format, {}).value();
    for (const bool thinking : {false, true}) {
      ChatOptions options;
      options.thinking = thinking;
      EXPECT_EQ(LeftOut(renderer, messages, options), Left{}) << ChatFormatName(format);
      if (format == ChatFormat::kDeepseekV2) continue;
      const std::vector<ChatMessage> tools = {
          {"user", "a"}, Call("f", R"({"x": "y"})"), {"tool", "rain"}, {"user", "b"}};
      EXPECT_EQ(LeftOut(renderer, tools, options), Left{}) << ChatFormatName(format);
    }
  }
}

}  // namespace
}  // namespace latte::check_test
