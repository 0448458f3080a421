// Lines of the OpenAI batch format: requests as they come in, results as they go out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/json.h"
#include "src/base/json_out_fwd.h"
#include "src/openai/request.h"

namespace latte {

// {"custom_id": …, "method": "POST", "url": …, "body": {…}}
struct BatchLine {
  std::string custom_id;
  OpenAiEndpoint endpoint = OpenAiEndpoint::kChat;
  Json body;
};

// `where` names the line in messages. Errors: kInvalidArgument naming the field.
[[nodiscard]] Result<BatchLine> ParseBatchLine(std::string_view text, const std::string& where);

// The custom_id of a line, if it has one: a string that is not empty. Nothing else is checked.
std::optional<std::string> FindCustomId(std::string_view text);

// Names one line of the input, and with it its result.
struct BatchLineId {
  int64_t number = 0;                    // counted from 1
  std::optional<std::string> custom_id;  // none: the line has none
};

// {"id": "batch_req_…", "custom_id": …, "response": {"status_code", "request_id", "body"},
// "error": null}
JsonOut BatchResult(const BatchLineId& line, JsonOut body);

// The same of a request that failed: the body has the error too, as a server would send it, and
// "error" is {"code", "message"}.
JsonOut BatchFailure(const BatchLineId& line, const Error& error);

// What a line of an output file says.
struct BatchOutcome {
  std::optional<std::string> custom_id;
  bool failed = false;
};

// Errors: kCorrupt when `text` is no line that BatchResult or BatchFailure wrote.
[[nodiscard]] Result<BatchOutcome> ParseBatchResult(std::string_view text,
                                                    const std::string& where);

// Whether `text`, which has no end of line, may be the beginning of such a line.
bool BeginsBatchResult(std::string_view text);

}  // namespace latte
