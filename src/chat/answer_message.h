// Converts the text of an answer to a message of the conversation.
#pragma once

#include <string_view>

#include "src/chat/template_format.h"

namespace latte {

// The message for an answer. The text inside <think> … </think> at its beginning becomes the
// reasoning. in_thought: the prompt has already opened the <think>.
ChatMessage AnswerMessage(std::string_view text, bool in_thought);

}  // namespace latte
