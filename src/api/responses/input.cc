#include "src/api/responses/input.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "src/api/common/conversation.h"
#include "src/api/common/history/placeholder.h"
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

// The parts that a text may have. The sender of a new question can send another one; all else stays
// in the conversation.
enum class ItemParts : uint8_t { kGivenParts, kAnyPart };

// The text of a part that is one of `types`.
Result<std::string> ItemPartText(const Json& part, std::initializer_list<std::string_view> types,
                                 ItemParts allowed) {
  if (!part.is_object()) return InvalidArgument(part.path() + ": expected an object");
  LATTE_ASSIGN_OR_RETURN(const std::string type, part.GetString("type"));
  if (!Has(types, type) && allowed == ItemParts::kAnyPart) return Placeholder(type, part);
  if (!Has(types, type))
    return Unsupported(fmt::format("{}: parts of type '{}' are not supported here; expected {}",
                                   part.path(), type, fmt::join(types, ", ")));
  const std::string_view key = type == "refusal" ? "refusal" : "text";
  LATTE_RETURN_IF_ERROR(CheckItemMembers(part, {"type", key}, kSilentOfParts));
  return part.GetString(key);
}

// A string, or parts joined by newlines.
Result<std::string> ItemText(const Json& content, std::initializer_list<std::string_view> types,
                             ItemParts allowed = ItemParts::kGivenParts) {
  if (content.is_string()) return content.AsString();
  if (!content.is_array())
    return InvalidArgument(content.path() + ": expected a string or an array of parts");
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(const std::string part, ItemPartText(content.At(i), types, allowed));
    if (i > 0) text += '\n';
    text += part;
  }
  return text;
}

// Calls of tools that OpenAI's models know by heart. The client runs them, and sends the results.
struct KnownCall {
  std::string_view type;
  std::string_view name;
  std::string_view arguments;  // the member with what is to be done
};
constexpr auto kKnownCalls =
    std::to_array<KnownCall>({{"local_shell_call", "local_shell", "action"},
                              {"shell_call", "shell", "action"},
                              {"apply_patch_call", "apply_patch", "operation"},
                              {"computer_call", "computer", "action"},
                              {"tool_search_call", "tool_search", "arguments"}});
constexpr auto kKnownOutputs = std::to_array<std::string_view>(
    {"local_shell_call_output", "shell_call_output", "apply_patch_call_output",
     "computer_call_output", "tool_search_output"});

// The service did these itself: a text takes their place.
constexpr auto kOfService =
    std::to_array<std::string_view>({"web_search_call", "file_search_call", "image_generation_call",
                                     "code_interpreter_call", "mcp_call", "mcp_approval_request"});

// Says nothing to the model.
constexpr auto kSilentItems =
    std::to_array<std::string_view>({"mcp_list_tools", "mcp_approval_response", "ghost_snapshot"});

// A conversation that the service has shortened, and only the service can read.
constexpr auto kCompacted =
    std::to_array<std::string_view>({"compaction", "compaction_summary", "context_compaction"});

std::string ItemType(const Json& item) {
  return item.is_object() ? item.GetStringOr("type", "message").value_or("") : "";
}

// The user's message that nothing has answered yet; the number of items if there is none.
size_t NewestQuestion(const Json& input) {
  for (size_t i = input.size(); i-- > 0;) {
    const Json item = input.At(i);
    const std::string type = ItemType(item);
    if (type == "additional_tools") continue;
    const std::string role = type == "message" ? item.GetStringOr("role", "").value_or("") : "";
    if (role == "user") return i;
    if (role != "system" && role != "developer") break;
  }
  return input.size();
}

class ItemReader {
 public:
  ItemReader(ResponsesToolReader* tools, ResponsesInput* out) : tools_(tools), out_(out) {}

