// Where the lines of a conversation come from.
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

  // Shows `prompt`, waits for a line and stores it without its line end. A line of an editor may contain newlines.
  // Errors: kUnavailable if reading fails; kCorrupt if the line is too long.
  [[nodiscard]] virtual Result<LineEvent> Next(std::string_view prompt, std::string* line) = 0;

 protected:
  LineSource() = default;
  LineSource(const LineSource&) = delete;
  LineSource& operator=(const LineSource&) = delete;
};

}  // namespace latte
