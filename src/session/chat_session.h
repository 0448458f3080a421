// A conversation with a model. Holds the messages, renders them for every turn and reuses the
// cached part.
//
// The engine's prefix cache keeps whole pages of earlier turns, including the last answer, so they
// are not computed again. Under Determinism::kStrict it keeps only pages that were computed as a
// prompt; the answer of a turn then equals, byte for byte, the answer that a fresh engine gives to
// the whole conversation as one prompt.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "latte/request.h"

#include "src/chat/prompt.h"
#include "src/engine/core/complete.h"
#include "src/session/conversation.h"

namespace latte {

struct ChatSettings {
  std::optional<std::string> system;
  std::optional<bool> thinking;  // not set: the default of the format
  ChatParams params;
  int64_t context = 4096;     // maximum number of computed tokens, as resolved for one sequence
  bool keep_special = false;  // the text of an answer includes special tokens
};

// Engine-thread only.
class ChatSession final : public Conversation {
 public:
  // `engine` must outlive this object and serve nothing else. It has the builder's tokenizer.
  // Errors: kInvalidArgument for settings out of range, for `thinking` if the format has no such
  // switch, and for a system text that the format refuses.
  [[nodiscard]] static Result<ChatSession> Create(ChatPromptBuilder builder, Engine* engine,
                                                  ChatSettings settings);

  // `on_step` is called after every step, including prompt chunks.
  // Errors: kExhausted if the conversation leaves no room for an answer; of
  // ChatPromptBuilder::Build and Complete.
  [[nodiscard]] Result<ChatAnswer> Ask(std::string text, const Callback& on_step = {}) override;

  void Reset() override;
  bool Undo() override;
  PromptProgress prompt_progress() const override;

  std::vector<ChatMessage> Messages() const override { return messages_; }
  [[nodiscard]] Status SetMessages(std::vector<ChatMessage> messages) override;
  [[nodiscard]] Status SetSystem(std::optional<std::string> text) override;
  const ChatParams& params() const override { return settings_.params; }
  [[nodiscard]] Status SetParams(ChatParams params) override;

 private:
  ChatSession(ChatPromptBuilder builder, Engine* engine, ChatSettings settings);
  Result<ChatPrompt> BuildPrompt() const;
  Status CheckFormat(const std::vector<ChatMessage>& messages) const;
  Result<ChatAnswer> Answer(const ChatPrompt& prompt, const Callback& on_step);
  Request RequestFor(const ChatPrompt& prompt) const;

  ChatPromptBuilder builder_;
  Engine* engine_;
  ChatSettings settings_;
  std::vector<ChatMessage> messages_;
  // Counts when the last question was asked.
  int64_t prompt_tokens_ = 0;
  int64_t computed_before_ = 0;
  int64_t cached_before_ = 0;
};

}  // namespace latte
