// The fields with which clients switch reasoning on and off. Each server has its own:
//
//   chat_template_kwargs: {"thinking": true}, {"enable_thinking": true}   vLLM, SGLang
//   enable_thinking: true                                                Qwen's API
//   thinking: {"type": "enabled"}                   DeepSeek's, GLM's and Anthropic's API
//   reasoning_effort: "high"                                             OpenAI's API
//
// Switches must agree. An effort is a hint: if the request has no switch and the model has the
// choice, "none" turns reasoning off and any other effort turns it on. Templates get it as
// reasoning_effort.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/json.h"
#include "src/base/json_out.h"
#include "src/chat/prompt.h"

namespace latte {

// The reasoning settings of a request.
struct ApiReasoning {
  std::optional<bool> thinking;
  std::string thinking_path;  // the field that set `thinking`
  std::optional<std::string> effort;
  std::string effort_path;
  std::vector<std::string> notes;         // settings that have no effect with any model
  JsonOut variables = JsonOut::object();  // additional variables for the template
};

// Each reads one field.
// Errors: kInvalidArgument and kCorrupt (of Json) naming the field, also if it contradicts another;
// kUnsupported for a setting that changes the prompt and that Latte lacks.
[[nodiscard]] Status ReadTemplateVariables(const Json& value, ApiReasoning* out);
// The object `thinking` of all APIs. Budgets of tokens are wishes that have no effect; without a
// type, 0 means no reasoning and any other budget means reasoning, but −1 leaves it to the model.
[[nodiscard]] Status ReadThinking(const Json& value, ApiReasoning* out);
[[nodiscard]] Status ReadThinkingSwitch(const Json& value, ApiReasoning* out);
[[nodiscard]] Status ReadReasoningEffort(const Json& value, ApiReasoning* out);

// The chat options for one model. `notes` lists settings that have no effect.
// Errors: kInvalidArgument for a switch or for variables that the chat format lacks. A switch that
// equals the default of the format is valid.
[[nodiscard]] Result<ChatOptions> ReasoningOptions(const ApiReasoning& reasoning,
                                                   const ChatPromptBuilder& chat,
                                                   std::vector<std::string>* notes);

}  // namespace latte
