// Lines of a file descriptor, as they come: a terminal, a pipe or a file. Refuses lines of more
// than 64 MiB.
#pragma once

#include <string>

#include "latte/status.h"

namespace latte {

// Thread-compatible.
class LineReader {
 public:
  // Waiting for a line also ends when `wake_fd` becomes readable; -1: there is none.
  explicit LineReader(int fd, int wake_fd = -1) : fd_(fd), wake_fd_(wake_fd) {}

  enum class Event {
    kLine,
    kEnd,         // also after a last line without a newline
    kInterrupted  // wake_fd is readable; the caller reads it
  };

  // Waits for a line and stores it without its line end ("\n" or "\r\n").
  // Errors: kUnavailable when reading fails; kCorrupt for a line that is too long.
  [[nodiscard]] Result<Event> Next(std::string* line);

 private:
  int fd_;
  int wake_fd_;
  std::string buffer_;   // what was read and not yet handed out
  size_t searched_ = 0;  // no newline before it
  bool ended_ = false;
};

}  // namespace latte
