#include "src/api/request.h"

#include <utility>

#include <fmt/format.h>

#include "src/api/common/neutral_fields.h"
#include "src/api/completions/request.h"
#include "src/api/messages/fields.h"
#include "src/api/messages/request.h"
#include "src/api/responses/request.h"
#include "src/base/limits/out_of_memory.h"

namespace latte {
namespace {

Result<ApiRequest> ParseAnyBody(ApiEndpoint endpoint, const Json& body, const ApiModel& model,
                                const ApiRules& rules) {
  switch (endpoint) {
    case ApiEndpoint::kChat:
    case ApiEndpoint::kCompletions:
      break;
    case ApiEndpoint::kResponses:
      return ParseResponsesRequest(body, model, rules);
    case ApiEndpoint::kMessages:
      return ParseAnthropicRequest(body, model, rules);
  }
  return ParseCompletionRequest(endpoint, body, model, rules);
}

// A request that asks to go before others gets the priority that the operator allows.
void LimitPriority(const ApiRules& rules, ApiRequest* request) {
  const int asked = request->requests.front().priority;
  if (asked >= rules.min_priority) return;
  for (Request& prompt : request->requests) prompt.priority = rules.min_priority;
  request->notes.push_back(
      fmt::format("priority: values below --min-priority {} count as it", rules.min_priority));
}

}  // namespace

Result<ApiRequest> ParseApiRequest(ApiEndpoint endpoint, const Json& body, const ApiModel& model,
                                   const ApiRules& rules) {
  Result<ApiRequest> out = ParseAnyBody(endpoint, body, model, rules);
  if (out) {
    out->reply.max_answer_bytes = rules.max_answer_bytes;
    LimitPriority(rules, &*out);
    return out;
  }
  Error error = std::move(out).error();
  // For the sender of the request, a wrong type is not a corrupt file, and a conversation that
  // exceeds a template's limits is not a temporary lack of memory.
  if (error.code == Code::kCorrupt || error.code == Code::kExhausted)
    error.code = Code::kInvalidArgument;
  return tl::unexpected(std::move(error));
}

Result<ApiRequest> ParseApiBody(ApiEndpoint endpoint, std::string_view body, const ApiModel& model,
                                const ApiRules& rules) {
  return CatchExhaustion([&]() -> Result<ApiRequest> {
    // The ids of a prompt are elements: no context has more.
    constexpr JsonLimits kLimits = {.max_depth = 64, .max_elements = 2'000'000};
    const Result<Json> json = Json::Parse(body, "body", kLimits);
    if (!json) return InvalidArgument(json.error().message);
    return ParseApiRequest(endpoint, *json, model, rules);
  });
}

std::vector<std::string> IgnoredFieldNames() {
  std::vector<std::string> names = NeutralFieldNames();
  for (const std::string_view name : AnthropicIgnoredNames()) names.emplace_back(name);
  return names;
}

}  // namespace latte
