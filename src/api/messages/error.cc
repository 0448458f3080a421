#include "src/api/messages/error.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/json_out.h"
#include "src/engine/request/prompt_too_long.h"

namespace latte {

std::string_view AnthropicErrorType(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 408:
      return "timeout_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

JsonOut AnthropicError(int status, std::string_view message, std::string_view request_id) {
  return {{"type", "error"},
          {"error", {{"type", AnthropicErrorType(status)}, {"message", message}}},
          {"request_id", request_id.empty() ? JsonOut(nullptr) : JsonOut(request_id)}};
}

JsonOut AnthropicError(const Error& error, std::string_view request_id) {
  const int status = HttpStatus(error.code);
  const auto too_long = FindPromptTooLong(error);
  if (!too_long) return AnthropicError(status, error.message, request_id);
  // The prompt of exactly the whole context has no room for an answer.
  const int64_t most = std::min(too_long->max_tokens, too_long->tokens - 1);
  return AnthropicError(
      status, fmt::format("prompt is too long: {} tokens > {} maximum", too_long->tokens, most),
      request_id);
}

std::string AnthropicErrorEvent(const Error& error, std::string_view request_id) {
  return "event: error\ndata: " + Dump(AnthropicError(error, request_id)) + "\n\n";
}

}  // namespace latte
