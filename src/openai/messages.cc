#include "src/openai/messages.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "src/base/fields/json_values.h"

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
Status CheckMessageMembers(const Json& object, std::initializer_list<std::string_view> names,
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

Result<std::string> MessagePartText(const Json& part) {
  if (!part.is_object()) return InvalidArgument(part.path() + ": expected an object");
  LATTE_ASSIGN_OR_RETURN(const std::string type, part.GetString("type"));
  if (type != "text")
    return Unsupported(fmt::format("{}: parts of type '{}' are not supported; the model reads text",
                                   part.path(), type));
  LATTE_RETURN_IF_ERROR(CheckMessageMembers(part, {"type", "text"}, kOfParts));
  return part.GetString("text");
}

Result<std::string> ContentText(const Json& content) {
  if (content.is_string()) return content.AsString();
  if (!content.is_array())
    return InvalidArgument(content.path() + ": expected a string or an array of parts");
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(const std::string part, MessagePartText(content.At(i)));
    if (i > 0) text += '\n';
    text += part;
  }
  return text;
}

Result<ToolCall> ParseCall(const Json& call) {
  if (!call.is_object()) return InvalidArgument(call.path() + ": expected an object");
  LATTE_ASSIGN_OR_RETURN(const std::string type, call.GetStringOr("type", "function"));
  if (type != "function")
    return Unsupported(fmt::format(
        "{}: calls of type '{}' are not supported; calls of functions are", call.path(), type));
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

Result<ChatMessage> ParseMessage(const Json& message) {
  LATTE_RETURN_IF_ERROR(CheckMessageMembers(
      message,
      {"role", "content", "name", "reasoning_content", "reasoning", "tool_calls", "tool_call_id"},
      kOfMessages));
  ChatMessage out;
  LATTE_ASSIGN_OR_RETURN(out.role, message.GetString("role"));
  LATTE_RETURN_IF_ERROR(CheckRole(message, out.role));
  LATTE_RETURN_IF_ERROR(ReadCalls(message, &out));
  LATTE_RETURN_IF_ERROR(ReadMessageText(message, "reasoning", &out.reasoning));
  LATTE_RETURN_IF_ERROR(ReadMessageText(message, "reasoning_content", &out.reasoning));
  LATTE_RETURN_IF_ERROR(ReadMessageText(message, "tool_call_id", &out.tool_call_id));
  LATTE_RETURN_IF_ERROR(ReadMessageText(message, "name", &out.name));
  LATTE_RETURN_IF_ERROR(CheckSpeaker(message, out));
  if (const auto content = message.Find("content")) {
    LATTE_ASSIGN_OR_RETURN(out.content, ContentText(*content));
  } else if (out.role == "assistant" && out.tool_calls.empty() && out.reasoning) {
    out.content = "";  // the answer ended inside its reasoning
  } else if (out.tool_calls.empty()) {
    return InvalidArgument(message.path() + ": key 'content' is missing");
  }
  return out;
}

}  // namespace

Result<std::vector<ChatMessage>> ParseOpenAiMessages(const Json& messages) {
  if (!messages.is_array() || messages.size() == 0)
    return InvalidArgument(messages.path() + ": expected an array of at least one message");
  std::vector<ChatMessage> out;
  for (size_t i = 0; i < messages.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(out.emplace_back(), ParseMessage(messages.At(i)));
  }
  return out;
}

}  // namespace latte
