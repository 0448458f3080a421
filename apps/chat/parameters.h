// The parameters of a conversation, by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/session/conversation.h"

namespace latte {

// The names that WithParameter takes: "temperature", "max_tokens" …
std::vector<std::string> ParameterNames();

// A text that the user typed, without the quotes around it. One with more quotes than these two
// stays as it is.
std::string Unquoted(const std::string& typed);

// `params` with the field `name`, which may have dashes, set to the value of `text`, and chosen.
// The text may have quotes around it; "" (two quotes) empties a list.
// Errors: kInvalidArgument naming the field, what is expected and what was found.
[[nodiscard]] Result<ChatParams> WithParameter(ChatParams params, std::string_view name,
                                               const std::string& text);

// "temperature 0.8", one parameter per line. With `leaves_rest_to_server` (conversation.h), the
// others are shown as the server's.
std::string ParametersText(const ChatParams& params, bool leaves_rest_to_server);

// The value of one of them as ParametersText shows it.
std::string ParameterText(const ChatParams& params, std::string_view name);

}  // namespace latte
