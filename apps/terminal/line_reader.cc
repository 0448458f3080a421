#include "apps/terminal/line_reader.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

namespace latte {
namespace {

constexpr size_t kMaxLineBytes = size_t{64} << 20;

}  // namespace

Result<LineEvent> LineReader::Next(std::string_view prompt, std::string* line) {
  if (shows_prompt_) std::fwrite(prompt.data(), 1, prompt.size(), stderr);
  while (true) {
    const size_t newline = buffer_.find('\n', searched_);
    if (newline != std::string::npos || (ended_ && !buffer_.empty())) {
      *line = buffer_.substr(0, newline);
      buffer_.erase(0, newline == std::string::npos ? newline : newline + 1);
      searched_ = 0;
      if (line->ends_with('\r')) line->pop_back();
      return LineEvent::kLine;
    }
    if (ended_) return LineEvent::kEnd;
    searched_ = buffer_.size();
    if (searched_ > kMaxLineBytes)
      return Corrupt(fmt::format("standard input: expected lines of at most {} bytes, found more",
                                 kMaxLineBytes));
    // poll ignores a negative descriptor
    pollfd ready[] = {{fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}};
    const bool polled = poll(ready, 2, -1) >= 0;
    if (polled && ready[1].revents != 0) return LineEvent::kInterrupted;
    char bytes[1 << 16];
    const ssize_t n = polled ? read(fd_, bytes, sizeof(bytes)) : -1;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return Fail(Code::kUnavailable,
                  fmt::format("standard input: cannot be read: {}", std::strerror(errno)));
    ended_ = n == 0;
    buffer_.append(bytes, static_cast<size_t>(n));
  }
}

}  // namespace latte
