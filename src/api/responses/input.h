// Reads the input of a /v1/responses request: a text, or the items of a conversation. The items of
// one answer (reasoning, message, calls) become one message of the assistant.
#pragma once

#include <string>
#include <vector>

#include "latte/status.h"

#include "src/api/responses/tools.h"
#include "src/base/json.h"
#include "src/chat/template_format.h"

namespace latte {

struct ResponsesInput {
  std::vector<ChatMessage> messages;
  std::vector<std::string> places;  // the field of each message
  std::vector<std::string> notes;   // what has no effect
};

// Appends to `out`. `tools` takes the tools that the input adds (additional_tools).
// Errors: kCorrupt (of Json), kInvalidArgument and kUnsupported naming the field.
[[nodiscard]] Status ReadResponsesInput(const Json& input, ResponsesToolReader* tools,
                                        ResponsesInput* out);

}  // namespace latte
