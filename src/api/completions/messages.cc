#include "src/api/completions/messages.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/api/common/conversation.h"
#include "src/api/common/history/placeholder.h"
#include "src/base/fields/json_values.h"
#include "src/base/json_out.h"

namespace latte {
namespace {

constexpr auto kRoles =
    std::to_array<std::string_view>({"system", "developer", "user", "assistant", "tool"});

// Members that have no effect while they are empty and are refused otherwise. `says_nothing` is
// called for values that are not null.
struct Silent {
  std::string_view name;
  bool (*says_nothing)(const Json& value);
  std::string_view otherwise;  // advice for a value that is refused
};

// Members of answers that a client sends back, and members of other services.
constexpr auto kOfMessages = std::to_array<Silent>({
    {"refusal", IsEmptyText, "send it as content"},
    {"annotations", IsList, ""},  // positions of sources in the text
    {"audio", IsEmpty, "the model reads text"},
    {"images", IsEmpty, "the model reads text"},
    {"function_call", IsEmpty, "send tool_calls"},
    {"thinking_blocks", IsEmpty, "send reasoning_content"},
    {"reasoning_details", IsEmpty, "send reasoning_content"},
    {"provider_specific_fields", IsObject, ""},
    {"cache_control", IsObject, ""},
    {"prefix", IsFalse, "every answer is a message of its own"},
    {"partial", IsFalse, "every answer is a message of its own"},
});
// The members of messages; the second half has a meaning in answers only.
constexpr auto kMessageMembers = std::to_array<std::string_view>(
    {"role", "content", "name", "reasoning_content", "reasoning", "tool_calls", "tool_call_id",
     "refusal", "audio", "images", "thinking_blocks", "reasoning_details"});
constexpr size_t kMembersOfAll = 7;
constexpr auto kOfParts = std::to_array<Silent>({
    {"annotations", IsList, ""},
    {"cache_control", IsObject, ""},
});
constexpr auto kOfCalls = std::to_array<Silent>({
    {"index", [](const Json& v) { return v.is_integer(); }, ""},  // of streamed answers
    {"provider_specific_fields", IsObject, ""},
});

// Errors: kInvalidArgument for a member of `object` that is neither in `names` nor null nor silent;
// kUnsupported for a silent member that is not empty.
Status CheckMessageMembers(const Json& object, std::span<const std::string_view> names,
                           std::span<const Silent> silent = {}) {
  if (!object.is_object()) return InvalidArgument(object.path() + ": expected an object");
  return object.ForEachMember([&](const std::string& name, const Json& value) -> Status {
    if (!object.Find(name)) return {};  // null
    if (std::find(names.begin(), names.end(), name) != names.end()) return {};
    const auto found = std::find_if(silent.begin(), silent.end(),
                                    [&](const Silent& member) { return member.name == name; });
    if (found == silent.end())
      return InvalidArgument(value.path() + ": unknown field; leave it out");
    if (found->says_nothing(value)) return {};
    return Unsupported(fmt::format("{}: '{}' is not supported with this value{}{}", value.path(),
                                   name, found->otherwise.empty() ? "" : "; ", found->otherwise));
  });
}

Status CheckMessageMembers(const Json& object, std::initializer_list<std::string_view> names,
                           std::span<const Silent> silent = {}) {
  return CheckMessageMembers(object, std::span(names.begin(), names.size()), silent);
}

// The parts that a message may have. The sender of a new text can send another one; the words of an
// answer or a tool stay in the conversation, and so does a question that was refused once.
enum class MessageParts : uint8_t { kText, kAnything };

// Nothing for reasoning, which belongs to the answer and not to its text.
Result<std::optional<std::string>> MessagePartText(const Json& part, MessageParts allowed) {
  if (!part.is_object()) return InvalidArgument(part.path() + ": expected an object");
  LATTE_ASSIGN_OR_RETURN(const std::string type, part.GetString("type"));
  if (type == "text") {
    LATTE_RETURN_IF_ERROR(CheckMessageMembers(part, {"type", "text"}, kOfParts));
    return part.GetString("text");
  }
  if (allowed == MessageParts::kText) return NoSuchPart(part, type, "");
  if (type == "refusal") return part.GetString("refusal");
  if (type == "thinking" || type == "reasoning" || type == "redacted_thinking")
    return std::optional<std::string>();
  return Placeholder(type, part);
}

Result<std::string> ContentText(const Json& content, MessageParts allowed) {
  if (content.is_string()) return content.AsString();
  if (!content.is_array())
    return InvalidArgument(content.path() + ": expected a string or an array of parts");
  std::string text;
  bool begun = false;
  for (size_t i = 0; i < content.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(const std::optional<std::string> part,
                           MessagePartText(content.At(i), allowed));
    if (!part) continue;
    if (std::exchange(begun, true)) text += '\n';
    text += *part;
  }
  return text;
}

// The input of a custom tool is the one parameter of a function, as in /v1/responses.
Result<ToolCall> ParseCustomCall(const Json& call) {
  LATTE_RETURN_IF_ERROR(CheckMessageMembers(call, {"id", "type", "custom"}, kOfCalls));
  LATTE_ASSIGN_OR_RETURN(const Json custom, call.Get("custom"));
  LATTE_RETURN_IF_ERROR(CheckMessageMembers(custom, {"name", "input"}));
  ToolCall out;
  LATTE_ASSIGN_OR_RETURN(out.id, call.GetStringOr("id", ""));
  LATTE_ASSIGN_OR_RETURN(out.name, custom.GetString("name"));
  LATTE_ASSIGN_OR_RETURN(const std::string input, custom.GetStringOr("input", ""));
  out.arguments = Dump(JsonOut{{"input", input}});
  return out;
}

Result<ToolCall> ParseCall(const Json& call) {
  if (!call.is_object()) return InvalidArgument(call.path() + ": expected an object");
  LATTE_ASSIGN_OR_RETURN(const std::string type, call.GetStringOr("type", "function"));
  if (type == "custom") return ParseCustomCall(call);
  if (type != "function")
    return Unsupported(
        fmt::format("{}: calls of type '{}' are not supported; calls of type function and custom "
                    "are",
                    call.path(), type));
  LATTE_RETURN_IF_ERROR(CheckMessageMembers(call, {"id", "type", "function"}, kOfCalls));
  LATTE_ASSIGN_OR_RETURN(const Json function, call.Get("function"));
  LATTE_RETURN_IF_ERROR(CheckMessageMembers(function, {"name", "arguments"}));
  ToolCall out;
  LATTE_ASSIGN_OR_RETURN(out.id, call.GetStringOr("id", ""));
  LATTE_ASSIGN_OR_RETURN(out.name, function.GetString("name"));
  LATTE_ASSIGN_OR_RETURN(out.arguments, function.GetStringOr("arguments", ""));
  if (out.arguments.empty()) out.arguments = "{}";  // a call without arguments
  return out;
}

Status ReadMessageText(const Json& message, std::string_view key, std::optional<std::string>* out) {
  if (const auto value = message.Find(key)) {
    LATTE_ASSIGN_OR_RETURN(*out, value->AsString());
  }
  return {};
}

Status ReadCalls(const Json& message, ChatMessage* out) {
  const auto calls = message.Find("tool_calls");
  if (!calls || IsEmpty(*calls)) return {};
  if (!calls->is_array()) return InvalidArgument(calls->path() + ": expected an array");
  for (size_t i = 0; i < calls->size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(out->tool_calls.emplace_back(), ParseCall(calls->At(i)));
  }
  return {};
}

// Errors: kInvalidArgument and kUnsupported for roles that no message may have.
Status CheckRole(const Json& message, std::string_view role) {
  if (role == "function")
    return Unsupported(message.path() +
                       ": role 'function' is not supported; send tool_calls and role 'tool'");
  if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end())
    return InvalidArgument(fmt::format("{}: expected role {}, found '{}'", message.path(),
                                       fmt::join(kRoles, ", "), role));
  return {};
}

// Only an assistant has reasoning and calls; other roles would lose them.
Status CheckSpeaker(const Json& message, const ChatMessage& parsed) {
  if (parsed.role == "assistant") return {};
  const bool thinks = parsed.reasoning && !parsed.reasoning->empty();
  if (!thinks && parsed.tool_calls.empty()) return {};
  return InvalidArgument(fmt::format("{}: only messages of role 'assistant' have {}, found '{}'",
                                     message.path(), thinks ? "reasoning_content" : "tool_calls",
                                     parsed.role));
}

// Reasoning as LiteLLM (thinking_blocks) and OpenRouter (reasoning_details) copy it from answers.
std::optional<std::string> CopiedReasoning(const Json& message) {
  for (const char* list : {"thinking_blocks", "reasoning_details"}) {
    const auto blocks = message.Find(list);
    std::string text;
    for (size_t i = 0; blocks && blocks->is_array() && i < blocks->size(); ++i)
      for (const char* key : {"thinking", "text", "summary"})
        if (const auto part = blocks->At(i).Find(key); part && part->is_string())
          text += *part->AsString();
    if (!text.empty()) return text;
  }
  return std::nullopt;
}

// Members of an answer of another server that are not its text.
Status AddPartsOfAnswer(const Json& message, ChatMessage* out) {
  std::string text = out->content.value_or("");
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "\n") + part; };
  if (!out->reasoning) out->reasoning = CopiedReasoning(message);
  if (const auto refusal = message.Find("refusal"); refusal && text.empty()) {
    LATTE_ASSIGN_OR_RETURN(text, refusal->AsString());
  }
  if (const auto audio = message.Find("audio"); audio && text.empty() && !IsEmpty(*audio))
    add(Placeholder("audio", *audio));
  const auto images = message.Find("images");
  for (size_t i = 0; images && images->is_array() && i < images->size(); ++i)
    add(Placeholder("image", images->At(i)));
  if (!text.empty()) out->content = std::move(text);
  return {};
}

