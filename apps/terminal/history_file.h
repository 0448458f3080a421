// The messages of earlier runs, in a file that several processes may use at once.
#pragma once

#include <string>
#include <vector>

#include "latte/status.h"

namespace latte {

// $XDG_STATE_HOME/latte/history or ~/.local/state/latte/history; empty if neither variable is set.
std::string HistoryPath();

// One JSON string per line, oldest first; readable by its owner alone. Keeps the last 1,000
// messages of at most 64 KiB.
class HistoryFile {
 public:
  static constexpr size_t kMessages = 1000;
  static constexpr size_t kMessageBytes = 64 << 10;

  explicit HistoryFile(std::string path) : path_(std::move(path)) {}  // empty: keeps nothing

  // The messages; lines that are none are left out. Shortens a file that has grown to twice its
  // size. Errors: kUnavailable with the system's reason; no file is no error.
  [[nodiscard]] Result<std::vector<std::string>> Load() const;

  // Adds a message at the end; one that is too long is not kept. Errors: as Load.
  [[nodiscard]] Status Append(const std::string& message) const;

 private:
  std::string path_;
};

}  // namespace latte
