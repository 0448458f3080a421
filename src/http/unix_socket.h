// The file of a Unix socket: replaced when it is stale, removed when its owner ends.
#pragma once

#include <string>
#include <utility>

#include "latte/status.h"

namespace latte {

class UnixSocketPath {
 public:
  // Removes a socket at `path` that no process listens on. Errors: kInvalidArgument for a path that is
  // too long or names something else than a socket; kUnavailable if another process listens on it.
  [[nodiscard]] static Result<UnixSocketPath> Prepare(const std::string& path);

  UnixSocketPath(UnixSocketPath&& other) noexcept
      : path_(std::move(other.path_)), owned_(std::exchange(other.owned_, false)) {}
  UnixSocketPath& operator=(UnixSocketPath&&) = delete;
  ~UnixSocketPath();

  // The socket now exists: it is for this user only, and goes with this object.
  void Own();

 private:
  explicit UnixSocketPath(std::string path) : path_(std::move(path)) {}

  std::string path_;
  bool owned_ = false;
};

}  // namespace latte