Result<ChatMessage> ParseMessage(const Json& message, bool is_new) {
  if (!message.is_object()) return InvalidArgument(message.path() + ": expected an object");
  ChatMessage out;
  LATTE_ASSIGN_OR_RETURN(out.role, message.GetString("role"));
  LATTE_RETURN_IF_ERROR(CheckRole(message, out.role));
  const bool answers = out.role == "assistant";
  LATTE_RETURN_IF_ERROR(CheckMessageMembers(
      message, std::span(kMessageMembers).first(answers ? kMessageMembers.size() : kMembersOfAll),
      kOfMessages));
  LATTE_RETURN_IF_ERROR(ReadCalls(message, &out));
  LATTE_RETURN_IF_ERROR(ReadMessageText(message, "reasoning", &out.reasoning));
  LATTE_RETURN_IF_ERROR(ReadMessageText(message, "reasoning_content", &out.reasoning));
  LATTE_RETURN_IF_ERROR(ReadMessageText(message, "tool_call_id", &out.tool_call_id));
  LATTE_RETURN_IF_ERROR(ReadMessageText(message, "name", &out.name));
  LATTE_RETURN_IF_ERROR(CheckSpeaker(message, out));
  const bool history = answers || out.role == "tool" || (out.role == "user" && !is_new);
  if (const auto content = message.Find("content")) {
    LATTE_ASSIGN_OR_RETURN(out.content, ContentText(*content, history ? MessageParts::kAnything
                                                                      : MessageParts::kText));
  } else if (out.role == "tool" || (answers && out.tool_calls.empty())) {
    out.content = "";  // a result without text; an answer that was all reasoning
  } else if (!answers) {
    return InvalidArgument(message.path() + ": key 'content' is missing");
  }
  if (answers) LATTE_RETURN_IF_ERROR(AddPartsOfAnswer(message, &out));
  return out;
}

// The message of the user that nothing has answered yet; the number of messages if there is none.
size_t NewQuestion(const Json& messages) {
  for (size_t i = messages.size(); i-- > 0;) {
    const auto role = messages.At(i).Find("role");
    if (!role || !role->is_string()) continue;
    const std::string name = *role->AsString();
    if (name == "user") return i;
    if (name != "system" && name != "developer") break;
  }
  return messages.size();
}

}  // namespace

Result<std::vector<ChatMessage>> ParseOpenAiMessages(const Json& messages) {
  LATTE_RETURN_IF_ERROR(CheckMessageList(messages));
  const size_t question = NewQuestion(messages);
  std::vector<ChatMessage> out;
  for (size_t i = 0; i < messages.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(out.emplace_back(), ParseMessage(messages.At(i), i == question));
  }
  return out;
}

}  // namespace latte
