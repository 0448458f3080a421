// Errors in the form of OpenAI's APIs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"

namespace latte {

// OpenAI's name of a prompt that does not fit.
inline constexpr std::string_view kContextLengthExceeded = "context_length_exceeded";

// The parts of an error that clients look at, next to its message.
struct OpenAiErrorInfo {
  std::string_view type;             // "invalid_request_error", "server_error", …
  std::optional<std::string> param;  // the field that the message begins with
  std::string_view code;             // "context_length_exceeded", "model_not_found", …
};

OpenAiErrorInfo DescribeError(const Error& error);

// {"error": {"message": …, "type": …, "param": …, "code": …}}
JsonOut OpenAiError(const Error& error);

}  // namespace latte
