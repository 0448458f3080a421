// A conversation as one JSON object.
#pragma once

#include <string>
#include <vector>

#include "latte/status.h"

#include "src/session/conversation.h"

namespace latte {

// Asks the questions in turn. The result has the model, all messages, and for every answer its
// text, why it ended, and its counts of tokens; then the seed, null if a server chooses it. Errors:
// of Conversation::Ask.
[[nodiscard]] Result<std::string> AnswersJson(Conversation* chat, const std::string& model,
                                              const std::vector<std::string>& questions);

}  // namespace latte
