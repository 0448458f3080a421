#include "src/openai/anthropic/messages.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/jinja/json.h"
#include "src/openai/anthropic/call_id.h"
#include "src/openai/anthropic/members.h"

namespace latte {
namespace {

// A line that Claude Code adds to the system text, with a value that changes with every request. It
// says nothing to a model, and no prefix of a prompt would ever be found in the cache.
constexpr std::string_view kBilling = "x-anthropic-billing-header:";

Result<std::string> BlockType(const Json& block) {
  if (!block.is_object()) return InvalidArgument(block.path() + ": expected an object");
  return block.GetString("type");
}

tl::unexpected<Error> WrongBlock(const Json& block, std::string_view type, std::string_view role) {
  for (const std::string_view media : {"image", "document", "search_result", "container_upload"})
    if (type == media)
      return Unsupported(fmt::format(
          "{}: blocks of type '{}' are not supported; the model reads text", block.path(), type));
  return Unsupported(
      fmt::format("{}: blocks of type '{}' are not supported in {}", block.path(), type, role));
}

Result<std::string> BlockText(const Json& block) {
  LATTE_RETURN_IF_ERROR(CheckMembers(block, {"type", "text", "cache_control", "citations"}));
  return block.GetString("text");
}

// A string, or blocks of text, which are joined by newlines. `where`: for errors.
Result<std::string> PlainText(const Json& content, std::string_view where) {
  if (content.is_string()) return content.AsString();
  if (!content.is_array())
    return InvalidArgument(content.path() + ": expected a string or an array of blocks");
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    const Json block = content.At(i);
    LATTE_ASSIGN_OR_RETURN(const std::string type, BlockType(block));
    if (type != "text") return WrongBlock(block, type, where);
    LATTE_ASSIGN_OR_RETURN(const std::string part, BlockText(block));
    if (i > 0) text += '\n';
    text += part;
  }
  return text;
}

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
    if (type != "text") return WrongBlock(block, type, "system");
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

// The results in one message of the user, each with the number of the call that it answers.
struct ToolResult {
  size_t call = 0;
  ChatMessage message;
  std::string place;
};

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
    LATTE_ASSIGN_OR_RETURN(const Json content, message.Get("content"));
    if (role == "user") return ReadUser(content);
    if (role == "assistant") return ReadAssistant(content);
    if (role != "system")
      return InvalidArgument(fmt::format("{}: expected role user, assistant or system, found '{}'",
                                         message.path(), role));
    LATTE_ASSIGN_OR_RETURN(const std::string clear, message.GetStringOr("clear_at", "never"));
    if (clear == "next_user_message" && followed) return {};
    LATTE_ASSIGN_OR_RETURN(std::string text, PlainText(content, "messages of role system"));
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

  Status ReadUser(const Json& content) {
    if (content.is_string()) {
      LATTE_ASSIGN_OR_RETURN(const std::string text, content.AsString());
      AddUserText(text, content);
      return {};
    }
    if (!content.is_array() || content.size() == 0)
      return InvalidArgument(content.path() +
                             ": expected a string or an array of at least one block");
    std::vector<ToolResult> results;
    for (size_t i = 0; i < content.size(); ++i) {
      const Json block = content.At(i);
      LATTE_ASSIGN_OR_RETURN(const std::string type, BlockType(block));
      if (type == "tool_result") {
        LATTE_ASSIGN_OR_RETURN(results.emplace_back(), ResultOf(block));
        continue;
      }
      if (type != "text") return WrongBlock(block, type, "messages of role user");
      LATTE_ASSIGN_OR_RETURN(const std::string text, BlockText(block));
      AddResults(&results);
      AddUserText(text, block);
    }
    AddResults(&results);
    return {};
  }

  // Some formats have no ids of calls: results must come in the order of the calls.
  void AddResults(std::vector<ToolResult>* results) {
    std::stable_sort(results->begin(), results->end(),
                     [](const ToolResult& a, const ToolResult& b) { return a.call < b.call; });
    for (ToolResult& result : *results) {
      out_.messages.push_back(std::move(result.message));
      out_.places.push_back(std::move(result.place));
    }
    results->clear();
  }

