// The fields of a /v1/responses request that its answer repeats or uses.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "src/base/json_out.h"

namespace latte {

// A tool as the client knows it. The model sees a function.
struct ResponsesTool {
  std::string name;
  std::string name_space;  // of a tool inside of a namespace; may be empty
  bool custom = false;     // its input is text, not JSON: the model sees one parameter, "input"
};

// By the name of the function that the model sees.
using ResponsesTools = std::map<std::string, ResponsesTool, std::less<>>;

struct ResponsesReply {
  JsonOut settings = JsonOut::object();  // members of the answer that repeat the request
  ResponsesTools tools;
  bool gives_reasoning_back = false;  // items of reasoning have encrypted_content
};

// The model sees a tool of a namespace under this name.
std::string FunctionName(std::string_view name_space, std::string_view name);

// Latte keeps no keys and no conversations: encrypted_content is the reasoning itself behind this
// mark, so that a client that sends it back restores the reasoning.
inline constexpr std::string_view kPlainReasoning = "latte-plain:";

}  // namespace latte
