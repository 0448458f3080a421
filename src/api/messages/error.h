// Errors in the form of Anthropic's API: {"type": "error", "error": {"type", "message"},
// "request_id"}.
#pragma once

#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"

namespace latte {

// The API's name of an error with an HTTP status: "invalid_request_error". 503 is
// overloaded_error, which the service itself sends with 529: load balancers know 503, and clients
// try both again.
std::string_view AnthropicErrorType(int status);

// request_id: empty if the request has none yet.
JsonOut AnthropicError(int status, std::string_view message, std::string_view request_id);

// The same of an error of a request. Says that a prompt does not fit in the words by which clients
// recognise it and shorten the conversation.
JsonOut AnthropicError(const Error& error, std::string_view request_id);

// An error inside a stream, as a server-sent event.
std::string AnthropicErrorEvent(const Error& error, std::string_view request_id);

}  // namespace latte
