#include "src/openai/responses/input.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "src/base/json_out.h"

namespace latte {
namespace {

// Members that answers and clients put into items and that say nothing to the model.
constexpr auto kSilentOfItems = std::to_array<std::string_view>(
    {"id", "status", "phase", "end_turn", "metadata", "created_by", "caller", "async", "agent",
     "internal_chat_message_metadata_passthrough"});
constexpr auto kSilentOfParts =
    std::to_array<std::string_view>({"annotations", "logprobs", "prompt_cache_breakpoint"});

template <class List>
bool Has(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

template <class List>
Status CheckItemMembers(const Json& object, std::initializer_list<std::string_view> names,
                        const List& silent) {
  return object.ForEachMember([&](const std::string& name, const Json& value) -> Status {
    if (!object.Find(name) || Has(names, name) || Has(silent, name)) return {};
    return InvalidArgument(value.path() + ": unknown field; leave it out");
  });
}

// The text of a part that is one of `types`.
Result<std::string> ItemPartText(const Json& part, std::initializer_list<std::string_view> types) {
  if (!part.is_object()) return InvalidArgument(part.path() + ": expected an object");
  LATTE_ASSIGN_OR_RETURN(const std::string type, part.GetString("type"));
  if (!Has(types, type))
    return Unsupported(fmt::format("{}: parts of type '{}' are not supported here; expected {}",
                                   part.path(), type, fmt::join(types, ", ")));
  const std::string_view key = type == "refusal" ? "refusal" : "text";
  LATTE_RETURN_IF_ERROR(CheckItemMembers(part, {"type", key}, kSilentOfParts));
  return part.GetString(key);
}

// A string, or parts joined by newlines.
Result<std::string> ItemText(const Json& content, std::initializer_list<std::string_view> types) {
  if (content.is_string()) return content.AsString();
  if (!content.is_array())
    return InvalidArgument(content.path() + ": expected a string or an array of parts");
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(const std::string part, ItemPartText(content.At(i), types));
    if (i > 0) text += '\n';
    text += part;
  }
  return text;
}

class ItemReader {
 public:
  ItemReader(ResponsesToolReader* tools, ResponsesInput* out) : tools_(tools), out_(out) {}

  Status Read(const Json& item) {
    if (!item.is_object()) return InvalidArgument(item.path() + ": expected an object");
    LATTE_ASSIGN_OR_RETURN(const std::string type, item.GetStringOr("type", "message"));
    if (type == "message") return ReadMessage(item);
    if (type == "reasoning") return ReadReasoning(item);
    if (type == "function_call") return ReadCall(item, "arguments");
    if (type == "custom_tool_call") return ReadCall(item, "input");
    if (type == "function_call_output" || type == "custom_tool_call_output")
      return ReadOutput(item);
    if (type == "additional_tools") return ReadTools(item);
    if (type == "item_reference")
      return Unsupported(item.path() +
                         ": this server stores no items to refer to; send the item itself");
    return Unsupported(
        fmt::format("{}: items of type '{}' are not supported; leave it out", item.path(), type));
  }

 private:
  ChatMessage& Add(const Json& item, std::string role) {
    out_->places.push_back(item.path());
    return out_->messages.emplace_back(ChatMessage{.role = std::move(role)});
  }

  // The assistant's message that an item of an answer belongs to; a new one if `ends`.
  ChatMessage& Answer(const Json& item, bool (*ends)(const ChatMessage& last)) {
    if (!out_->messages.empty() && out_->messages.back().role == "assistant" &&
        !ends(out_->messages.back()))
      return out_->messages.back();
    return Add(item, "assistant");
  }

  Status ReadMessage(const Json& item) {
    LATTE_RETURN_IF_ERROR(CheckItemMembers(item, {"type", "role", "content"}, kSilentOfItems));
    LATTE_ASSIGN_OR_RETURN(const std::string role, item.GetString("role"));
    LATTE_ASSIGN_OR_RETURN(const Json content, item.Get("content"));
    if (role == "assistant") {
      LATTE_ASSIGN_OR_RETURN(std::string text,
                             ItemText(content, {"output_text", "refusal", "input_text", "text"}));
      Answer(item, [](const ChatMessage& last) {
        return last.content.has_value() || !last.tool_calls.empty();
      }).content = std::move(text);
      return {};
    }
    if (role != "user" && role != "system" && role != "developer")
      return InvalidArgument(fmt::format(
          "{}: expected role user, assistant, system or developer, found '{}'", item.path(), role));
    LATTE_ASSIGN_OR_RETURN(std::string text, ItemText(content, {"input_text", "text"}));
    Add(item, role).content = std::move(text);
    return {};
  }

