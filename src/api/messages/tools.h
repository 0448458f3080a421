// The tools of Anthropic's Messages API. Its tool_choice is read as in chats.
#pragma once

#include "src/base/json.h"
#include "src/api/common/tools/tools.h"

namespace latte {

// Errors: kInvalidArgument and kCorrupt (of Json) naming the field; kUnsupported for tools that
// Anthropic's servers run or whose schema only Anthropic's models know.
[[nodiscard]] Status ReadAnthropicTools(const Json& value, OpenAiTools* out);

}  // namespace latte
