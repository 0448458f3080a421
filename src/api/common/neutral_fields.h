// Fields that have no effect for some values: defaults, user names, switches of features that Latte
// lacks. Such a value counts as absent. Any other value of the same field is refused, because it
// would change the answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/api/common/request.h"
#include "src/base/json.h"

namespace latte {

// nullopt if the API has no such field at this endpoint. `value` is not null.
// Errors: kUnsupported naming the field and the accepted values.
[[nodiscard]] std::optional<Status> CheckNeutralField(ApiEndpoint endpoint, std::string_view name,
                                                      const Json& value);

// The names of all of them.
std::vector<std::string> NeutralFieldNames();

// Checks best_of, which is neutral if it equals n. Errors: kUnsupported.
[[nodiscard]] Status CheckBestOf(const Json& body);

}  // namespace latte
