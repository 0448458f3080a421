// What a model wrote → a message of the conversation.
#pragma once

#include <string_view>

#include "src/chat/template_format.h"

namespace latte {

// The message that an answer becomes: what stands inside <think> … </think> at its beginning is its
// reasoning; `in_thought`: the prompt has opened it already.
ChatMessage AnswerMessage(std::string_view text, bool in_thought);

}  // namespace latte
