// The name of the function at the beginning of a call.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/chat/tools/tool_syntax.h"
#include "src/chat/tools/value_schema.h"

namespace latte {

struct CallName {
  std::string id;  // empty if the format has no ids
  std::string name;
};

// `text`: from the beginning of a call to the end of its name. `known`: the functions of the
// request, or null. Whether there is a name does not depend on `known`.
std::optional<CallName> ReadCallName(ToolFormat format, std::string_view text,
                                     const KnownFunctions* known);

}  // namespace latte
