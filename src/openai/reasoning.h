// How clients ask for reasoning, or for none: the many names that servers gave one switch.
//
//   chat_template_kwargs: {"thinking": true}, {"enable_thinking": true}   vLLM, SGLang
//   enable_thinking: true                                                Qwen's API
//   thinking: {"type": "enabled"}                                        DeepSeek's and GLM's API
//   reasoning_effort: "high"                                             OpenAI's API
//
// Switches must agree. An effort is a wish: none switches reasoning off and all else on, where no
// switch says otherwise and the model has the choice; templates see it as reasoning_effort.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/json.h"
#include "src/base/json_out.h"
#include "src/chat/prompt.h"

namespace latte {

// What a request says of it.
struct OpenAiReasoning {
  std::optional<bool> thinking;
  std::string thinking_path;  // of the field that said so
  std::optional<std::string> effort;
  std::string effort_path;
  JsonOut variables = JsonOut::object();  // for the template, beside the switch
};

// Read one field each. Errors: kInvalidArgument and kCorrupt (of Json) naming it, also when it
// contradicts another; kUnsupported for what changes the prompt and is not done.
[[nodiscard]] Status ReadTemplateVariables(const Json& value, OpenAiReasoning* out);
[[nodiscard]] Status ReadThinking(const Json& value, OpenAiReasoning* out);
[[nodiscard]] Status ReadThinkingSwitch(const Json& value, OpenAiReasoning* out);
[[nodiscard]] Status ReadReasoningEffort(const Json& value, OpenAiReasoning* out);

// The same for one model. `notes` gets what is taken without effect. Errors: kInvalidArgument for a
// switch, or for variables, that the chat format does not have; asking for what it does anyway is
// fine.
[[nodiscard]] Result<ChatOptions> ReasoningOptions(const OpenAiReasoning& reasoning,
                                                   const ChatPromptBuilder& chat,
                                                   std::vector<std::string>* notes);

}  // namespace latte
