// The chat formats of the DeepSeek and Kimi families, for checkpoints without a template. Text that
// the format adds is text of the template; text from a message is text of a user.
#pragma once

#include <span>

#include "latte/status.h"

#include "src/chat/template_format.h"

namespace latte {

// Requires: format != kTemplate.
// Errors: kInvalidArgument for roles, tools or options that the format lacks, and for invalid JSON.
[[nodiscard]] Result<jinja::Text> EncodeChat(ChatFormat format,
                                             std::span<const ChatMessage> messages,
                                             const ChatOptions& options);

// The encoders that have files of their own.
[[nodiscard]] Result<jinja::Text> EncodeDeepseekV32(std::span<const ChatMessage> messages,
                                                    const ChatOptions& options);
[[nodiscard]] Result<jinja::Text> EncodeKimiK2(std::span<const ChatMessage> messages,
                                               const ChatOptions& options);

// Collects a prompt. Thread-compatible.
class PromptWriter {
 public:
  PromptWriter& TemplateText(std::string_view text) {  // text of the format
    text_.Append(text, true);
    return *this;
  }
  PromptWriter& UserText(std::string_view text) {  // text of a message; may be any bytes
    text_.Append(jinja::UserText(text));
    return *this;
  }
  jinja::Text Take() { return std::move(text_); }

 private:
  jinja::Text text_;
};

// The tools of the options, each an object with "function"; an empty list if there are none.
[[nodiscard]] Result<std::vector<jinja::Value>> ParseTools(const ChatOptions& options);

// The arguments of a call as an object. Other arguments, such as a text that was cut, become
// {"INVALID_JSON": text}, as in answers of /v1/messages: a client repeats them in every later
// request.
[[nodiscard]] Result<jinja::Value> ParseArguments(const ToolCall& call);

// As Python's json.dumps(value, ensure_ascii=False).
[[nodiscard]] Result<std::string> CompactJson(const jinja::Value& value);

// The message of the error for a role that a format lacks.
std::string NoSuchRole(std::string_view role);

// The error for a message that a format cannot express.
tl::unexpected<Error> BadMessage(ChatFormat format, size_t index, std::string_view why);

}  // namespace latte
