// Converts conversations to the token ids that a model reads, with a checkpoint's tokenizer and its
// chat format. Only text of the format can become a special token (template_format.h). Also knows
// the tokens that end an answer. Keeps no history and runs no model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "latte/status.h"

#include "src/chat/arrange.h"
#include "src/chat/check.h"
#include "src/chat/template_format.h"
#include "src/chat/tools/tool_syntax.h"
#include "src/checkpoint/config/model_config.h"
#include "src/text/tokenizer.h"

namespace latte {

struct ChatPrompt {
  std::vector<int32_t> ids;
  bool in_thought = false;  // the prompt ends with an open <think>: the answer begins inside it
  std::vector<std::string> notes;  // parts that the format leaves out and the model can do without
};

// Immutable, thread-safe. Copies are cheap.
class ChatPromptBuilder {
 public:
  // Errors: of Tokenizer::CheckChatTemplate and ChatRenderer::Create; kUnsupported if the
  // checkpoint has no chat template and Latte has no format for its family.
  [[nodiscard]] static Result<ChatPromptBuilder> Create(const Tokenizer& tokenizer,
                                                        const ModelConfig& config);
  // The same with another template than the checkpoint's.
  [[nodiscard]] static Result<ChatPromptBuilder> Create(const Tokenizer& tokenizer,
                                                        const ModelConfig& config,
                                                        const std::string& chat_template);

  // The conversation as this format can write it: results of tools behind their calls, ids of calls
  // as the model reads them, system messages before the answer that they instruct.
  // Errors: of ArrangeToolResults.
  [[nodiscard]] Result<ArrangedChat> Arrange(std::span<const ChatMessage> messages) const;

  // The prompt contains all instructions and questions, unless the format shows no message at all.
  // The role developer becomes system if the format has only that. Answers that the format leaves
  // out are listed in `notes`.
  // Errors: of ChatRenderer::Render and Tokenizer::EncodePieces; kInvalidArgument naming place and
  // role of a message whose text or calls the format leaves out; kUnsupported for a conversation
  // that ends with a closed answer, after which the format opens no other.
  [[nodiscard]] Result<ChatPrompt> Build(std::span<const ChatMessage> messages,
                                         const ChatOptions& options = {}) const;

  // The tokens that end an answer: the ids of config.json and generation_config.json, the
  // tokenizer's end-of-sequence token, and the token that the format puts after an answer (Kimi's
  // <|im_end|>, which some checkpoints name nowhere else).
  const std::vector<int64_t>& stop_tokens() const { return stop_tokens_; }

  // Parts of the checkpoint's chat templates that are not used, as sentences for the user; usually
  // none.
  std::vector<std::string> UnusedFeatures() const;

  // Whether ChatOptions::thinking changes this format's prompts.
  bool has_thinking_switch() const { return has_thinking_switch_; }

  // Whether answers begin inside reasoning if ChatOptions::thinking is not set.
  bool thinks_by_itself() const { return thinks_by_itself_; }

  // How the model calls functions; nullopt: in no way that Latte can read.
  std::optional<ToolFormat> tool_format() const { return tool_format_; }

  // Whether prompts contain ChatOptions::tools.
  bool shows_tools() const { return shows_tools_; }

  // Whether a mark of the calls is a special token, which is no text unless special tokens are
  // kept.
  bool hides_calls() const { return hides_calls_; }

  const Tokenizer& tokenizer() const { return tokenizer_; }
  ChatFormat format() const { return renderer_.format(); }
  const std::string& chat_template() const { return renderer_.chat_template(); }

 private:
  static Result<ChatPromptBuilder> CreateFor(const Tokenizer& tokenizer, const ModelConfig& config,
                                             const ChatModel& model);
  ChatPromptBuilder(const Tokenizer& tokenizer, ChatRenderer renderer)
      : tokenizer_(tokenizer), renderer_(std::move(renderer)) {}
  Result<ChatPrompt> BuildFrom(std::span<const ChatMessage> messages,
                               const ChatOptions& options) const;
  // Errors: kInvalidArgument naming the missing part.
  Result<std::vector<std::string>> NotesOn(std::span<const ChatMessage> messages,
                                           const ChatOptions& options,
                                           std::span<const TextPiece> prompt) const;
  bool CanDoWithout(const Unshown& left, std::string_view role) const;
  Status CheckEnd(std::span<const ChatMessage> messages, const ChatOptions& options,
                  std::span<const TextPiece> prompt) const;
  bool OpensBeforeSystem() const;
  bool ShowsDevelopers() const;
  std::optional<int32_t> TokenAfterAnswers() const;
  bool FindThinkingSwitch() const;
  bool ShowsTools() const;
  bool HidesCalls() const;

  Tokenizer tokenizer_;
  ChatRenderer renderer_;
  std::vector<int64_t> stop_tokens_;
  bool has_thinking_switch_ = false;
  bool thinks_by_itself_ = false;
  bool shows_messages_ = true;  // false: it does not even show a question; such a format is not
                                // checked
  bool developer_is_system_ = false;
  bool opens_before_system_ = false;
  std::optional<ToolFormat> tool_format_;
  bool shows_tools_ = false;
  bool hides_calls_ = false;
};

}  // namespace latte
