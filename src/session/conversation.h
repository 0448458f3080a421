// The interface of a conversation with a local model or a server. Independent of terminals.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "latte/request.h"
#include "latte/status.h"

#include "src/chat/answer_splitter.h"

namespace latte {

enum class ChatEnd {
  kStop,         // the model ended its answer
  kLength,       // the limit of tokens per answer
  kContextFull,  // no room for another token
  kCancelled     // the callback returned false
};

struct ChatAnswer {
  std::string text;             // as streamed, including reasoning and its marks
  std::vector<int32_t> tokens;  // without the token that ended the answer; empty if not known
  ChatEnd end = ChatEnd::kStop;
  int64_t generated_tokens = 0;
  int64_t prompt_tokens = 0;  // of the whole conversation
  int64_t reused_tokens = 0;  // of them, tokens found in the cache
  int64_t computed_tokens =
      0;  // of the others, those that were computed: all, unless it was cancelled
  std::vector<std::string> notes;  // what of the conversation the chat format lost
  double prompt_seconds = 0;       // time to first token
  double generate_seconds = 0;
};

// How answers are sampled and when they end.
struct ChatParams {
  SamplingParams sampling;
  StopConditions stop;
  // The names of the fields that the user chose. A server gets these only.
  std::set<std::string, std::less<>> chosen;
};

// New tokens of a prompt.
struct PromptProgress {
  int64_t done = 0;
  int64_t total = 0;  // 0: not known
};

class Conversation {
 public:
  // Called again and again while an answer is made, with the reasoning and the content that are
  // ready (often nothing); returning false ends the answer.
  using Callback = std::function<bool(const AnswerPiece& piece)>;

  virtual ~Conversation() = default;

  // Sends a question and keeps both messages; a cut or cancelled answer is kept as far as it was
  // generated. A question that fails, or is cancelled before the first token, is not kept.
  [[nodiscard]] virtual Result<ChatAnswer> Ask(std::string text, const Callback& on_step) = 0;
  virtual void Reset() = 0;  // removes all messages except the system message
  virtual bool Undo() = 0;   // removes the last question and its answer; false if there is none

  // How much of the last question's prompt has been computed.
  virtual PromptProgress prompt_progress() const { return {}; }

  // The system message, if there is one, and then questions and answers in turn.
  virtual std::vector<ChatMessage> Messages() const = 0;
  // Replaces all of them. They are in the order of Messages. Errors: of the chat format; the
  // conversation stays.
  [[nodiscard]] virtual Status SetMessages(std::vector<ChatMessage> messages) = 0;
  // Replaces the system message, also for the time after Reset; null: none. Errors: as SetMessages.
  [[nodiscard]] virtual Status SetSystem(std::optional<std::string> text) = 0;

  virtual const ChatParams& params() const = 0;
  // Whether a server chooses the parameters that are not in params().chosen. Their values here mean
  // nothing.
  virtual bool leaves_rest_to_server() const { return false; }
  // Errors: kInvalidArgument naming the field; the parameters stay.
  [[nodiscard]] virtual Status SetParams(ChatParams params) = 0;

 protected:
  Conversation() = default;
  Conversation(const Conversation&) = default;
  Conversation(Conversation&&) = default;
  Conversation& operator=(const Conversation&) = default;
  Conversation& operator=(Conversation&&) = default;
};

// The text of the system message; null if `messages` begin with another one.
std::optional<std::string> SystemText(const std::vector<ChatMessage>& messages);
// The messages with this system message instead of theirs.
std::vector<ChatMessage> WithSystem(std::vector<ChatMessage> messages,
                                    std::optional<std::string> text);
// Errors: kInvalidArgument naming the field.
[[nodiscard]] Status CheckParams(const ChatParams& params);

}  // namespace latte
