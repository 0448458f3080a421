#include "src/session/conversation.h"

#include <utility>

namespace latte {

std::optional<std::string> SystemText(const std::vector<ChatMessage>& messages) {
  if (messages.empty() || messages.front().role != "system") return std::nullopt;
  return messages.front().content;
}

std::vector<ChatMessage> WithSystem(std::vector<ChatMessage> messages,
                                    std::optional<std::string> text) {
  if (SystemText(messages)) messages.erase(messages.begin());
  if (!text) return messages;
  ChatMessage system;
  system.role = "system";
  system.content = std::move(text);
  messages.insert(messages.begin(), std::move(system));
  return messages;
}

Status CheckParams(const ChatParams& params) {
  LATTE_RETURN_IF_ERROR(params.sampling.Validate());
  LATTE_RETURN_IF_ERROR(params.stop.Validate());
  if (params.stop.max_tokens < 1) return InvalidArgument("max_tokens: expected 1 or more, found 0");
  return {};
}

}  // namespace latte
