// DeepSeek-V2 to V3.1; see encoders.h for the rest.
//
// V2    BOS, then "User: TEXT\n\n", "Assistant: TEXT" EOS, and "TEXT\n\n" of a system message.
// V3    BOS, all system messages joined by "\n\n", then <U>TEXT and <A>TEXT EOS. A turn that calls
//       tools is <A>TEXT <calls> EOS; the results and what is said to them follow without <A>.
// R1    as V3; earlier reasoning is left out, and the generation prompt opens a new one.
// V3.1  as V3, with <think> or </think> after each <A>, and shorter marks around calls.
#include "src/chat/encoders.h"

#include <fmt/format.h>

#include "src/jinja/json.h"

namespace latte {
namespace {

using jinja::Text;
using jinja::Value;

constexpr std::string_view kBos = "<｜begin▁of▁sentence｜>";
constexpr std::string_view kEndOfSentence = "<｜end▁of▁sentence｜>";
constexpr std::string_view kUser = "<｜User｜>";
constexpr std::string_view kAssistant = "<｜Assistant｜>";

Result<Text> EncodeV2(std::span<const ChatMessage> messages, const ChatOptions& options) {
  PromptWriter out;
  out.TemplateText(kBos);
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    if (!message.tool_calls.empty())
      return BadMessage(ChatFormat::kDeepseekV2, i, "this format has no tool calls");
    const std::string content = message.content.value_or("");
    if (message.role == "system")
      out.UserText(content).TemplateText("\n\n");
    else if (message.role == "user")
      out.TemplateText("User: ").UserText(content).TemplateText("\n\n");
    else if (message.role == "assistant")
      out.TemplateText("Assistant: ")
          .UserText(content)
          .TemplateText(message.prefix ? "" : kEndOfSentence);
    else
      return BadMessage(ChatFormat::kDeepseekV2, i, NoSuchRole(message.role));
  }
  if (options.tools)
    return InvalidArgument("the chat format deepseek_v2 has no tools; leave them out");
  if (options.add_generation_prompt) out.TemplateText("Assistant:");
  return out.Take();
}

void WriteSystem(std::span<const ChatMessage> messages, PromptWriter* out) {
  bool first = true;
  for (const ChatMessage& message : messages) {
    if (message.role != "system") continue;
    out->TemplateText(first ? "" : "\n\n").UserText(message.content.value_or(""));
    first = false;
  }
}

std::string AfterThinking(const std::string& content, bool last) {
  constexpr std::string_view kEnd = "</think>";
  const size_t at = last ? content.rfind(kEnd) : content.find(kEnd);
  return at == std::string::npos ? content : content.substr(at + kEnd.size());
}

// V2.5, V3 and R1.
class V3Encoder {
 public:
  V3Encoder(ChatFormat format, const ChatOptions& options) : format_(format), options_(options) {}

  Result<Text> Encode(std::span<const ChatMessage> messages) {
    if (options_.tools)
      return InvalidArgument(
          fmt::format("the chat format {} has no place for tools; describe them in a system "
                      "message, or use a template that does",
                      ChatFormatName(format_)));
    out_.TemplateText(kBos);
    WriteSystem(messages, &out_);
    for (size_t i = 0; i < messages.size(); ++i) LATTE_RETURN_IF_ERROR(Write(messages, i));
    if (in_outputs_) out_.TemplateText("<｜tool▁outputs▁end｜>");
    if (options_.add_generation_prompt && !in_outputs_)
      out_.TemplateText(kAssistant)
          .TemplateText(format_ == ChatFormat::kDeepseekR1 ? "<think>\n" : "");
    return out_.Take();
  }

