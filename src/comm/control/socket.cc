#include "src/comm/control/socket.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kInheritedPrefix = "fd:";
constexpr int kBacklog = 64;
constexpr std::chrono::milliseconds kRetry(50);

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
  std::string unix_path;  // empty: TCP
  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Result<SocketAddress> UnixAddress(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return InvalidArgument(fmt::format("control address unix:{}: expected a path of 1 to {} bytes",
                                       path, sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  SocketAddress out;
  std::memcpy(&out.storage, &address, sizeof address);
  out.length = sizeof address;
  out.unix_path = path;
  return out;
}

Result<SocketAddress> ParseAddress(const std::string& text) {
  if (text.starts_with(kUnix)) return UnixAddress(text.substr(kUnix.size()));
  const size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon);
  uint16_t port = 0;
  const char* end = text.data() + text.size();
  const bool has_port = colon != std::string::npos && colon > 0 && [&] {
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
    return error == std::errc() && stop == end;
  }();
  if (!has_port) {
    return InvalidArgument(
        fmt::format("control address {}: expected unix:/path, host:port or [ipv6]:port", text));
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &list); error != 0) {
    return Fail(Code::kUnavailable,
                fmt::format("control address {}: {}", text, gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(list, freeaddrinfo);
  SocketAddress out;
  std::memcpy(&out.storage, list->ai_addr, list->ai_addrlen);
  out.length = list->ai_addrlen;
  if (out.family() == AF_INET) {
    reinterpret_cast<sockaddr_in*>(&out.storage)->sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6*>(&out.storage)->sin6_port = htons(port);
  }
  return out;
}

tl::unexpected<Error> SystemError(std::string_view what, const std::string& address) {
  return Fail(Code::kUnavailable, fmt::format("cannot {} the control address {}: {}", what, address,
                                              std::strerror(errno)));
}

Socket NewSocket(const SocketAddress& address) {
  Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (address.unix_path.empty()) {
    const int on = 1;
    setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  return socket;
}

// The address with the port that the system has chosen.
std::string BoundAddress(const Socket& socket, const std::string& asked) {
  if (asked.starts_with(kUnix)) return asked;
  sockaddr_storage storage = {};
  socklen_t length = sizeof storage;
  if (getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&storage), &length) != 0) return asked;
  const in_port_t port = storage.ss_family == AF_INET
                             ? reinterpret_cast<sockaddr_in*>(&storage)->sin_port
                             : reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port;
  return fmt::format("{}:{}", asked.substr(0, asked.rfind(':')), ntohs(port));
}

Result<Socket> InheritedSocket(const std::string& address) {
  int fd = -1;
  const char* const end = address.data() + address.size();
  const auto [stop, error] = std::from_chars(address.data() + kInheritedPrefix.size(), end, fd);
  struct stat info = {};
  if (error != std::errc() || stop != end || fd < 0 || fstat(fd, &info) != 0 ||
      !S_ISSOCK(info.st_mode))
    return InvalidArgument(fmt::format(
        "control address {}: expected the number of a socket that this process has inherited",
        address));
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  return Socket(fd);
}

// Only sockets are removed: the path may be a file of the user by mistake.
void RemoveOldSocket(const std::string& path) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) unlink(path.c_str());
}

// Waits until a connection that has begun is made. Returns 0 or an errno.
int FinishConnecting(const Socket& socket, std::chrono::milliseconds most) {
  pollfd wait = {socket.fd(), POLLOUT, 0};
  if (poll(&wait, 1, static_cast<int>(most.count())) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = other.Release();
  }
  return *this;
}

void Socket::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

int Socket::Release() { return std::exchange(fd_, -1); }

Result<Listener> ListenOn(const std::string& address) {
  LATTE_ASSIGN_OR_RETURN(const SocketAddress to, ParseAddress(address));
  Socket socket = NewSocket(to);
  if (socket.fd() < 0) return SystemError("open", address);
  if (!to.unix_path.empty()) RemoveOldSocket(to.unix_path);
  const int on = 1;
  setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(socket.fd(), to.get(), to.length) != 0) return SystemError("bind", address);
  // No process can connect before listen.
  if (!to.unix_path.empty() && chmod(to.unix_path.c_str(), S_IRUSR | S_IWUSR) != 0) {
    return SystemError("protect", address);
  }
  if (listen(socket.fd(), kBacklog) != 0) return SystemError("listen on", address);
  std::string bound = BoundAddress(socket, address);
  return Listener{std::move(socket), std::move(bound)};
}

Result<Socket> ConnectTo(const std::string& address, std::chrono::milliseconds deadline) {
  if (address.starts_with(kInheritedPrefix)) return InheritedSocket(address);
  LATTE_ASSIGN_OR_RETURN(const SocketAddress to, ParseAddress(address));
  const Clock::time_point end = Clock::now() + deadline;
  for (;;) {
    Socket socket = NewSocket(to);
    if (socket.fd() < 0) return SystemError("open", address);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    int error = connect(socket.fd(), to.get(), to.length) == 0 ? 0 : errno;
    if (error == EINPROGRESS) error = FinishConnecting(socket, std::max(left, kRetry));
    if (error == 0) return socket;
    if (left < kRetry) {
      errno = error;
      return SystemError("connect to", address);
    }
    std::this_thread::sleep_for(kRetry);
  }
}

Result<SocketPair> MakeSocketPair() {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
    return Fail(Code::kUnavailable,
                fmt::format("cannot make a socket pair: {}", std::strerror(errno)));
  return SocketPair{Socket(ends[0]), Socket(ends[1])};
}

Socket Accept(const Socket& listener) {
  Socket socket(accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.fd() < 0) return socket;
  const int on = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // fails for Unix sockets
  return socket;
}

Socket MakeWakeup() { return Socket(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)); }

void Wake(const Socket& wakeup) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wakeup.fd(), &one, sizeof one);
}

void Drain(const Socket& wakeup) {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t read_bytes = read(wakeup.fd(), &count, sizeof count);
}

}  // namespace latte
