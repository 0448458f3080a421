// Lines of the OpenAI batch format: requests and results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/api/common/request.h"
#include "src/base/json.h"

namespace latte {

// {"custom_id": …, "method": "POST", "url": …, "body": {…}}
struct BatchLine {
  std::string custom_id;
  ApiEndpoint endpoint = ApiEndpoint::kChat;
  Json body;
};

// `where` names the line in error messages. Errors: kInvalidArgument naming the field.
[[nodiscard]] Result<BatchLine> ParseBatchLine(std::string_view text, const std::string& where);

// The custom_id of a line, if it is a string that is not empty. Nothing else is checked.
std::optional<std::string> FindCustomId(std::string_view text);

// Identifies one line of the input, and its result.
struct BatchLineId {
  int64_t number = 0;                    // counted from 1
  std::optional<std::string> custom_id;  // nullopt if the line has none
};

// The text of a line, without its end. `body`: a JSON value.
// {"id": "batch_req_…", "custom_id": …, "response": {"status_code", "request_id", "body"},
// "error": null}
std::string BatchResult(const BatchLineId& line, std::string_view body);

// The result of a failed request: the body contains the error as a server would send it, and
// "error" is {"code", "message"}. `endpoint`: whose form the body has.
std::string BatchFailure(const BatchLineId& line, const Error& error,
                         ApiEndpoint endpoint = ApiEndpoint::kChat);

// The content of a line in an output file.
struct BatchOutcome {
  std::optional<std::string> custom_id;
  bool failed = false;
};

// Errors: kCorrupt if BatchResult or BatchFailure did not write `text`.
[[nodiscard]] Result<BatchOutcome> ParseBatchResult(std::string_view text,
                                                    const std::string& where);

// Whether `text`, which has no end of line, may be the beginning of a result line.
bool BeginsBatchResult(std::string_view text);

}  // namespace latte
