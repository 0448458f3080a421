// Reads the tools of a /v1/responses request.
//
// function    flat: {"type": "function", "name", "description", "parameters", "strict"}
// custom      input of plain text; the model sees a function with the parameter "input"
// namespace   tools under a common name; the model sees them as NAMESPACE__NAME
//
// Tools that OpenAI's service or a client's own machine runs, and that clients offer by default
// (web_search, image_generation, tool_search, local_shell), are left out with a note. Others are
// refused.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "latte/status.h"

#include "src/api/common/tools/tools.h"
#include "src/api/responses/reply.h"
#include "src/base/json.h"

namespace latte {

class ResponsesToolReader {
 public:
  // Adds the tools of an array. Errors: kInvalidArgument and kCorrupt (of Json) naming the field;
  // kUnsupported for types that Latte lacks.
  [[nodiscard]] Status Add(const Json& value);

  // Sets what the prompt shows, and the tools that the answer repeats.
  void Finish(ApiTools* out, ResponsesReply* reply);

  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Status AddTool(const Json& tool, const Json* name_space);
  Status AddNamespace(const Json& tool);
  Status AddFunctionTool(const Json& tool, const Json* name_space);
  Status AddCustomTool(const Json& tool, const Json* name_space);
  Status AddShown(const Json& tool, const Json* name_space, JsonOut function, bool custom);

  ApiTools tools_;
  KnownFunctions known_;
  ResponsesTools names_;
  JsonOut prompt_ = JsonOut::array();    // as in chats
  JsonOut repeated_ = JsonOut::array();  // as the client wrote them
  std::vector<std::string> notes_;
};

// As ReadToolChoice. `repeated`: the choice as the API writes it, for the answer.
[[nodiscard]] Status ReadResponsesToolChoice(const Json& value, ApiTools* out, JsonOut* repeated);

}  // namespace latte
