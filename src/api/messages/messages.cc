#include "src/api/messages/messages.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/api/common/conversation.h"
#include "src/api/common/history/placeholder.h"
#include "src/api/messages/call_id.h"
#include "src/api/messages/members.h"
#include "src/jinja/json.h"

namespace latte {
namespace {

// A line that Claude Code adds to the system text, with a value that changes with every request. It
// says nothing to a model, and no prefix of a prompt would ever be found in the cache.
constexpr std::string_view kBilling = "x-anthropic-billing-header:";

Result<std::string> BlockType(const Json& block) {
  if (!block.is_object()) return InvalidArgument(block.path() + ": expected an object");
  return block.GetString("type");
}

Result<std::string> BlockText(const Json& block) {
  LATTE_RETURN_IF_ERROR(CheckMembers(block, {"type", "text", "cache_control", "citations"}));
  return block.GetString("text");
}

// A string, or the texts of blocks, joined by newlines. text_of(block, type): the text of a block.
template <class F>
Result<std::string> JoinedText(const Json& content, const F& text_of) {
  if (content.is_string()) return content.AsString();
  if (!content.is_array())
    return InvalidArgument(content.path() + ": expected a string or an array of blocks");
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    const Json block = content.At(i);
    LATTE_ASSIGN_OR_RETURN(const std::string type, BlockType(block));
    LATTE_ASSIGN_OR_RETURN(const std::string part, text_of(block, type));
    if (i > 0) text += '\n';
    text += part;
  }
  return text;
}

// The same with blocks of text only. `where`: for errors.
Result<std::string> PlainText(const Json& content, std::string_view where) {
  return JoinedText(content, [where](const Json& block, std::string_view type) {
    return type == "text" ? BlockText(block) : NoSuchPart(block, type, where);
  });
}

// A text, or what stands in the prompt for a block that is none.
Result<std::string> ShownText(const Json& block, std::string_view type) {
  if (type == "text") return BlockText(block);
  const auto source = block.Find("source");
  const std::string kind = source ? source->GetStringOr("type", "").value_or("") : "";
  const bool is_text = type == "document" && (kind == "text" || kind == "content");
  if (!is_text && type != "search_result") return Placeholder(type, block);
  std::string text = ReadableText(block);
  if (kind == "text") {
    LATTE_ASSIGN_OR_RETURN(const std::string data, source->GetString("data"));
    text += (text.empty() ? "" : "\n") + data;
  }
  return text;
}

// The content of a result: whatever a tool gave stays in the conversation.
Result<std::string> ResultText(const Json& content) { return JoinedText(content, ShownText); }

std::string WithoutBilling(std::string text) {
  if (text.starts_with(kBilling)) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
  return text;
}

// As PlainText, without what is only for Anthropic's accounting.
Result<std::string> SystemText(const Json& system) {
  if (!system.is_array()) return PlainText(system, "system").map(WithoutBilling);
  std::string text;
  for (size_t i = 0; i < system.size(); ++i) {
    const Json block = system.At(i);
    LATTE_ASSIGN_OR_RETURN(const std::string type, BlockType(block));
    if (type != "text") return NoSuchPart(block, type, " in system");
    LATTE_ASSIGN_OR_RETURN(std::string whole, BlockText(block));
    const std::string part = WithoutBilling(std::move(whole));
    if (!text.empty() && !part.empty()) text += '\n';
    text += part;
  }
  return text;
}

// The JSON of a call as models write it, with spaces after colons and commas: the prompt then often
// begins as the last one and its answer did, and the prefix is found in the cache.
Result<std::string> Arguments(const Json& input) {
  if (!input.is_object()) return InvalidArgument(input.path() + ": expected an object");
  LATTE_ASSIGN_OR_RETURN(const jinja::Value value, jinja::ParseJson(input.Text(), input.path()));
  jinja::Budget budget{jinja::Limits()};
  return jinja::DumpJson(value, {}, &budget);
}

Result<ToolCall> CallOf(const Json& block) {
  LATTE_RETURN_IF_ERROR(
      CheckMembers(block, {"type", "id", "name", "input", "cache_control", "caller"}));
  ToolCall call;
  LATTE_ASSIGN_OR_RETURN(const std::string id, block.GetString("id"));
  call.id = DecodeCallId(id);
  LATTE_ASSIGN_OR_RETURN(call.name, block.GetString("name"));
  LATTE_ASSIGN_OR_RETURN(const Json input, block.Get("input"));
  LATTE_ASSIGN_OR_RETURN(call.arguments, Arguments(input));
  return call;
}

// Blocks of other kinds that clients keep in messages of the user. Clients join a message that was
// refused to the next one, so that refusing these would end the conversation.
bool StaysInHistory(std::string_view type) {
  return IsMedia(type) || type == "search_result" || type == "tool_reference" ||
         type.ends_with("_tool_result");
}

class BlockReader {
 public:
  Status ReadSystem(const Json& system) {
    LATTE_ASSIGN_OR_RETURN(std::string text, SystemText(system));
    if (!text.empty()) Add("system", std::move(text), system.path());
    return {};
  }

  // `followed`: by a message of role user.
  Status Read(const Json& message, bool followed) {
    LATTE_RETURN_IF_ERROR(CheckMembers(message, {"role", "content", "clear_at"}));
    LATTE_ASSIGN_OR_RETURN(const std::string role, message.GetString("role"));
    if (role == "assistant") return ReadAssistant(message);
    LATTE_ASSIGN_OR_RETURN(const Json content, message.Get("content"));
    if (role == "user") return ReadUser(content, followed);
    if (role != "system")
      return InvalidArgument(fmt::format("{}: expected role user, assistant or system, found '{}'",
                                         message.path(), role));
    LATTE_ASSIGN_OR_RETURN(const std::string clear, message.GetStringOr("clear_at", "never"));
    if (clear == "next_user_message" && followed) return {};
    LATTE_ASSIGN_OR_RETURN(std::string text, PlainText(content, " in messages of role system"));
    Add("system", std::move(text), content.path());
    return {};
  }

