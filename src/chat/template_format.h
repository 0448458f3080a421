// Converts conversations to prompts with the chat template of a checkpoint or, without one, with
// the encoder of its family. A prompt is a list of pieces with their origin: only text of a
// template or encoder may become special tokens; text of a message stays text, whatever it spells.
// Does not tokenise.
//
// How to tokenise pieces: special and added tokens are searched only in pieces of the template, and
// not across pieces. The text between two such tokens is joined before it is encoded, because
// byte-pair merges cross the borders of pieces. Tokenizer::EncodePieces does this; prompt.h
// combines both.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/jinja/template.h"
#include "src/text/tokenizer.h"

namespace latte {

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text of an object
};

struct ChatMessage {
  std::string role;                    // "system", "user", "assistant", "tool", "developer"
  std::optional<std::string> content;  // null in JSON: an assistant that only calls tools
  std::optional<std::string> reasoning;
  std::vector<ToolCall> tool_calls;
  std::optional<std::string> tool_call_id;
  std::optional<std::string> name;
  bool prefix = false;  // the last message of the assistant, to be continued
};

struct ChatOptions {
  bool add_generation_prompt = true;
  std::optional<bool> thinking;                // not set: the default of the format
  std::optional<std::string> tools;            // JSON text of an array, as in the OpenAI API
  std::optional<std::string> response_format;  // JSON text of a schema; DeepSeek-V3.2 only
  // JSON text of an object: variables for the template in addition to the variables of every chat,
  // which take precedence. The encoders have none.
  std::optional<std::string> variables;
  jinja::RenderOptions render;
  // Called with the bytes of the prompt before it is tokenised; its error ends the building.
  std::function<Status(size_t bytes)> check_size;

  bool thinks() const {
    return thinking.value_or(false);
  }  // for formats that do not think by
     // default
};

enum class ChatFormat {
  kTemplate,  // the checkpoint's own
  kDeepseekV2,
  kDeepseekV25,
  kDeepseekV3,
  kDeepseekR1,
  kDeepseekV31,
  kDeepseekV32,
  kKimiK2
};

std::string_view ChatFormatName(ChatFormat format);  // "deepseek_v3.1"

// The data of a checkpoint that determine its chat format.
struct ChatModel {
  std::string chat_template;  // empty if there is none
  std::string model_type;     // model_type of config.json
  std::string bos_token;      // the template's variables of these names
  std::string eos_token;
  std::function<bool(std::string_view)> has_token;  // whether a text is a single token; may be null
};

// A template takes precedence. Without one, the format follows from the model type and from tokens
// that only some models of the family have.
// Errors: kUnsupported if Latte has no format for the family; the message asks for a template.
[[nodiscard]] Result<ChatFormat> DetectChatFormat(const ChatModel& model);

// The form in which a template expects messages with tool calls.
struct CallForm {
  bool arguments_are_text = true;  // false: a mapping
  // The content of such a message without text: some templates join the text and need "", others
  // check for null before they write the calls.
  enum class Silence { kAsGiven, kNull, kText } silence = Silence::kAsGiven;
};

// Immutable, thread-safe. Copies are cheap.
class ChatRenderer {
 public:
  // Errors: of DetectChatFormat; kInvalidArgument and kUnsupported for a template that cannot be
  // parsed, with line and column.
  [[nodiscard]] static Result<ChatRenderer> Create(const ChatModel& model);
  [[nodiscard]] static Result<ChatRenderer> Create(ChatFormat format, const ChatModel& model);

  // The pieces of the prompt. They include BOS if the format begins with it, so tokenise without
  // adding another. Neighbours differ in origin.
  // Errors: kInvalidArgument for messages that the format or its template refuses; kUnsupported;
  // kExhausted.
  [[nodiscard]] Result<std::vector<TextPiece>> Render(std::span<const ChatMessage> messages,
                                                      const ChatOptions& options = {}) const;

  // The messages in the form for which Render writes all calls: the content of a message with calls
  // and no text is null or "", as the template requires. Render itself does not change messages,
  // like transformers.
  std::vector<ChatMessage> WithCallsShown(std::span<const ChatMessage> messages) const;

  ChatFormat format() const { return format_; }
  // empty: an encoder is used
  const std::string& chat_template() const { return model_.chat_template; }

 private:
  ChatRenderer(ChatFormat format, const ChatModel& model) : format_(format), model_(model) {}
  Result<jinja::Text> RenderTemplate(std::span<const ChatMessage> messages,
                                     const ChatOptions& options, bool arguments_are_text) const;
  CallForm FindCallForm() const;
  std::optional<std::string> RenderSampleCall(const CallForm& form) const;

  ChatFormat format_;
  ChatModel model_;
  std::optional<jinja::Template> template_;
  CallForm call_form_;
};

// The text of all pieces.
std::string JoinPieces(std::span<const TextPiece> pieces);

}  // namespace latte
