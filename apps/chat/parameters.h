// The parameters of a conversation, by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/jobs/conversation.h"

namespace latte {

// The names that WithParameter takes: "temperature", "max_tokens" …
std::vector<std::string> ParameterNames();

// `params` with the field `name`, which may have dashes, set to the value of `text`, and chosen. The
// text "" (two quotes) empties a list.
// Errors: kInvalidArgument naming the field, what is expected and what was found.
[[nodiscard]] Result<ChatParams> WithParameter(ChatParams params, std::string_view name,
                                               const std::string& text);

// "temperature 0.8", one parameter per line.
std::string ParametersText(const ChatParams& params);

}  // namespace latte