  AnthropicConversation Take() { return std::move(out_); }

 private:
  ChatMessage& Add(std::string role, std::string content, std::string place) {
    ChatMessage& message = out_.messages.emplace_back();
    message.role = std::move(role);
    message.content = std::move(content);
    out_.places.push_back(std::move(place));
    return message;
  }

  bool LastIs(std::string_view role) const {
    return !out_.messages.empty() && out_.messages.back().role == role;
  }

  void AddUserText(const std::string& text, const Json& from) {
    if (!LastIs("user")) {
      Add("user", text, from.path());
      return;
    }
    *out_.messages.back().content += '\n';
    *out_.messages.back().content += text;
  }

  // The results come first: they answer the message before.
  Status ReadUser(const Json& content, bool followed) {
    if (content.is_string()) {
      LATTE_ASSIGN_OR_RETURN(const std::string text, content.AsString());
      AddUserText(text, content);
      return {};
    }
    if (!content.is_array() || content.size() == 0)
      return InvalidArgument(content.path() +
                             ": expected a string or an array of at least one block");
    std::vector<std::pair<std::string, Json>> texts;
    for (size_t i = 0; i < content.size(); ++i) {
      const Json block = content.At(i);
      LATTE_ASSIGN_OR_RETURN(const std::string type, BlockType(block));
      if (type == "tool_result") {
        LATTE_RETURN_IF_ERROR(AddResult(block));
        continue;
      }
      if (type != "text" && !followed && !StaysInHistory(type))
        return NoSuchPart(block, type, " in messages of role user");
      LATTE_ASSIGN_OR_RETURN(std::string text, ShownText(block, type));
      texts.emplace_back(std::move(text), block);
    }
    for (const auto& [text, block] : texts) AddUserText(text, block);
    return {};
  }

  Status AddResult(const Json& block) {
    LATTE_RETURN_IF_ERROR(
        CheckMembers(block, {"type", "tool_use_id", "content", "is_error", "cache_control"}));
    LATTE_ASSIGN_OR_RETURN(const std::string id, block.GetString("tool_use_id"));
    std::string text;
    if (const auto content = block.Find("content")) {
      LATTE_ASSIGN_OR_RETURN(text, ResultText(*content));
    }
    LATTE_ASSIGN_OR_RETURN(const bool failed, block.GetBoolOr("is_error", false));
    Add("tool", failed ? "Error: " + text : text, block.path()).tool_call_id = DecodeCallId(id);
    return {};
  }

  Status ReadAssistant(const Json& message) {
    const auto content = message.Find("content");
    if (!LastIs("assistant")) Add("assistant", "", content ? content->path() : message.path());
    if (!content) return {};  // null
    ends_with_placeholder_ = false;
    if (content->is_string()) {
      LATTE_ASSIGN_OR_RETURN(const std::string text, content->AsString());
      *out_.messages.back().content += text;
      return {};
    }
    if (!content->is_array())
      return InvalidArgument(content->path() + ": expected a string or an array of blocks");
    for (size_t i = 0; i < content->size(); ++i)
      LATTE_RETURN_IF_ERROR(ReadAssistantBlock(content->At(i), &out_.messages.back()));
    return {};
  }

  // Blocks of text continue one another: an answer is one text, which calls and reasoning divide.
  Status ReadAssistantBlock(const Json& block, ChatMessage* message) {
    LATTE_ASSIGN_OR_RETURN(const std::string type, BlockType(block));
    if (type == "text") {
      LATTE_ASSIGN_OR_RETURN(const std::string text, BlockText(block));
      *message->content += ends_with_placeholder_ ? "\n" + text : text;
      ends_with_placeholder_ = false;
    } else if (type == "thinking") {
      LATTE_RETURN_IF_ERROR(CheckMembers(block, {"type", "thinking", "signature"}));
      LATTE_ASSIGN_OR_RETURN(const std::string text, block.GetString("thinking"));
      if (!message->reasoning) message->reasoning = "";
      *message->reasoning += text;
    } else if (type == "redacted_thinking") {
      out_.notes.emplace_back(
          "messages: redacted_thinking is left out: only Anthropic can read it");
    } else if (type == "tool_use") {
      LATTE_ASSIGN_OR_RETURN(message->tool_calls.emplace_back(), CallOf(block));
    } else {  // what the service did itself: searches, code, tools of its own
      LATTE_ASSIGN_OR_RETURN(const std::string text, ShownText(block, type));
      *message->content += (message->content->empty() ? "" : "\n") + text;
      ends_with_placeholder_ = true;
    }
    return {};
  }

  bool ends_with_placeholder_ = false;  // the assistant's last block is not its own words
  AnthropicConversation out_;
};

bool IsUser(const Json& message) {
  const auto role = message.Find("role");
  return role && role->is_string() && role->AsString() == "user";
}

}  // namespace

Result<AnthropicConversation> ParseAnthropicMessages(const std::optional<Json>& system,
                                                     const Json& messages) {
  LATTE_RETURN_IF_ERROR(CheckMessageList(messages));
  BlockReader reader;
  if (system) LATTE_RETURN_IF_ERROR(reader.ReadSystem(*system));
  size_t last_user = messages.size();
  while (last_user > 0 && !IsUser(messages.At(last_user - 1))) --last_user;
  for (size_t i = 0; i < messages.size(); ++i)
    LATTE_RETURN_IF_ERROR(reader.Read(messages.At(i), i + 1 < last_user));
  return reader.Take();
}

}  // namespace latte
