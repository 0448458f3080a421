// The fields of a request that say what the content of its answer must match:
//
//   response_format: {"type": "json_object"}, {"type": "json_schema", …}      OpenAI
//   guided_json, guided_regex, guided_choice, guided_grammar                  vLLM
//   structured_outputs: {"json": …, "regex": …, "choice": …, "grammar": …}    vLLM
//
// A request may have at most one of them. Reasoning and function calls are not content.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "latte/request.h"
#include "latte/status.h"

#include "src/api/common/tools/tools.h"
#include "src/base/json.h"
#include "src/chat/prompt.h"
#include "src/grammar/grammar.h"

namespace latte {

struct AnswerFormat {
  std::optional<Grammar> content;
  std::string path;  // the field that set it
};

// Each reads one field.
// Errors: kInvalidArgument and kCorrupt (of Json) naming the field, also for a second format;
// kUnsupported for a type that Latte lacks.
[[nodiscard]] Status ReadResponseFormat(const Json& value, AnswerFormat* out);
[[nodiscard]] Status ReadStructuredOutputs(const Json& value, AnswerFormat* out);
// kind: "json", "regex", "choice", "grammar" or "json_object".
[[nodiscard]] Status ReadGuide(std::string_view kind, const Json& value, AnswerFormat* out);

// Sets the grammar of a whole answer: reasoning, content and calls; nothing if it may be any text.
// chat: null for completions. Takes milliseconds. Errors: kInvalidArgument and kUnsupported naming
// the field.
[[nodiscard]] Status SetGrammar(const AnswerFormat& format, const ApiTools& tools,
                                const ChatPromptBuilder* chat, bool in_thought, Request* request);

}  // namespace latte
