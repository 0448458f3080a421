// Bodies of Anthropic's Messages API as requests for chats. As in request.h: null counts as absent,
// fields that change no answer are accepted, everything else is strict.
#pragma once

#include <string>
#include <string_view>

#include "src/api/common/request.h"
#include "src/base/json.h"

namespace latte {

// The body of /v1/messages.
// Errors: kCorrupt (of Json), kInvalidArgument and kUnsupported naming the field.
[[nodiscard]] Result<ApiRequest> ParseAnthropicRequest(const Json& body, const ApiModel& model,
                                                       const ApiRules& rules);

// The body of /v1/messages/count_tokens: the tokens of the prompt that the same conversation makes
// at /v1/messages. Fields that change no prompt are checked and have no effect.
// Errors: as ParseAnthropicRequest; kNotFound for a model that is not one of `names`.
[[nodiscard]] Result<std::string> CountTokensBody(std::string_view body,
                                                  const std::vector<std::string>& names,
                                                  const ApiModel& model);

}  // namespace latte
