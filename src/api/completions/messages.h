// Parses the "messages" of a chat request into ChatMessage.
#pragma once

#include <vector>

#include "src/base/json.h"
#include "src/chat/template_format.h"

namespace latte {

// Errors: kCorrupt (of Json), kInvalidArgument or kUnsupported naming message and field.
[[nodiscard]] Result<std::vector<ChatMessage>> ParseOpenAiMessages(const Json& messages);

}  // namespace latte
