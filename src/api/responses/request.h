// Parses bodies of /v1/responses. The server is stateless: a request contains the whole
// conversation.
#pragma once

#include "src/base/json.h"
#include "src/api/common/request.h"

namespace latte {

// Errors: as ParseOpenAiRequest.
[[nodiscard]] Result<OpenAiRequest> ParseResponsesRequest(const Json& body,
                                                          const OpenAiModel& model,
                                                          const OpenAiRules& rules);

}  // namespace latte