  Result<ToolResult> ResultOf(const Json& block) const {
    LATTE_RETURN_IF_ERROR(
        CheckMembers(block, {"type", "tool_use_id", "content", "is_error", "cache_control"}));
    ToolResult out;
    out.place = block.path();
    out.message.role = "tool";
    LATTE_ASSIGN_OR_RETURN(const std::string id, block.GetString("tool_use_id"));
    out.message.tool_call_id = DecodeCallId(id);
    LATTE_ASSIGN_OR_RETURN(out.call, FindCall(*out.message.tool_call_id, block));
    std::string text;
    if (const auto content = block.Find("content")) {
      LATTE_ASSIGN_OR_RETURN(text, PlainText(*content, "results of tools"));
    }
    LATTE_ASSIGN_OR_RETURN(const bool failed, block.GetBoolOr("is_error", false));
    out.message.content = failed ? "Error: " + text : text;
    return out;
  }

  // The number of the call `id` in the last message of the assistant.
  Result<size_t> FindCall(const std::string& id, const Json& block) const {
    const auto last =
        std::find_if(out_.messages.rbegin(), out_.messages.rend(),
                     [](const ChatMessage& message) { return message.role == "assistant"; });
    if (last != out_.messages.rend())
      for (size_t i = 0; i < last->tool_calls.size(); ++i)
        if (last->tool_calls[i].id == id) return i;
    return InvalidArgument(fmt::format(
        "{}: the assistant's last message has no tool_use with the id '{}'", block.path(), id));
  }

  Status ReadAssistant(const Json& content) {
    if (!LastIs("assistant")) Add("assistant", "", content.path());
    if (content.is_string()) {
      LATTE_ASSIGN_OR_RETURN(const std::string text, content.AsString());
      *out_.messages.back().content += text;
      return {};
    }
    if (!content.is_array())
      return InvalidArgument(content.path() + ": expected a string or an array of blocks");
    for (size_t i = 0; i < content.size(); ++i)
      LATTE_RETURN_IF_ERROR(ReadAssistantBlock(content.At(i), &out_.messages.back()));
    return {};
  }

  // Blocks of text continue one another: an answer is one text, which calls and reasoning divide.
  Status ReadAssistantBlock(const Json& block, ChatMessage* message) {
    LATTE_ASSIGN_OR_RETURN(const std::string type, BlockType(block));
    if (type == "text") {
      LATTE_ASSIGN_OR_RETURN(const std::string text, BlockText(block));
      *message->content += text;
    } else if (type == "thinking") {
      LATTE_RETURN_IF_ERROR(CheckMembers(block, {"type", "thinking", "signature"}));
      LATTE_ASSIGN_OR_RETURN(const std::string text, block.GetString("thinking"));
      message->reasoning = message->reasoning.value_or("") + text;
    } else if (type == "redacted_thinking") {
      out_.notes.emplace_back(
          "messages: redacted_thinking is left out: only Anthropic can read it");
    } else if (type == "tool_use") {
      LATTE_ASSIGN_OR_RETURN(message->tool_calls.emplace_back(), CallOf(block));
    } else {
      return WrongBlock(block, type, "messages of role assistant");
    }
    return {};
  }

  AnthropicConversation out_;
};

bool IsUser(const Json& message) {
  const auto role = message.Find("role");
  return role && role->is_string() && role->AsString() == "user";
}

}  // namespace

Result<AnthropicConversation> ParseAnthropicMessages(const std::optional<Json>& system,
                                                     const Json& messages) {
  if (!messages.is_array() || messages.size() == 0)
    return InvalidArgument(messages.path() + ": expected an array of at least one message");
  BlockReader reader;
  if (system) LATTE_RETURN_IF_ERROR(reader.ReadSystem(*system));
  size_t last_user = messages.size();
  while (last_user > 0 && !IsUser(messages.At(last_user - 1))) --last_user;
  for (size_t i = 0; i < messages.size(); ++i)
    LATTE_RETURN_IF_ERROR(reader.Read(messages.At(i), i + 1 < last_user));
  return reader.Take();
}

}  // namespace latte
