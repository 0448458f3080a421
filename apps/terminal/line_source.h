// The source of the lines of a conversation.
#pragma once

#include <string>
#include <string_view>

#include "latte/status.h"

namespace latte {

enum class LineEvent {
  kLine,
  kPaste,       // a line that begins with a paste of several lines: text, no command
  kEnd,         // also after a last line without a newline
  kInterrupted  // Ctrl-C; the line so far is discarded
};

class LineSource {
 public:
  virtual ~LineSource() = default;

  // Shows `prompt`, waits for a line and stores it without its line end. A line of an editor may
  // contain newlines. Errors: kUnavailable if reading fails; kCorrupt if the line is too long.
  [[nodiscard]] virtual Result<LineEvent> Next(std::string_view prompt, std::string* line) = 0;

  // Keeps a message for the history, if there is one: its lines as one text. A source keeps no line
  // by itself.
  virtual void Remember(const std::string& message) { static_cast<void>(message); }

 protected:
  LineSource() = default;
  LineSource(const LineSource&) = delete;
  LineSource& operator=(const LineSource&) = delete;
};

}  // namespace latte
