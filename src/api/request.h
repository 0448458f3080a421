// Parses bodies of the APIs' endpoints into latte::Request. Null counts as
// absent at every level, and values that change no answer are accepted (common/neutral_fields.h).
// Everything else is strict: an unknown field, a wrong type or a value out of range is an error
// that names the field. Knows nothing of files and connections.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/api/common/request.h"
#include "src/base/json.h"

namespace latte {

// Errors: kInvalidArgument and kUnsupported naming the field. Engine::Submit checks that ids are in
// the vocabulary and that the prompt fits the context.
[[nodiscard]] Result<ApiRequest> ParseApiRequest(ApiEndpoint endpoint, const Json& body,
                                                 const ApiModel& model, const ApiRules& rules = {});

// The same from the text of a body, which any client may have written.
// Errors: also kInvalidArgument for what is no JSON, repeats a key, or is nested too deeply;
// kExhausted if memory runs out.
[[nodiscard]] Result<ApiRequest> ParseApiBody(ApiEndpoint endpoint, std::string_view body,
                                              const ApiModel& model, const ApiRules& rules = {});

// The names that ApiRequest::ignored may have.
std::vector<std::string> IgnoredFieldNames();

}  // namespace latte
