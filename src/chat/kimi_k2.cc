// Kimi-K2: every turn is <|im_ROLE|>NAME<|im_middle|>TEXT<|im_end|>, without BOS. With thinking on,
// the format is Kimi-K2-Thinking's: reasoning comes before the text, and is kept only after the
// assistant's last answer without tool calls.
#include <deque>

#include <fmt/format.h>

#include "src/chat/encoders.h"
#include "src/jinja/json.h"

namespace latte {
namespace {

using jinja::Text;
using jinja::Value;

std::string CallId(const std::string& name, size_t index) {
  return fmt::format("functions.{}:{}", name, index);
}

class KimiEncoder {
 public:
  explicit KimiEncoder(const ChatOptions& options) : options_(options) {}

  Result<Text> Encode(std::span<const ChatMessage> messages) {
    if (options_.tools) {
      LATTE_ASSIGN_OR_RETURN(const Value tools, jinja::ParseJson(*options_.tools, "tools"));
      LATTE_ASSIGN_OR_RETURN(const std::string json, CompactJson(tools));
      if (jinja::Truthy(tools))
        out_.TemplateText("<|im_system|>tool_declare<|im_middle|>")
            .UserText(json)
            .TemplateText("<|im_end|>");
    }
    if (messages.empty() || messages[0].role != "system")
      out_.TemplateText(
          "<|im_system|>system<|im_middle|>You are Kimi, an AI assistant created by Moonshot "
          "AI.<|im_end|>");
    size_t suffix = messages.size();  // reasoning is kept from this message on
    while (suffix > 0 &&
           !(messages[suffix - 1].role == "assistant" && messages[suffix - 1].tool_calls.empty()))
      --suffix;
    for (size_t i = 0; i < messages.size(); ++i)
      LATTE_RETURN_IF_ERROR(Write(messages[i], i, i >= suffix));
    if (options_.add_generation_prompt) out_.TemplateText("<|im_assistant|>assistant<|im_middle|>");
    return out_.Take();
  }

 private:
  Status Write(const ChatMessage& message, size_t i, bool keep_reasoning) {
    const bool assistant = message.role == "assistant";
    if (!assistant && message.role != "user" && message.role != "system" && message.role != "tool")
      return BadMessage(ChatFormat::kKimiK2, i, NoSuchRole(message.role));
    out_.TemplateText(message.role == "user" ? "<|im_user|>"
                      : assistant            ? "<|im_assistant|>"
                                             : "<|im_system|>");
    const bool named = message.name && !message.name->empty();
    if (named)
      out_.UserText(*message.name);
    else
      out_.TemplateText(message.role);  // one of the four
    out_.TemplateText("<|im_middle|>");
    if (assistant && options_.thinks()) {
      const std::string reasoning = message.reasoning.value_or("");
      out_.TemplateText("<think>")
          .UserText(keep_reasoning ? reasoning : "")
          .TemplateText("</think>");
    }
    if (message.role == "tool")
      out_.TemplateText("## Return of ").UserText(ReturnId(message)).TemplateText("\n");
    out_.UserText(message.content.value_or(""));
    if (assistant) WriteCalls(message.tool_calls);
    out_.TemplateText(message.prefix && assistant ? "" : "<|im_end|>");
    return {};
  }

  // The thinking model repeats the ids that it was given. The other model numbers calls through the
  // whole conversation and answers them in order.
  std::string ReturnId(const ChatMessage& message) {
    if (options_.thinks()) return message.tool_call_id.value_or("");
    if (waiting_.empty()) return CallId(message.name.value_or("unknown"), calls_);
    std::string id = std::move(waiting_.front());
    waiting_.pop_front();
    return id;
  }

  void WriteCalls(const std::vector<ToolCall>& calls) {
    if (calls.empty()) return;
    out_.TemplateText("<|tool_calls_section_begin|>");
    for (const ToolCall& call : calls) {
      const std::string id = options_.thinks() ? call.id : CallId(call.name, calls_);
      waiting_.push_back(id);
      ++calls_;
      out_.TemplateText("<|tool_call_begin|>")
          .UserText(id)
          .TemplateText("<|tool_call_argument_begin|>");
      out_.UserText(call.arguments).TemplateText("<|tool_call_end|>");
    }
    out_.TemplateText("<|tool_calls_section_end|>");
  }

  const ChatOptions& options_;
  PromptWriter out_;
  std::deque<std::string> waiting_;  // ids of calls that still lack a result
  size_t calls_ = 0;
};

}  // namespace

Result<Text> EncodeKimiK2(std::span<const ChatMessage> messages, const ChatOptions& options) {
  return KimiEncoder(options).Encode(messages);
}

}  // namespace latte
