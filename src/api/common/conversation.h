// The part that all APIs for chats share: a conversation with its settings, and its prompt. Each
// API reads its own fields into this form.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "latte/request.h"

#include "src/api/common/format/answer_format.h"
#include "src/api/common/reasoning.h"
#include "src/api/common/request.h"
#include "src/api/common/tools/tools.h"
#include "src/base/json.h"
#include "src/chat/template_format.h"

namespace latte {

// Messages of a conversation, or items of one. A message takes some 3 KB while its prompt is made.
inline constexpr size_t kMaxMessages = 16384;

// Errors: kInvalidArgument unless `list` is an array of one to kMaxMessages elements.
[[nodiscard]] Status CheckMessageList(const Json& list);

struct Conversation {
  Request settings;  // sampling, stop conditions, salt …; its prompt is not used
  std::vector<ChatMessage> messages;
  // The field of the client's request that each message comes from, for errors; messages.N where it
  // is shorter than `messages`.
  std::vector<std::string> places;
  ApiReasoning reasoning;
  ApiTools tools;
  AnswerFormat format;
  bool opens_answer = true;  // false: only the conversation's own tokens are of interest
};

// The settings of a request that sets none: the model's defaults and seed.
Request DefaultSettings(const ApiModel& model);

// Adds the conversation's prompt to out->requests and sets what the reply must know of it: calls,
// functions, parallel_calls, prompts, in_thought; appends notes.
// Errors: of CheckTextFits for a text longer than rules.max_model_len tokens; of ReasoningOptions,
// CheckTools, SetGrammar and ChatPromptBuilder::Build, which name a place where there is one; of
// model.chat.
[[nodiscard]] Status AddConversation(const Conversation& conversation, const ApiModel& model,
                                     const ApiRules& rules, ApiRequest* out);

}  // namespace latte
