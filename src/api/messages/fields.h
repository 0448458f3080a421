// The fields of bodies of Anthropic's Messages API: /v1/messages and /v1/messages/count_tokens.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/request.h"

#include "src/api/common/format/answer_format.h"
#include "src/api/common/reasoning.h"
#include "src/api/common/tools/tools.h"
#include "src/base/json.h"

namespace latte {

// The fields of a body, before they are checked against each other and against the model.
struct AnthropicFields {
  Request settings;
  std::string model;
  bool stream = false;
  bool has_max_tokens = false;
  std::optional<Json> system;
  std::optional<Json> messages;
  ApiReasoning reasoning;
  std::optional<std::string> effort;
  ApiTools tools;
  AnswerFormat format;
  std::vector<std::string> ignored;  // fields that have no effect
};

// Sets the fields that `body` contains; null counts as absent.
// Errors: kCorrupt (of Json), kInvalidArgument or kUnsupported naming the field.
[[nodiscard]] Status ReadAnthropicFields(const Json& body, AnthropicFields* fields);

// The names that AnthropicFields::ignored may have.
std::vector<std::string_view> AnthropicIgnoredNames();

}  // namespace latte