  // The reasoning itself, which only some servers give. Summaries are no reasoning.
  Status ReadReasoning(const Json& item) {
    LATTE_RETURN_IF_ERROR(CheckItemMembers(
        item, {"type", "summary", "content", "encrypted_content"}, kSilentOfItems));
    std::string text;
    if (const auto content = item.Find("content"); content && content->size() > 0) {
      LATTE_ASSIGN_OR_RETURN(text, ItemText(*content, {"reasoning_text", "text"}));
    } else {
      LATTE_ASSIGN_OR_RETURN(text, item.GetStringOr("encrypted_content", ""));
      if (!text.starts_with(kPlainReasoning)) {
        out_->notes.emplace_back("input: reasoning that only another server can read");
        return {};
      }
      text.erase(0, kPlainReasoning.size());
    }
    ChatMessage& answer = Answer(item, [](const ChatMessage& last) {
      return last.content.has_value() || !last.tool_calls.empty();
    });
    answer.reasoning = answer.reasoning ? *answer.reasoning + "\n" + text : text;
    return {};
  }

  Status ReadCall(const Json& item, std::string_view key) {
    LATTE_RETURN_IF_ERROR(
        CheckItemMembers(item, {"type", "call_id", "name", "namespace", key}, kSilentOfItems));
    ToolCall call;
    LATTE_ASSIGN_OR_RETURN(call.id, item.GetString("call_id"));
    LATTE_ASSIGN_OR_RETURN(const std::string name, item.GetString("name"));
    LATTE_ASSIGN_OR_RETURN(const std::string name_space, item.GetStringOr("namespace", ""));
    LATTE_ASSIGN_OR_RETURN(call.arguments, item.GetString(key));
    call.name = FunctionName(name_space, name);
    if (key == "input") call.arguments = Dump(JsonOut{{"input", call.arguments}});
    if (call.arguments.empty()) call.arguments = "{}";  // a call without arguments
    Answer(item, [](const ChatMessage&) { return false; }).tool_calls.push_back(std::move(call));
    return {};
  }

  Status ReadOutput(const Json& item) {
    LATTE_RETURN_IF_ERROR(
        CheckItemMembers(item, {"type", "call_id", "output", "name", "namespace"}, kSilentOfItems));
    LATTE_ASSIGN_OR_RETURN(std::string id, item.GetString("call_id"));
    LATTE_ASSIGN_OR_RETURN(const Json output, item.Get("output"));
    LATTE_ASSIGN_OR_RETURN(std::string text,
                           ItemText(output, {"input_text", "output_text", "text"}));
    ChatMessage& message = Add(item, "tool");
    message.tool_call_id = std::move(id);
    message.content = std::move(text);
    return {};
  }

  Status ReadTools(const Json& item) {
    LATTE_RETURN_IF_ERROR(CheckItemMembers(item, {"type", "role", "tools"}, kSilentOfItems));
    LATTE_ASSIGN_OR_RETURN(const Json list, item.Get("tools"));
    return tools_->Add(list);
  }

  ResponsesToolReader* tools_;
  ResponsesInput* out_;
};

}  // namespace

Status ReadResponsesInput(const Json& input, ResponsesToolReader* tools, ResponsesInput* out) {
  if (input.is_string()) {
    LATTE_ASSIGN_OR_RETURN(std::string text, input.AsString());
    out->messages.push_back({.role = "user", .content = std::move(text)});
    out->places.push_back(input.path());
    return {};
  }
  if (!input.is_array())
    return InvalidArgument(input.path() + ": expected a string or an array of items");
  ItemReader reader(tools, out);
  for (size_t i = 0; i < input.size(); ++i) LATTE_RETURN_IF_ERROR(reader.Read(input.At(i)));
  // An answer that ended inside its reasoning.
  for (ChatMessage& message : out->messages)
    if (!message.content && message.tool_calls.empty()) message.content = "";
  return {};
}

}  // namespace latte
