// Converts the conversation of Anthropic's Messages API to the messages of chat formats.
//
//   system                    a message of role system, the first one
//   user: text                a message of role user
//   user: tool_result         messages of role tool, before the message's text
//   assistant                 one message with its reasoning, text and calls
//   images, documents, actions of the service: a text in their place (placeholder.h)
//   system among the messages a message of role system in its place
//
// Consecutive messages of role user or assistant become one message, as the API specifies.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/json.h"
#include "src/chat/template_format.h"

namespace latte {

struct AnthropicConversation {
  std::vector<ChatMessage> messages;
  std::vector<std::string> places;  // the field that each message comes from
  std::vector<std::string> notes;   // parts that are left out
};

// `system` may be absent.
// Errors: kCorrupt (of Json), kInvalidArgument or kUnsupported naming message, block and field.
[[nodiscard]] Result<AnthropicConversation> ParseAnthropicMessages(
    const std::optional<Json>& system, const Json& messages);

}  // namespace latte
