// Checks of JSON objects in bodies of Anthropic's Messages API.
#pragma once

#include <initializer_list>
#include <string_view>

#include "src/base/json.h"

namespace latte {

// Members that are null count as absent.
// Errors: kInvalidArgument for a value that is no object, and for a member that is not in `names`.
[[nodiscard]] Status CheckMembers(const Json& object,
                                  std::initializer_list<std::string_view> names);

}  // namespace latte
