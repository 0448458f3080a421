// The fields of a request body, one by one: which there are, and their types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "latte/request.h"

#include "src/base/json.h"
#include "src/openai/reasoning.h"
#include "src/openai/request.h"

namespace latte {

// A body with its fields read, but not yet understood together.
struct OpenAiFields {
  Request request;  // all that stands for itself
  std::string model;
  bool stream = false;
  std::optional<int64_t> max_tokens;
  std::optional<int64_t> max_completion_tokens;
  std::optional<int> logprobs;  // of /v1/completions; of chats: top_logprobs
  bool chat_logprobs = false;
  std::optional<Json> prompt;
  std::optional<Json> messages;
  OpenAiReasoning reasoning;
};

// Sets what `body` gives; null is the same as absent.
// Errors: kCorrupt (of Json), kInvalidArgument or kUnsupported naming the field.
[[nodiscard]] Status ReadOpenAiFields(OpenAiEndpoint endpoint, const Json& body,
                                      OpenAiFields* fields);

}  // namespace latte
