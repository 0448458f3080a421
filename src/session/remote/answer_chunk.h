// The answers of servers with the OpenAI API: the events of a stream, or one body.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "latte/status.h"

namespace latte {

struct AnswerUsage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t cached_tokens = 0;
};

// One event of a stream, or the body of an answer.
struct AnswerChunk {
  bool has_choice = false;    // false: the event with the usage alone
  bool has_text = false;      // there is a text, even if it is empty
  bool has_role = false;      // the first event of a chat answer, by itself without text
  std::string text;           // of the answer
  std::string reasoning;      // before it
  std::string finish_reason;  // empty: the answer goes on
  std::optional<AnswerUsage> usage;

  // The event stands for tokens: it has text, or the server sends one event for each token, and
  // this one's text is not complete yet.
  bool is_token() const {
    if (!text.empty() || !reasoning.empty()) return true;
    return has_text && !has_role && finish_reason.empty();
  }
};

inline constexpr std::string_view kAnswerDone = "[DONE]";  // the data of the last event

// Reads choice 0; members that are not known are ignored. Errors: kCorrupt for what is no JSON
// object; kUnavailable with the server's message for an event that reports an error.
[[nodiscard]] Result<AnswerChunk> ParseAnswerChunk(std::string_view data);

}  // namespace latte
