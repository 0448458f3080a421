// Parses bodies of /v1/chat/completions and /v1/completions.
#pragma once

#include "src/api/common/request.h"
#include "src/base/json.h"

namespace latte {

// Errors: as ParseApiRequest.
[[nodiscard]] Result<ApiRequest> ParseCompletionRequest(ApiEndpoint endpoint, const Json& body,
                                                        const ApiModel& model,
                                                        const ApiRules& rules);

}  // namespace latte
