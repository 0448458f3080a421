// Conversations to prompts: by the chat template that comes with a checkpoint, or, where none does,
// by the encoder of its family. A prompt is a row of pieces that say who wrote them: only the text
// of a template or encoder may become special tokens; what a message says is text, whatever it
// spells. Does not tokenise.
//
// How to tokenise pieces: special and added tokens are looked for in trusted pieces only, and not
// across pieces; everything between two such tokens, trusted or not, is joined before it is encoded
// as plain text, because byte-pair merges cross the borders of pieces. Tokenizer::EncodePieces does
// so; prompt.h puts both together.
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
  bool prefix = false;  // the assistant's last message, to be continued
};

struct ChatOptions {
  bool add_generation_prompt = true;
  std::optional<bool> thinking;                // none: as the format does by itself
  std::optional<std::string> tools;            // JSON text of an array, as in the OpenAI API
  std::optional<std::string> response_format;  // JSON text of a schema; DeepSeek-V3.2 only
  // JSON text of an object: variables that a template sees beside those of every chat, which go
  // before them. The encoders have none.
  std::optional<std::string> variables;
  jinja::RenderOptions render;

  bool thinks() const { return thinking.value_or(false); }  // of formats that do not by themselves
};

struct ChatPiece {
  std::string text;
  bool trusted = false;  // written by the template or encoder
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

// What a checkpoint says about its chats.
struct ChatModel {
  std::string chat_template;  // empty if there is none
  std::string model_type;     // of config.json
  std::string bos_token;      // what a template sees under these names
  std::string eos_token;
  std::function<bool(std::string_view)> has_token;  // whether text is one token; may be null
};

// A template goes first. Without one, the family's own format, told by the model type and by the
// tokens that only some of its members have.
// Errors: kUnsupported for a family without a format here; the message says to give a template.
[[nodiscard]] Result<ChatFormat> DetectChatFormat(const ChatModel& model);

// How a template wants messages that call tools.
struct CallForm {
  bool arguments_are_text = true;  // or a mapping
  // Where such a message says nothing: some templates join the text and need "", others look
  // whether it is null before they write the calls.
  enum class Silence { kAsGiven, kNull, kText } silence = Silence::kAsGiven;
};

// Immutable, thread-safe. Copies are cheap.
class ChatRenderer {
 public:
  // Errors: those of DetectChatFormat; kInvalidArgument and kUnsupported for a template that cannot
  // be parsed, with line and column.
  [[nodiscard]] static Result<ChatRenderer> Create(const ChatModel& model);
  [[nodiscard]] static Result<ChatRenderer> Create(ChatFormat format, const ChatModel& model);

  // The pieces of the prompt, BOS included where the format begins with it: tokenise without adding
  // another. Neighbours differ in trust.
  // Errors: kInvalidArgument for messages that the format does not allow and for what a template
  // refuses; kUnsupported; kExhausted.
  [[nodiscard]] Result<std::vector<ChatPiece>> Render(std::span<const ChatMessage> messages,
                                                      const ChatOptions& options = {}) const;

  // The messages in the form in which Render writes all calls: one that calls tools and says
  // nothing has null or "", whichever the template wants. Render itself takes what it is given, as
  // transformers does.
  std::vector<ChatMessage> WithCallsShown(std::span<const ChatMessage> messages) const;

  ChatFormat format() const { return format_; }
  const std::string& chat_template() const { return model_.chat_template; }  // empty: an encoder

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

// All pieces together.
std::string JoinPieces(std::span<const ChatPiece> pieces);

// The prompt as one string, for showing; Render() keeps apart what must not be mixed.
[[nodiscard]] Result<std::string> RenderChat(const ChatModel& model,
                                             std::span<const ChatMessage> messages,
                                             const ChatOptions& options = {});

}  // namespace latte