 private:
  Status Write(std::span<const ChatMessage> messages, size_t i) {
    const ChatMessage& message = messages[i];
    const bool r1 = format_ == ChatFormat::kDeepseekR1;
    if (message.role == "user") {
      in_outputs_ = false;  // the original templates leave them open here
      out_.TemplateText(kUser).UserText(message.content.value_or(""));
    } else if (message.role == "assistant") {
      const bool follows_outputs = in_outputs_;
      CloseOutputs();
      const std::string content = message.content.value_or("");
      if (!follows_outputs) out_.TemplateText(kAssistant);
      const bool history = r1 && !follows_outputs && message.tool_calls.empty();
      out_.UserText(history ? AfterThinking(content, true) : content);
      WriteCalls(message.tool_calls);
      out_.TemplateText(message.prefix ? "" : kEndOfSentence);
    } else if (message.role == "tool") {
      const std::string_view between = r1 ? "" : "\n";
      out_.TemplateText(in_outputs_ ? between : "<｜tool▁outputs▁begin｜>")
          .TemplateText("<｜tool▁output▁begin｜>");
      out_.UserText(message.content.value_or("")).TemplateText("<｜tool▁output▁end｜>");
      in_outputs_ = true;
    } else if (message.role != "system") {
      return BadMessage(format_, i, NoSuchRole(message.role));
    }
    return {};
  }

  void CloseOutputs() {
    if (in_outputs_) out_.TemplateText("<｜tool▁outputs▁end｜>");
    in_outputs_ = false;
  }

  void WriteCalls(const std::vector<ToolCall>& calls) {
    for (size_t i = 0; i < calls.size(); ++i) {
      out_.TemplateText(i == 0 ? "<｜tool▁calls▁begin｜>" : "\n");
      out_.TemplateText("<｜tool▁call▁begin｜>function<｜tool▁sep｜>").UserText(calls[i].name);
      out_.TemplateText("\n```json\n")
          .UserText(calls[i].arguments)
          .TemplateText("\n```<｜tool▁call▁end｜>");
    }
    if (!calls.empty()) out_.TemplateText("<｜tool▁calls▁end｜>");
  }

  ChatFormat format_;
  const ChatOptions& options_;
  PromptWriter out_;
  bool in_outputs_ = false;
};

// V3.1 puts the tools at the end of the system text.
constexpr std::string_view kV31Tools = "\n\n## Tools\nYou have access to the following tools:\n";
constexpr std::string_view kV31Format =
    "\nIMPORTANT: ALWAYS adhere to this exact format for tool use:\n"
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>tool_call_name<｜tool▁sep｜>tool_call_arguments"
    "<｜tool▁call▁end｜>{{additional_tool_calls}}<｜tool▁calls▁end｜>\n\n"
    "Where:\n\n"
    "- `tool_call_name` must be an exact match to one of the available tools\n"
    "- `tool_call_arguments` must be valid JSON that strictly follows the tool's Parameters "
    "Schema\n"
    "- For multiple tool calls, chain them directly without separators or spaces\n";

// `absent`: for a member that the API does not require; empty: it does.
Result<std::string> Member(const Value& function, std::string_view key,
                           std::optional<std::string> absent = std::nullopt) {
  const Value* value = function.Is(jinja::Kind::kDict) ? function.dict().Find(key) : nullptr;
  if (!value && absent) return *std::move(absent);
  if (!value) return InvalidArgument(fmt::format("tools: a function without '{}'", key));
  return value->Is(jinja::Kind::kString) ? value->bytes() : CompactJson(*value);
}

Status WriteV31Tools(const ChatOptions& options, PromptWriter* out) {
  LATTE_ASSIGN_OR_RETURN(const std::vector<Value> functions, ParseTools(options));
  if (functions.empty()) return {};
  out->TemplateText(kV31Tools);
  for (const Value& function : functions) {
    LATTE_ASSIGN_OR_RETURN(const std::string name, Member(function, "name"));
    LATTE_ASSIGN_OR_RETURN(const std::string description, Member(function, "description", ""));
    LATTE_ASSIGN_OR_RETURN(const std::string parameters, Member(function, "parameters", "{}"));
    out->TemplateText("\n### ")
        .UserText(name)
        .TemplateText("\nDescription: ")
        .UserText(description);
    out->TemplateText("\n\nParameters: ").UserText(parameters).TemplateText("\n");
  }
  out->TemplateText(kV31Format);
  return {};
}

Result<Text> EncodeV31(std::span<const ChatMessage> messages, const ChatOptions& options) {
  PromptWriter out;
  out.TemplateText(kBos);
  WriteSystem(messages, &out);
  LATTE_RETURN_IF_ERROR(WriteV31Tools(options, &out));
  bool after_user = false;
  bool after_outputs = false;
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    const std::string content = message.content.value_or("");
    if (message.role == "user") {
      out.TemplateText(kUser).UserText(content);
      after_user = true;
      after_outputs = false;
    } else if (message.role == "assistant") {
      // V3.1 uses tools only in the mode without thinking.
      const bool thinks = message.prefix && options.thinks() && message.tool_calls.empty();
      if (after_user) out.TemplateText(kAssistant).TemplateText(thinks ? "<think>" : "</think>");
      const bool whole = after_outputs || !message.tool_calls.empty();
      out.UserText(whole ? content : AfterThinking(content, false));
      for (size_t k = 0; k < message.tool_calls.size(); ++k) {
        out.TemplateText(k == 0 ? "<｜tool▁calls▁begin｜>" : "")
            .TemplateText("<｜tool▁call▁begin｜>");
        out.UserText(message.tool_calls[k].name).TemplateText("<｜tool▁sep｜>");
        out.UserText(message.tool_calls[k].arguments).TemplateText("<｜tool▁call▁end｜>");
      }
      if (!message.tool_calls.empty()) out.TemplateText("<｜tool▁calls▁end｜>");
      out.TemplateText(message.prefix ? "" : kEndOfSentence);
      after_user = after_outputs = false;
    } else if (message.role == "tool") {
      out.TemplateText("<｜tool▁output▁begin｜>")
          .UserText(content)
          .TemplateText("<｜tool▁output▁end｜>");
      after_user = false;
      after_outputs = true;
    } else if (message.role != "system") {
      return BadMessage(ChatFormat::kDeepseekV31, i, NoSuchRole(message.role));
    }
  }
  if (options.add_generation_prompt && after_user)
    out.TemplateText(kAssistant).TemplateText(options.thinks() ? "<think>" : "</think>");
  return out.Take();
}

}  // namespace

