// The chat formats of the DeepSeek and Kimi families, for checkpoints that bring no template.
// Everything a format adds is trusted text, everything from a message is not.
#pragma once

#include <span>

#include "latte/status.h"

#include "src/chat/template_format.h"

namespace latte {

// Requires: format != kTemplate.
// Errors: kInvalidArgument for roles, tools or options that the format does not have, and for JSON
// that cannot be read.
[[nodiscard]] Result<jinja::Text> EncodeChat(ChatFormat format,
                                             std::span<const ChatMessage> messages,
                                             const ChatOptions& options);

// The parts of EncodeChat that have files of their own.
[[nodiscard]] Result<jinja::Text> EncodeDeepseekV32(std::span<const ChatMessage> messages,
                                                    const ChatOptions& options);
[[nodiscard]] Result<jinja::Text> EncodeKimiK2(std::span<const ChatMessage> messages,
                                               const ChatOptions& options);

// Collects a prompt. Thread-compatible.
class PromptWriter {
 public:
  PromptWriter& Own(std::string_view text) {  // of the format
    text_.Append(text, true);
    return *this;
  }
  PromptWriter& From(std::string_view text) {  // of a message; may be any bytes
    text_.Append(jinja::FromOutside(text));
    return *this;
  }
  jinja::Text Take() { return std::move(text_); }

 private:
  jinja::Text text_;
};

// The tools of the options, each an object with "function"; none gives an empty list.
[[nodiscard]] Result<std::vector<jinja::Value>> ParseTools(const ChatOptions& options);

// json.dumps(value, ensure_ascii=False).
[[nodiscard]] Result<std::string> CompactJson(const jinja::Value& value);

// Why a message is refused whose role a format does not have.
std::string NoSuchRole(std::string_view role);

// A message that a format cannot express.
tl::unexpected<Error> BadMessage(ChatFormat format, size_t index, std::string_view why);

}  // namespace latte
