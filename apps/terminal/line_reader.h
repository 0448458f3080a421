// Reads lines from a file descriptor (a terminal, a pipe or a file) as they arrive. Refuses lines
// longer than 64 MiB.
#pragma once

#include <string>

#include "apps/terminal/line_source.h"

namespace latte {

// Thread-compatible.
class LineReader final : public LineSource {
 public:
  // The wait for a line also ends if `wake_fd` becomes readable; -1: none. The caller must read it.
  // `shows_prompt`: writes the prompt to standard error.
  LineReader(int fd, int wake_fd, bool shows_prompt)
      : fd_(fd), wake_fd_(wake_fd), shows_prompt_(shows_prompt) {}

  [[nodiscard]] Result<LineEvent> Next(std::string_view prompt, std::string* line) override;

 private:
  int fd_;
  int wake_fd_;
  bool shows_prompt_;
  std::string buffer_;   // bytes read but not yet returned
  size_t searched_ = 0;  // no newline before this offset
  bool ended_ = false;
};

}  // namespace latte
