#include "src/chat/check.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/base/strings.h"

namespace latte {
namespace {

// The parts of a message that a prompt should show.
std::vector<Unshown> PartsOf(std::span<const ChatMessage> messages) {
  std::vector<Unshown> parts;
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    if (message.content && !IsBlank(*message.content)) parts.push_back({i, MessagePart::kText});
    if (!message.tool_calls.empty()) parts.push_back({i, MessagePart::kCalls});
    if (message.name && !message.name->empty()) parts.push_back({i, MessagePart::kName});
  }
  return parts;
}

// "[=3.0=]": JSON, HTML and changes of case leave it unchanged, and no template searches for it.
constexpr std::string_view kMarkBegin = "[=";
std::string Mark(const Unshown& part) {
  return fmt::format("{}{}.{}=]", kMarkBegin, part.message, static_cast<int>(part.what));
}

// Marks the arguments of a call too, because some formats write only its id and its arguments.
void MarkCall(const std::string& mark, ToolCall* call) {
  call->name += mark;
  const size_t open = call->arguments.find_first_not_of(kSpaces);
  if (open == std::string::npos || call->arguments[open] != '{') return;
  const size_t next = call->arguments.find_first_not_of(kSpaces, open + 1);
  const bool empty = next != std::string::npos && call->arguments[next] == '}';
  call->arguments.insert(open + 1, fmt::format("\"{}\": 0{}", mark, empty ? "" : ", "));
}

std::vector<ChatMessage> Marked(std::span<const ChatMessage> messages,
                                std::span<const Unshown> parts) {
  std::vector<ChatMessage> out(messages.begin(), messages.end());
  for (const Unshown& part : parts) {
    ChatMessage& message = out[part.message];
    const std::string mark = Mark(part);
    if (part.what == MessagePart::kText) *message.content += mark;
    if (part.what == MessagePart::kName) *message.name += mark;
    if (part.what == MessagePart::kCalls)
      for (ToolCall& call : message.tool_calls) MarkCall(mark, &call);
  }
  return out;
}

// One pass over the text, independent of the number of marks.
std::set<std::string> MarksIn(std::string_view text) {
  std::set<std::string> marks;
  for (size_t at = text.find(kMarkBegin); at != text.npos; at = text.find(kMarkBegin, at + 1)) {
    constexpr size_t kLongest = 32;
    const size_t end = text.substr(at, kLongest).find("=]", kMarkBegin.size());
    if (end != text.npos) marks.emplace(text.substr(at, end + 2));
  }
  return marks;
}

bool IsIn(const std::string& prompt, const ChatMessage& message, MessagePart what) {
  const auto has = [&](std::string_view text) { return prompt.find(text) != std::string::npos; };
  if (what == MessagePart::kText) return has(Trimmed(*message.content));
  if (what == MessagePart::kName) return has(*message.name);
  return std::all_of(message.tool_calls.begin(), message.tool_calls.end(),
                     [&](const ToolCall& call) { return has(call.name); });
}

}  // namespace

std::vector<Unshown> FindUnshown(const ChatRenderer& renderer,
                                 std::span<const ChatMessage> messages, const ChatOptions& options,
                                 std::span<const TextPiece> prompt) {
  std::vector<Unshown> parts = PartsOf(messages);
  const auto marked = renderer.Render(Marked(messages, parts), options);
  if (marked) {
    const std::set<std::string> marks = MarksIn(JoinPieces(*marked));
    std::erase_if(parts, [&](const Unshown& part) { return marks.contains(Mark(part)); });
  } else {
    const std::string text = JoinPieces(prompt);
    std::erase_if(
        parts, [&](const Unshown& part) { return IsIn(text, messages[part.message], part.what); });
  }
  return parts;
}

}  // namespace latte
