// Reads the messages of a conversation: one per line, several lines between two """, or a paste.
#pragma once

#include <string>

#include "latte/status.h"

#include "apps/terminal/line_source.h"

namespace latte {

class MessageReader {
 public:
  explicit MessageReader(LineSource* lines) : lines_(lines) {}

  struct Message {
    LineEvent event = LineEvent::kEnd;
    std::string text;             // with kLine
    bool quoted = false;          // between """ or pasted: no command
    bool between_quotes = false;  // between """
  };
  // Reads the next one, and lets the source remember it. Errors: of LineSource; kInvalidArgument if
  // the input ends before the closing """.
  [[nodiscard]] Result<Message> Next();

 private:
  Result<Message> Read();

  LineSource* lines_;
};

}  // namespace latte
