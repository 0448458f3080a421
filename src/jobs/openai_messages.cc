#include "src/jobs/openai_messages.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace latte {
namespace {

constexpr auto kRoles =
    std::to_array<std::string_view>({"system", "developer", "user", "assistant", "tool"});

// Errors: kInvalidArgument for a member of `object` that is not in `names`.
Status CheckMembers(const Json& object, std::initializer_list<std::string_view> names) {
  if (!object.is_object()) return InvalidArgument(object.path() + ": expected an object");
  return object.ForEachMember([&](const std::string& name, const Json& value) -> Status {
    if (std::find(names.begin(), names.end(), name) != names.end()) return {};
    return InvalidArgument(value.path() + ": unknown field; leave it out");
  });
}

Result<std::string> PartText(const Json& part) {
  LATTE_RETURN_IF_ERROR(CheckMembers(part, {"type", "text"}));
  LATTE_ASSIGN_OR_RETURN(const std::string type, part.GetString("type"));
  if (type != "text")
    return Unsupported(
        fmt::format("{}: expected parts of type text, found '{}'", part.path(), type));
  return part.GetString("text");
}

Result<std::string> ContentText(const Json& content) {
  if (content.is_string()) return content.AsString();
  if (!content.is_array())
    return InvalidArgument(content.path() + ": expected a string or an array of parts");
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(const std::string part, PartText(content.At(i)));
    if (i > 0) text += '\n';
    text += part;
  }
  return text;
}

Result<ToolCall> ParseCall(const Json& call) {
  LATTE_RETURN_IF_ERROR(CheckMembers(call, {"id", "type", "function"}));
  LATTE_ASSIGN_OR_RETURN(const Json function, call.Get("function"));
  LATTE_RETURN_IF_ERROR(CheckMembers(function, {"name", "arguments"}));
  ToolCall out;
  LATTE_ASSIGN_OR_RETURN(out.id, call.GetStringOr("id", ""));
  LATTE_ASSIGN_OR_RETURN(out.name, function.GetString("name"));
  LATTE_ASSIGN_OR_RETURN(out.arguments, function.GetString("arguments"));
  return out;
}

Status ReadText(const Json& message, std::string_view key, std::optional<std::string>* out) {
  if (const auto value = message.Find(key)) {
    LATTE_ASSIGN_OR_RETURN(*out, value->AsString());
  }
  return {};
}

Status ReadCalls(const Json& message, ChatMessage* out) {
  const auto calls = message.Find("tool_calls");
  if (!calls) return {};
  if (!calls->is_array()) return InvalidArgument(calls->path() + ": expected an array");
  for (size_t i = 0; i < calls->size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(out->tool_calls.emplace_back(), ParseCall(calls->At(i)));
  }
  return {};
}

Result<ChatMessage> ParseMessage(const Json& message) {
  LATTE_RETURN_IF_ERROR(CheckMembers(message, {"role", "content", "name", "reasoning_content",
                                               "reasoning", "tool_calls", "tool_call_id"}));
  ChatMessage out;
  LATTE_ASSIGN_OR_RETURN(out.role, message.GetString("role"));
  if (std::find(kRoles.begin(), kRoles.end(), out.role) == kRoles.end())
    return InvalidArgument(fmt::format("{}: expected role {}, found '{}'", message.path(),
                                       fmt::join(kRoles, ", "), out.role));
  LATTE_RETURN_IF_ERROR(ReadCalls(message, &out));
  if (const auto content = message.Find("content")) {
    LATTE_ASSIGN_OR_RETURN(out.content, ContentText(*content));
  } else if (out.tool_calls.empty()) {
    return InvalidArgument(message.path() + ": key 'content' is missing");
  }
  LATTE_RETURN_IF_ERROR(ReadText(message, "reasoning", &out.reasoning));
  LATTE_RETURN_IF_ERROR(ReadText(message, "reasoning_content", &out.reasoning));
  LATTE_RETURN_IF_ERROR(ReadText(message, "tool_call_id", &out.tool_call_id));
  LATTE_RETURN_IF_ERROR(ReadText(message, "name", &out.name));
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
