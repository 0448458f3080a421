// Fields that clients send although, with the values that they have, they change nothing: defaults
// written out, names of who asks, switches of what Latte does not do. Such a value is as good as
// absent; any other value of the same field is refused, because obeying it would change the answer.
#pragma once

#include <optional>
#include <string_view>

#include "src/base/json.h"
#include "src/openai/request.h"

namespace latte {

// Nothing when the API has no such field here. `value` is not null.
// Errors: kUnsupported naming the field and the values that are taken.
[[nodiscard]] std::optional<Status> CheckNeutralField(OpenAiEndpoint endpoint,
                                                      std::string_view name, const Json& value);

// best_of, which is neutral where it equals n. Errors: kUnsupported.
[[nodiscard]] Status CheckBestOf(const Json& body);

}  // namespace latte
