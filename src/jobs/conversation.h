// A conversation, wherever its answers are made. Knows nothing of terminals.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

namespace latte {

enum class ChatEnd {
  kStop,         // the model ended its answer
  kLength,       // the limit of tokens per answer
  kContextFull,  // no room for another token
  kCancelled     // the callback returned false
};

struct ChatAnswer {
  std::string text;             // as streamed, including reasoning
  std::vector<int32_t> tokens;  // without the token that ended the answer; empty if not known
  ChatEnd end = ChatEnd::kStop;
  int64_t generated_tokens = 0;
  int64_t prompt_tokens = 0;       // of the whole conversation
  int64_t reused_tokens = 0;       // of them, tokens found in the cache
  std::vector<std::string> notes;  // what of the conversation the chat format lost
  double prompt_seconds = 0;       // time to first token
  double generate_seconds = 0;
};

class Conversation {
 public:
  // Called again and again while an answer is made, with the text that is ready (often empty);
  // returning false ends the answer.
  using Callback = std::function<bool(std::string_view text)>;

  virtual ~Conversation() = default;

  // Sends a question and keeps both messages; a cut or cancelled answer is kept as far as it was
  // generated. A question that fails, or is cancelled before the first token, is not kept.
  [[nodiscard]] virtual Result<ChatAnswer> Ask(std::string text, const Callback& on_step) = 0;
  virtual void Reset() = 0;  // removes all messages except the system message
  virtual bool Undo() = 0;   // removes the last question and its answer; false if there is none

 protected:
  Conversation() = default;
  Conversation(const Conversation&) = default;
  Conversation(Conversation&&) = default;
  Conversation& operator=(const Conversation&) = default;
  Conversation& operator=(Conversation&&) = default;
};

}  // namespace latte
