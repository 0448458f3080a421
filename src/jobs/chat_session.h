// A conversation with a model: history in, answers out. Holds the messages, renders them anew for
// every turn and reuses what the cache still holds of them. Knows nothing of terminals.
//
// Whole pages of a turn's prompt that the engine's prefix cache holds are not computed again, the
// last answer's among them. Under Determinism::kStrict only those are kept that were computed as a
// prompt, and a turn's answer is then the one that a fresh engine gives to the whole conversation as
// one prompt, byte for byte.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/request.h"

#include "src/chat/answer_message.h"
#include "src/chat/prompt.h"
#include "src/engine/complete.h"

namespace latte {

struct ChatSettings {
  std::optional<std::string> system;
  std::optional<bool> thinking;  // none: as the format does by itself
  SamplingParams sampling;
  int64_t max_new_tokens = 1024;  // of one answer
  int64_t context = 4096;         // most tokens that are computed, as ResolveOptionsForOne was told
  bool keep_special = false;      // special tokens are part of an answer's text
};

enum class ChatEnd {
  kStop,         // the model ended its answer
  kLength,       // max_new_tokens
  kContextFull,  // no room for another token
  kCancelled     // the callback said so
};

struct ChatAnswer {
  std::string text;             // as it was streamed, reasoning included
  std::vector<int32_t> tokens;  // without the one that ended it
  ChatEnd end = ChatEnd::kStop;
  int64_t prompt_tokens = 0;       // of the whole conversation
  int64_t reused_tokens = 0;       // of them, found in the cache
  std::vector<std::string> notes;  // ChatPrompt::notes
  double prompt_seconds = 0;       // until the first token: time to first token
  double generate_seconds = 0;
};

// Engine-thread only.
class ChatSession {
 public:
  // `engine` must outlive it and serve nothing else. It has the builder's tokenizer.
  // Errors: kInvalidArgument for settings out of range, for a choice of thinking where the format
  // has none, and for a system text that the format refuses.
  [[nodiscard]] static Result<ChatSession> Create(ChatPromptBuilder builder, Engine* engine,
                                                  ChatSettings settings);

  // Called after every step, prompt chunks included, with the text that became ready, often none;
  // false ends the answer there.
  using Callback = std::function<bool(std::string_view text)>;

  // Asks and keeps both messages, a cut or cancelled answer as far as it got. What failed, or was
  // cancelled before the first token, leaves no trace in the history.
  // Errors: kExhausted when the conversation leaves no room for an answer; of
  // ChatPromptBuilder::Build and Complete.
  [[nodiscard]] Result<ChatAnswer> Ask(std::string text, const Callback& on_step = {});

  void Reset();  // forgets all but the system message
  bool Undo();   // forgets the last question and its answer; false if there is none

  const std::vector<ChatMessage>& messages() const { return messages_; }

 private:
  ChatSession(ChatPromptBuilder builder, Engine* engine, ChatSettings settings);
  Result<ChatPrompt> BuildPrompt() const;
  Result<ChatAnswer> Answer(const ChatPrompt& prompt, const Callback& on_step);
  Request RequestFor(const ChatPrompt& prompt) const;

  ChatPromptBuilder builder_;
  Engine* engine_;
  ChatSettings settings_;
  std::vector<ChatMessage> messages_;
};

}  // namespace latte
