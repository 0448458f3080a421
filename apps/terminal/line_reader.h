// Reads lines from a file descriptor (a terminal, a pipe or a file) as they arrive. Refuses lines
// longer than 64 MiB.
#pragma once

#include <string>

#include "latte/status.h"

namespace latte {

// Thread-compatible.
class LineReader {
 public:
  // The wait for a line also ends if `wake_fd` becomes readable; -1: none.
  explicit LineReader(int fd, int wake_fd = -1) : fd_(fd), wake_fd_(wake_fd) {}

  enum class Event {
    kLine,
    kEnd,         // also after a last line without a newline
    kInterrupted  // wake_fd is readable; the caller must read it
  };

  // Waits for a line and stores it without its line end ("\n" or "\r\n").
  // Errors: kUnavailable if reading fails; kCorrupt if the line is too long.
  [[nodiscard]] Result<Event> Next(std::string* line);

 private:
  int fd_;
  int wake_fd_;
  std::string buffer_;   // bytes read but not yet returned
  size_t searched_ = 0;  // no newline before this offset
  bool ended_ = false;
};

}  // namespace latte
