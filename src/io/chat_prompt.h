// Conversations to the token ids that a model reads: a checkpoint's tokenizer and its chat format
// as one thing. Only what the format wrote can become a special token (chat.h). Also knows which
// tokens end an answer. Keeps no history and runs no model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "latte/status.h"

#include "src/io/chat.h"
#include "src/io/model_config.h"
#include "src/io/tokenizer.h"

namespace latte {

struct ChatPrompt {
  std::vector<int32_t> ids;
  bool in_thought = false;  // the prompt ends with an opened <think>: the answer begins inside it
};

// Immutable, thread-safe. Copies are cheap.
class ChatPromptBuilder {
 public:
  // Errors: of ChatRenderer::Create; kUnsupported for a checkpoint without a chat template whose
  // family has no format here.
  [[nodiscard]] static Result<ChatPromptBuilder> Create(const Tokenizer& tokenizer,
                                                        const ModelConfig& config);

  // Errors: of ChatRenderer::Render and Tokenizer::EncodePieces.
  [[nodiscard]] Result<ChatPrompt> Build(std::span<const ChatMessage> messages,
                                         const ChatOptions& options = {}) const;

  // What ends an answer: the ids of config.json and generation_config.json, the tokenizer's
  // end-of-sequence token, and the token that the format puts after an answer (Kimi's <|im_end|>,
  // which some checkpoints name nowhere else).
  const std::vector<int64_t>& stop_tokens() const { return stop_tokens_; }

  // Whether ChatOptions::thinking changes this format's prompts.
  bool has_thinking_switch() const { return has_thinking_switch_; }

  const Tokenizer& tokenizer() const { return tokenizer_; }
  ChatFormat format() const { return renderer_.format(); }

 private:
  ChatPromptBuilder(const Tokenizer& tokenizer, ChatRenderer renderer)
      : tokenizer_(tokenizer), renderer_(std::move(renderer)) {}
  std::optional<int32_t> TokenAfterAnswers() const;
  bool FindThinkingSwitch() const;

  Tokenizer tokenizer_;
  ChatRenderer renderer_;
  std::vector<int64_t> stop_tokens_;
  bool has_thinking_switch_ = false;
};

}  // namespace latte
