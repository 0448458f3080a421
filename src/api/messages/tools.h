// The tools of Anthropic's Messages API. Its tool_choice is read as in chats.
#pragma once

#include "src/api/common/tools/tools.h"
#include "src/base/json.h"

namespace latte {

// Errors: kInvalidArgument and kCorrupt (of Json) naming the field; kUnsupported for tools that
// Anthropic's servers run or whose schema only Anthropic's models know.
[[nodiscard]] Status ReadAnthropicTools(const Json& value, ApiTools* out);

}  // namespace latte
