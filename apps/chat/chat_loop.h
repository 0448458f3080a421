// The loop of a conversation, in a terminal or through a pipe, with a local model or a server.
// Standard output carries only answers; prompts, notes and errors go to standard error.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "latte/status.h"

#include "apps/terminal/interrupts.h"
#include "apps/terminal/line_source.h"
#include "src/session/conversation.h"

namespace latte {

// What /help prints: the commands and the keys.
std::string ChatHelp();

struct ChatLoopOptions {
  std::string model;         // its name
  std::string hint;          // shown once in a terminal, before the first prompt; may be empty
  int64_t context = 0;       // tokens of the conversation; 0: not known
  bool stats = false;        // print speeds after every answer
  bool plain = false;        // Markdown of answers stays as it is written
  bool interactive = false;  // errors do not end the conversation
};

class ChatLoop {
 public:
  // `interrupts` has a descriptor only in a terminal. Both must outlive the loop.
  ChatLoop(Conversation* chat, const Interrupts& interrupts, ChatLoopOptions options);

  // Answers the messages of `lines`, and obeys their commands.
  // Errors: the first one; if interactive, only lost input or output.
  [[nodiscard]] Status Run(LineSource* lines);

  // Asks once and prints the answer.
  [[nodiscard]] Status Answer(std::string message);

  // One command each; `argument` is what follows its name.
  Status Help(const std::string& argument);
  Status Reset(const std::string& argument);
  Status Undo(const std::string& argument);
  Status Regenerate(const std::string& argument);
  Status System(const std::string& argument);
  Status SetParameter(const std::string& argument);
  Status Stats(const std::string& argument);
  Status Save(const std::string& argument);
  Status Load(const std::string& argument);
  Status Exit(const std::string& argument);

 private:
  Status Obey(const std::string& line);
  void NoteEnd(const ChatAnswer& answer) const;
  void NoteStats(const ChatAnswer& answer) const;

  Conversation* chat_;
  const Interrupts& interrupts_;
  ChatLoopOptions options_;
  bool output_lost_ = false;
  bool exits_ = false;
  bool takes_commands_ = false;
  std::optional<ChatAnswer> last_;
  std::set<std::string> noted_;  // notes that were shown already
};

}  // namespace latte
