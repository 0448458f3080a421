// Parses bodies of /v1/responses. The server is stateless: a request contains the whole
// conversation.
#pragma once

#include "src/api/common/request.h"
#include "src/base/json.h"

namespace latte {

// Errors: as ParseApiRequest.
[[nodiscard]] Result<ApiRequest> ParseResponsesRequest(const Json& body, const ApiModel& model,
                                                       const ApiRules& rules);

}  // namespace latte