  // `is_new`: the user's message that nothing has answered yet.
  Status Read(const Json& item, bool is_new) {
    if (!item.is_object()) return InvalidArgument(item.path() + ": expected an object");
    LATTE_ASSIGN_OR_RETURN(const std::string type, item.GetStringOr("type", "message"));
    const bool joins = std::exchange(after_placeholder_, false);
    if (type == "message") return ReadMessage(item, is_new, joins);
    if (type == "reasoning") return ReadReasoning(item, joins);
    if (type == "function_call") return ReadCall(item, "arguments");
    if (type == "custom_tool_call") return ReadCall(item, "input");
    if (type == "function_call_output" || type == "custom_tool_call_output")
      return ReadOutput(item);
    if (type == "additional_tools") return ReadTools(item);
    if (type == "item_reference")
      return Unsupported(item.path() +
                         ": this server stores no items to refer to; send the item itself, as "
                         "clients do with \"store\": false");
    return ReadForeign(item, type);
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

  // The same for reasoning and text, which begin an answer. `joins`: unless it made calls.
  ChatMessage& SpokenAnswer(const Json& item, bool joins) {
    if (joins)
      return Answer(item, [](const ChatMessage& last) { return !last.tool_calls.empty(); });
    return Answer(item, [](const ChatMessage& last) {
      return last.content.has_value() || !last.tool_calls.empty();
    });
  }

  static void AddText(const std::string& text, std::optional<std::string>* to) {
    if (to->has_value())
      **to += '\n';
    else
      to->emplace();
    **to += text;
  }

  Status ReadMessage(const Json& item, bool is_new, bool joins) {
    LATTE_RETURN_IF_ERROR(CheckItemMembers(item, {"type", "role", "content"}, kSilentOfItems));
    LATTE_ASSIGN_OR_RETURN(const std::string role, item.GetString("role"));
    if (role == "assistant") {
      std::string text;
      if (const auto content = item.Find("content")) {
        LATTE_ASSIGN_OR_RETURN(text,
                               ItemText(*content, {"output_text", "refusal", "input_text", "text"},
                                        ItemParts::kAnyPart));
      }
      AddText(text, &SpokenAnswer(item, joins).content);
      return {};
    }
    LATTE_ASSIGN_OR_RETURN(const Json content, item.Get("content"));
    if (role != "user" && role != "system" && role != "developer")
      return InvalidArgument(fmt::format(
          "{}: expected role user, assistant, system or developer, found '{}'", item.path(), role));
    const bool old = role == "user" && !is_new;
    LATTE_ASSIGN_OR_RETURN(std::string text,
                           ItemText(content, {"input_text", "text"},
                                    old ? ItemParts::kAnyPart : ItemParts::kGivenParts));
    Add(item, role).content = std::move(text);
    return {};
  }

  // Items of other services, which a resumed conversation keeps.
  Status ReadForeign(const Json& item, const std::string& type) {
    const auto* const known =
        std::find_if(kKnownCalls.begin(), kKnownCalls.end(),
                     [&](const KnownCall& call) { return call.type == type; });
    const bool has_id = item.Find("call_id").has_value();
    if (known != kKnownCalls.end() && has_id) return ReadKnownCall(item, *known);
    if (Has(kKnownOutputs, type) && has_id) return ReadKnownOutput(item, type);
    if (Has(kSilentItems, type)) {
      out_->notes.push_back(
          fmt::format("input: items of type '{}' say nothing to the model", type));
      return {};
    }
    if (Has(kCompacted, type)) {
      Add(item, "user").content =
          "(the conversation before was compacted by another server and cannot be read here)";
      return {};
    }
    if (known == kKnownCalls.end() && !Has(kKnownOutputs, type) && !Has(kOfService, type))
      return Unsupported(
          fmt::format("{}: items of type '{}' are not supported; leave it out", item.path(), type));
    AddText(Placeholder(type, item), &SpokenAnswer(item, true).content);
    after_placeholder_ = true;
    return {};
  }

  Status ReadKnownCall(const Json& item, const KnownCall& known) {
    ToolCall call{.name = std::string(known.name), .arguments = "{}"};
    LATTE_ASSIGN_OR_RETURN(call.id, item.GetString("call_id"));
    if (const auto arguments = item.Find(known.arguments)) {
      call.arguments = arguments->Text();
      if (!arguments->is_object())  // many formats need an object
        call.arguments = fmt::format(R"({{"{}": {}}})", known.arguments, call.arguments);
    }
    Answer(item, [](const ChatMessage&) { return false; }).tool_calls.push_back(std::move(call));
    return {};
  }

  Status ReadKnownOutput(const Json& item, const std::string& type) {
    LATTE_ASSIGN_OR_RETURN(std::string id, item.GetString("call_id"));
    std::string text = ReadableText(item);
    ChatMessage& message = Add(item, "tool");
    message.tool_call_id = std::move(id);
    message.content = text.empty() ? Placeholder(type, item) : std::move(text);
    return {};
  }

  // The reasoning itself, which only some servers give. Summaries are no reasoning.
  Status ReadReasoning(const Json& item, bool joins) {
    LATTE_RETURN_IF_ERROR(CheckItemMembers(
        item, {"type", "summary", "content", "encrypted_content"}, kSilentOfItems));
    std::string text;
    if (const auto content = item.Find("content"); content && content->size() > 0) {
      LATTE_ASSIGN_OR_RETURN(text,
                             ItemText(*content, {"reasoning_text", "text"}, ItemParts::kAnyPart));
    } else {
      LATTE_ASSIGN_OR_RETURN(text, item.GetStringOr("encrypted_content", ""));
      if (!text.starts_with(kPlainReasoning)) {
        out_->notes.emplace_back("input: reasoning that only another server can read");
        after_placeholder_ = joins;
        return {};
      }
      text.erase(0, kPlainReasoning.size());
    }
    AddText(text, &SpokenAnswer(item, joins).reasoning);
    after_placeholder_ = joins;
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

  // A text, parts, or the object that older clients send.
  static Result<std::string> OutputText(const Json& output) {
    if (output.is_object()) return output.Text();
    return ItemText(output, {"input_text", "output_text", "text"}, ItemParts::kAnyPart);
  }

  Status ReadOutput(const Json& item) {
    LATTE_RETURN_IF_ERROR(
        CheckItemMembers(item, {"type", "call_id", "output", "name", "namespace"}, kSilentOfItems));
    LATTE_ASSIGN_OR_RETURN(std::string id, item.GetString("call_id"));
    std::string text;
    if (const auto output = item.Find("output")) {
      LATTE_ASSIGN_OR_RETURN(text, OutputText(*output));
    }
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
  bool after_placeholder_ = false;  // the answer goes on behind something that the service did
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
  if (input.size() > 0) LATTE_RETURN_IF_ERROR(CheckMessageList(input));
  ItemReader reader(tools, out);
  const size_t question = NewestQuestion(input);
  for (size_t i = 0; i < input.size(); ++i)
    LATTE_RETURN_IF_ERROR(reader.Read(input.At(i), i == question));
  // An answer that ended inside its reasoning.
  for (ChatMessage& message : out->messages)
    if (!message.content && message.tool_calls.empty()) message.content = "";
  return {};
}

}  // namespace latte
