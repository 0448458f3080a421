#include "src/http/listen/unix_socket.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace latte {
namespace {

// Whether another process accepts connections at `path`.
bool IsServed(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return true;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int connected = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const bool refused = connected < 0 && errno == ECONNREFUSED;
  ::close(fd);
  return !refused;
}

}  // namespace

Result<UnixSocketPath> UnixSocketPath::Prepare(const std::string& path) {
  constexpr size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() > kMost || path.find('\0') != std::string::npos)
    return InvalidArgument(fmt::format("the path of a Unix socket has at most {} bytes, found {}",
                                       kMost, path.size()));
  struct stat found = {};
  if (::lstat(path.c_str(), &found) != 0) return UnixSocketPath(path);
  if (!S_ISSOCK(found.st_mode))
    return InvalidArgument(path +
                           ": expected no file, or a socket of an ended server, found "
                           "something else; choose another path");
  if (IsServed(path))
    return Fail(Code::kUnavailable, path + ": another program listens on this socket");
  ::unlink(path.c_str());
  return UnixSocketPath(path);
}

void UnixSocketPath::Own() {
  struct stat found = {};
  if (::lstat(path_.c_str(), &found) == 0) file_ = {found.st_dev, found.st_ino};
  ::chmod(path_.c_str(), S_IRUSR | S_IWUSR);
}

UnixSocketPath::~UnixSocketPath() {
  struct stat found = {};
  // Not the socket of a later server at the same path.
  if (file_ && ::lstat(path_.c_str(), &found) == 0 &&
      *file_ == std::pair(found.st_dev, found.st_ino))
    ::unlink(path_.c_str());
}

}  // namespace latte
