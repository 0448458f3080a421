// The file of a Unix socket: replaced when it is stale, removed when its owner ends.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <sys/types.h>

#include "latte/status.h"

namespace latte {

class UnixSocketPath {
 public:
  // Removes a socket at `path` that no process listens on. Errors: kInvalidArgument for a path that
  // is too long or names something else than a socket; kUnavailable if another process listens on
  // it.
  [[nodiscard]] static Result<UnixSocketPath> Prepare(const std::string& path);

  UnixSocketPath(UnixSocketPath&& other) noexcept
      : path_(std::move(other.path_)), file_(std::exchange(other.file_, std::nullopt)) {}
  UnixSocketPath& operator=(UnixSocketPath&&) = delete;
  ~UnixSocketPath();

  // The socket now exists: it is for this user only, and goes with this object.
  void Own();

 private:
  explicit UnixSocketPath(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::optional<std::pair<dev_t, ino_t>> file_;  // once owned
};

}  // namespace latte
