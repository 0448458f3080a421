// The front of a conversation, in a terminal or through a pipe, wherever the answers are made.
// Standard output carries only answers; prompts, notes and errors go to standard error.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "latte/status.h"

#include "apps/terminal/interrupts.h"
#include "src/jobs/conversation.h"

namespace latte {

inline constexpr const char* kChatHelp =
    "/reset  clear the conversation\n"
    "/undo   remove the last question and its answer\n"
    "/exit   leave (so does Ctrl-D)\n"
    "/help   this list\n"
    "Ctrl-C stops an answer. To send a message that begins with /, type //.\n";

struct ChatLoopOptions {
  std::string model;    // its name
  int64_t context = 0;  // tokens of the conversation; 0: not known
  bool stats = false;   // print speeds after every answer
};

class ChatLoop {
 public:
  // `interrupts` has a descriptor only in a terminal. Both must outlive the loop.
  ChatLoop(Conversation* chat, const Interrupts& interrupts, ChatLoopOptions options);

  // Errors: in a pipe, the first error; in a terminal, only lost input or output.
  [[nodiscard]] Status Run();

 private:
  Status Handle(const std::string& line);
  Status Answer(std::string message);
  void NoteEnd(const ChatAnswer& answer) const;
  void NoteStats(const ChatAnswer& answer) const;

  Conversation* chat_;
  const Interrupts& interrupts_;
  ChatLoopOptions options_;
  bool terminal_;
  bool output_lost_ = false;
  std::set<std::string> noted_;  // notes that were shown already
};

}  // namespace latte
