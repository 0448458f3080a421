// Progress of a download on standard error: one line that is updated in place on a terminal, a line
// every half minute elsewhere.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "src/hub/progress_text.h"

namespace latte {

// Thread-safe.
class TransferProgress {
 public:
  explicit TransferProgress(bool quiet);
  ~TransferProgress();  // ends the line

  void Show(int64_t done, int64_t total);
  void Note(const std::string& line);  // "latte: note: …" above the progress
  void End();

 private:
  using Clock = std::chrono::steady_clock;
  void Clear();

  const bool quiet_;
  const bool terminal_;
  const Clock::time_point start_;
  std::mutex mutex_;
  Clock::time_point shown_;
  TransferRate rate_;
  std::string last_;  // the line on the terminal; empty: none
};

}  // namespace latte
