// The fields of a request body and their types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "latte/request.h"

#include "src/api/common/format/answer_format.h"
#include "src/api/common/reasoning.h"
#include "src/api/common/request.h"
#include "src/api/common/tools/tools.h"
#include "src/base/json.h"

namespace latte {

// Longer than any context: an answer without a limit continues to the end of the context.
inline constexpr int64_t kToTheEnd = int64_t{1} << 30;

// The fields of a body, before they are checked against each other.
struct ApiFields {
  Request request;  // the fields that need no context
  std::string model;
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  std::optional<int64_t> max_tokens;
  std::optional<int64_t> max_completion_tokens;
  std::optional<int> logprobs;  // of /v1/completions; for chats: top_logprobs
  bool chat_logprobs = false;
  std::optional<Json> prompt;
  std::optional<Json> messages;
  ApiReasoning reasoning;
  ApiTools tools;
  AnswerFormat format;
  std::vector<std::string> ignored;  // fields that have no effect
};

// Sets the fields that `body` contains, but for the `other` ones; null counts as absent.
// Errors: kCorrupt (of Json), kInvalidArgument or kUnsupported naming the field.
[[nodiscard]] Status ReadApiFields(ApiEndpoint endpoint, const Json& body,
                                   std::span<const std::string_view> other, ApiFields* fields);

// A limit of tokens. −1 means none, as in other servers: kToTheEnd. Errors: kCorrupt (of Json).
[[nodiscard]] Result<int64_t> ReadTokenLimit(const Json& value);
// The same for top_k: 0 means no limit, and so does −1.
[[nodiscard]] Result<int64_t> ReadTopK(const Json& value);

// Reads one field of a chat, for APIs that have it too; nullopt: chats have no such field. `value`
// is not null. Errors: as ReadApiFields.
[[nodiscard]] std::optional<Status> ReadChatField(const std::string& name, const Json& value,
                                                  ApiFields* fields);

}  // namespace latte
