// Errors in the form of the API that a client speaks.
#pragma once

#include <cstdint>
#include <string_view>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"

namespace latte {

// How an API writes errors. All of OpenAI's write OpenAiError.
enum class ErrorForm : uint8_t { kOpenAi, kAnthropic };

// The body of the response to a request that fails. request_id: for forms that have one; may be
// empty.
JsonOut ErrorBody(ErrorForm form, const Error& error, std::string_view request_id);

// The same for a request that HTTP, access or routing refuses with `status`.
JsonOut RefusalBody(ErrorForm form, int status, std::string_view message);

}  // namespace latte
