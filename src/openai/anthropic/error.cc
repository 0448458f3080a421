#include "src/openai/anthropic/error.h"

#include "src/base/json_out.h"

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

std::string AnthropicErrorEvent(const Error& error, std::string_view request_id) {
  return "event: error\ndata: " +
         Dump(AnthropicError(HttpStatus(error.code), error.message, request_id)) + "\n\n";
}

}  // namespace latte
