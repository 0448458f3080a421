#include "apps/terminal/transfer_progress.h"

#include <cstdio>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace latte {
namespace {

constexpr auto kSparse = std::chrono::seconds(30);

// One less than the terminal has, so that the cursor stays on the line.
size_t Columns() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return 79;
  return size.ws_col - 1u;
}

}  // namespace

TransferProgress::TransferProgress(bool quiet)
    : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0), start_(Clock::now()), shown_(start_) {}

TransferProgress::~TransferProgress() { End(); }

void TransferProgress::Show(int64_t done, int64_t total) {
  if (quiet_) return;
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  rate_.Add(std::chrono::duration<double>(now - start_).count(), done);
  if (!terminal_ && now - shown_ < kSparse) return;
  shown_ = now;
  const std::string line = ProgressText(done, total, rate_.Get(), terminal_ ? Columns() : 200);
  if (line == last_) return;
  std::fputs(terminal_ ? fmt::format("\r\x1b[K{}", line).c_str() : (line + "\n").c_str(), stderr);
  if (terminal_) last_ = line;
}

void TransferProgress::Clear() {
  if (!last_.empty()) std::fputs("\r\x1b[K", stderr);
  last_.clear();
}

void TransferProgress::Note(const std::string& line) {
  const std::lock_guard lock(mutex_);
  Clear();
  std::fputs(fmt::format("latte: note: {}\n", line).c_str(), stderr);
}

void TransferProgress::End() {
  const std::lock_guard lock(mutex_);
  if (!last_.empty()) std::fputs("\n", stderr);
  last_.clear();
}

}  // namespace latte
