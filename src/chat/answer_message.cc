#include "src/chat/answer_message.h"

#include <algorithm>

namespace latte {

ChatMessage AnswerMessage(std::string_view text, bool in_thought) {
  constexpr std::string_view kOpen = "<think>";
  constexpr std::string_view kClose = "</think>";
  ChatMessage message;
  message.role = "assistant";
  std::string_view rest = text;
  if (!in_thought) {
    const size_t begin = std::min(rest.find_first_not_of(" \t\r\n"), rest.size());
    if (!rest.substr(begin).starts_with(kOpen)) {
      message.content = std::string(text);
      return message;
    }
    rest.remove_prefix(begin + kOpen.size());
  }
  const size_t close = rest.find(kClose);  // npos: the answer ended inside its reasoning
  message.content = "";
  message.reasoning = std::string(rest.substr(0, close));
  if (close != std::string_view::npos)
    message.content = std::string(rest.substr(close + kClose.size()));
  return message;
}

}  // namespace latte
