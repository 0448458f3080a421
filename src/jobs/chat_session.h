// A conversation with a model. Holds the messages, renders them for every turn and reuses the
// cached part. Knows nothing of terminals.
//
// The engine's prefix cache keeps whole pages of earlier turns, including the last answer, so they
// are not computed again. Under Determinism::kStrict it keeps only pages that were computed as a
// prompt; the answer of a turn then equals, byte for byte, the answer that a fresh engine gives to
// the whole conversation as one prompt.
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
  std::optional<bool> thinking;  // not set: the default of the format
  SamplingParams sampling;
  int64_t max_new_tokens = 1024;  // per answer
  int64_t context = 4096;         // maximum number of computed tokens, as resolved for one sequence
  bool keep_special = false;      // the text of an answer includes special tokens
};

enum class ChatEnd {
  kStop,         // the model ended its answer
  kLength,       // max_new_tokens
  kContextFull,  // no room for another token
  kCancelled     // the callback returned false
};

struct ChatAnswer {
  std::string text;             // as streamed, including reasoning
  std::vector<int32_t> tokens;  // without the token that ended the answer
  ChatEnd end = ChatEnd::kStop;
  int64_t prompt_tokens = 0;       // of the whole conversation
  int64_t reused_tokens = 0;       // of them, tokens found in the cache
  std::vector<std::string> notes;  // ChatPrompt::notes
  double prompt_seconds = 0;       // time to first token
  double generate_seconds = 0;
};

// Engine-thread only.
class ChatSession {
 public:
  // `engine` must outlive this object and serve nothing else. It has the builder's tokenizer.
  // Errors: kInvalidArgument for settings out of range, for `thinking` if the format has no such
  // switch, and for a system text that the format refuses.
  [[nodiscard]] static Result<ChatSession> Create(ChatPromptBuilder builder, Engine* engine,
                                                  ChatSettings settings);

  // Called after every step, including prompt chunks, with the text that is ready (often empty);
  // returning false ends the answer.
  using Callback = std::function<bool(std::string_view text)>;

  // Sends a question and keeps both messages; a cut or cancelled answer is kept as far as it was
  // generated. A question that fails, or is cancelled before the first token, is not kept.
  // Errors: kExhausted if the conversation leaves no room for an answer; of
  // ChatPromptBuilder::Build and Complete.
  [[nodiscard]] Result<ChatAnswer> Ask(std::string text, const Callback& on_step = {});

  void Reset();  // removes all messages except the system message
  bool Undo();   // removes the last question and its answer; false if there is none

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
