// A client sends an answer with calls back, and the prompt begins with what the model has read and
// written: the prefix cache finds all of it.
#include <gtest/gtest.h>

#include "src/chat/tools/tool_call_parser.h"
#include "src/openai/events/answer_splitter.h"

namespace latte {
namespace {

struct Turn {
  ChatFormat format;
  bool thinking;
  const char* answer;  // what the model writes after the prompt
};

ChatMessage Said(std::string role, std::string content) {
  ChatMessage out;
  out.role = std::move(role);
  out.content = std::move(content);
  return out;
}

std::string Prompt(const ChatRenderer& renderer, std::span<const ChatMessage> messages,
                   bool thinking) {
  ChatOptions options;
  options.thinking = thinking;
  const auto pieces = renderer.Render(messages, options);
  return pieces ? JoinPieces(*pieces) : pieces.error().message;
}

ChatMessage Read(ChatFormat chat, std::string_view answer, bool in_thought) {
  const ToolFormat format = FindToolFormat(chat, "").value();
  AnswerSplitter splitter(in_thought, CallOpenings(format));
  AnswerSplitter::Parts parts = splitter.Push(answer);
  parts.content += splitter.Flush().content;
  ToolCallParser parser(format);
  std::vector<ToolEvent> events = parser.Add(parts.content);
  ChatMessage out = Said("assistant", "");
  out.reasoning = parts.reasoning;
  for (const ToolEvent& event : events) {
    if (event.kind == ToolEvent::Kind::kContent) *out.content += event.text;
    if (event.kind == ToolEvent::Kind::kCallBegin)
      out.tool_calls.push_back({event.id, event.text, ""});
    if (event.kind == ToolEvent::Kind::kArguments) out.tool_calls.back().arguments += event.text;
  }
  return out;
}

TEST(ToolsRoundTrip, ThePromptBeginsWithTheLastOneAndItsAnswer) {
  const Turn turns[] = {
      {ChatFormat::kDeepseekV3, false,
       "Wait.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": "
       "\"}\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n"
       "{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
      {ChatFormat::kDeepseekV31, false,
       "Wait.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}"
       "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
      {ChatFormat::kDeepseekV32, true,
       "So.</think>Wait.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n"
       "<｜DSML｜parameter name=\"z\" string=\"true\">a \"b\"\n</｜DSML｜parameter>\n"
       "<｜DSML｜parameter name=\"a\" string=\"false\">[1, {\"b\": null}]</｜DSML｜parameter>\n"
       "</｜DSML｜invoke>\n</｜DSML｜function_calls>"},
      {ChatFormat::kKimiK2, true,
       "<think>So.</think>Wait.<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
       "<|tool_call_argument_begin|>{\"a\":1}<|tool_call_end|><|tool_calls_section_end|>"},
      {ChatFormat::kKimiK2, false,
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
       "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>"},
  };
  for (const Turn& turn : turns) {
    const ChatRenderer renderer = ChatRenderer::Create(turn.format, {}).value();
    std::vector<ChatMessage> messages = {Said("user", "Hi")};
    const std::string first = Prompt(renderer, messages, turn.thinking);
    messages.push_back(Read(turn.format, turn.answer, first.ends_with("<think>")));
    for (const ToolCall& call : messages.back().tool_calls) {
      ChatMessage result = Said("tool", "7");
      result.tool_call_id = call.id;
      messages.push_back(std::move(result));
    }
    ASSERT_GE(messages.size(), 3U);
    const std::string second = Prompt(renderer, messages, turn.thinking);
    EXPECT_EQ(second.substr(0, first.size() + std::string(turn.answer).size()), first + turn.answer)
        << ChatFormatName(turn.format);
  }
}

}  // namespace
}  // namespace latte
