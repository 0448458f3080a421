#include "apps/chat/transcript.h"

#include <span>
#include <utility>

#include <fmt/format.h>

#include "src/base/file.h"
#include "src/base/files/output_file.h"
#include "src/base/json.h"
#include "src/base/json_out.h"

namespace latte {
namespace {

constexpr std::string_view kMark = "latte_chat";
constexpr int64_t kVersion = 1;
constexpr int64_t kMaxBytes = int64_t{256} << 20;

bool HoldsTranscript(std::string_view text) {
  return text.starts_with("{") && text.substr(0, 64).find(kMark) != std::string_view::npos;
}

constexpr FileKind kTranscript = {"a conversation that /save wrote", &HoldsTranscript};

Result<ChatMessage> ParseMessage(const Json& json) {
  ChatMessage message;
  LATTE_ASSIGN_OR_RETURN(message.role, json.GetString("role"));
  LATTE_ASSIGN_OR_RETURN(message.content, json.GetString("content"));
  if (const auto reasoning = json.Find("reasoning_content")) {
    LATTE_ASSIGN_OR_RETURN(message.reasoning, reasoning->AsString());
  }
  return message;
}

// The role that message i has, after `system` messages.
std::string_view RoleAt(size_t i, size_t system) {
  if (i < system) return "system";
  return (i - system) % 2 == 0 ? "user" : "assistant";
}

}  // namespace

std::string TranscriptText(const std::string& model, const std::vector<ChatMessage>& messages) {
  JsonOut list = JsonOut::array();
  for (const ChatMessage& message : messages) {
    JsonOut added = {{"role", message.role}, {"content", message.content.value_or("")}};
    if (message.reasoning) added["reasoning_content"] = *message.reasoning;
    list.push_back(std::move(added));
  }
  const JsonOut out = {{std::string(kMark), kVersion}, {"model", model}, {"messages", list}};
  return Dump(out, 2) + "\n";
}

Result<std::vector<ChatMessage>> ParseTranscript(std::string_view text, const std::string& where) {
  LATTE_ASSIGN_OR_RETURN(const Json json, Json::Parse(text, where));
  LATTE_ASSIGN_OR_RETURN(const int64_t version, json.GetInt(kMark));
  if (version != kVersion)
    return Corrupt(
        fmt::format("{}: expected version {} of '{}', found {}", where, kVersion, kMark, version));
  LATTE_ASSIGN_OR_RETURN(const Json list, json.Get("messages"));
  if (!list.is_array()) return Corrupt(list.path() + ": expected an array of messages");
  std::vector<ChatMessage> out;
  size_t system = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(ChatMessage message, ParseMessage(list.At(i)));
    if (i == 0 && message.role == "system") system = 1;
    if (message.role != RoleAt(i, system))
      return Corrupt(fmt::format("{}: expected a message of the role '{}', found '{}'",
                                 list.At(i).path(), RoleAt(i, system), message.role));
    out.push_back(std::move(message));
  }
  if ((out.size() - system) % 2 != 0)
    return Corrupt(fmt::format("{}: expected an answer after the last question", list.path()));
  return out;
}

Status SaveTranscript(const std::string& path, const std::string& model,
                      const std::vector<ChatMessage>& messages) {
  const std::string text = TranscriptText(model, messages);
  LATTE_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, kTranscript));
  LATTE_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span(text))));
  return file.Commit();
}

Result<std::vector<ChatMessage>> LoadTranscript(const std::string& path) {
  LATTE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxBytes));
  return ParseTranscript(text, path);
}

}  // namespace latte