std::string NoSuchRole(std::string_view role) {
  return fmt::format("this format does not have its role, '{}'", role);
}

tl::unexpected<Error> BadMessage(ChatFormat format, size_t index, std::string_view why) {
  return InvalidArgument(
      fmt::format("chat format {}: message {}: {}", ChatFormatName(format), index, why));
}

Result<std::vector<Value>> ParseTools(const ChatOptions& options) {
  std::vector<Value> out;
  if (!options.tools) return out;
  LATTE_ASSIGN_OR_RETURN(const Value tools, jinja::ParseJson(*options.tools, "tools"));
  if (!tools.Is(jinja::Kind::kList)) return InvalidArgument("tools: expected an array");
  for (const Value& tool : tools.list().items) {
    const Value* function = tool.Is(jinja::Kind::kDict) ? tool.dict().Find("function") : nullptr;
    if (!function) return InvalidArgument("tools: expected objects with 'function'");
    out.push_back(*function);
  }
  return out;
}

Result<Value> ParseArguments(const ToolCall& call) {
  Result<Value> parsed = jinja::ParseJson(call.arguments, "arguments");
  if (parsed && parsed->Is(jinja::Kind::kDict)) return parsed;
  return jinja::MakeDict(
      {{Text("INVALID_JSON", true), Value::String(jinja::UserText(call.arguments))}});
}

Result<std::string> CompactJson(const Value& value) {
  jinja::Budget budget{jinja::Limits()};
  return jinja::DumpJson(value, {}, &budget);
}

Result<Text> EncodeChat(ChatFormat format, std::span<const ChatMessage> messages,
                        const ChatOptions& options) {
  if (options.response_format && format != ChatFormat::kDeepseekV32)
    return InvalidArgument(fmt::format("the chat format {} has no response format; leave it out",
                                       ChatFormatName(format)));
  switch (format) {
    case ChatFormat::kDeepseekV2:
      return EncodeV2(messages, options);
    case ChatFormat::kDeepseekV31:
      return EncodeV31(messages, options);
    case ChatFormat::kDeepseekV32:
      return EncodeDeepseekV32(messages, options);
    case ChatFormat::kKimiK2:
      return EncodeKimiK2(messages, options);
    default:
      return V3Encoder(format, options).Encode(messages);
  }
}

}  // namespace latte
