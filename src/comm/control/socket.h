// Sockets of the control connection: Unix sockets and TCP, none of which ever blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "latte/status.h"

namespace latte {

// Owns a file descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { Close(); }
  Socket(Socket&& other) noexcept : fd_(other.Release()) {}
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }  // -1: none
  void Close();

 private:
  int Release();
  int fd_ = -1;
};

// address: "unix:/path" (only this user may connect; an old socket there is removed) or
// "host:port", "[ipv6]:port"; port 0: the system chooses. A host must be given: nothing is bound to
// all interfaces unless the address says so ("0.0.0.0").
// Errors: kInvalidArgument, not an address; kUnavailable, it cannot be bound.
struct Listener {
  Socket socket;
  std::string address;  // with the chosen port
};
Result<Listener> ListenOn(const std::string& address);

// address: as ListenOn, or "fd:3", an end of a socket pair that this process has inherited; it is
// owned from now on. Tries again until the deadline, as the front may start later than a rank.
// Errors: kInvalidArgument; kUnavailable.
Result<Socket> ConnectTo(const std::string& address, std::chrono::milliseconds deadline);

// Two connected sockets. Errors: kUnavailable.
struct SocketPair {
  Socket near;
  Socket far;
};
Result<SocketPair> MakeSocketPair();

// A connection that waits at the listener; without one, fd() is -1 and errno
// says why.
Socket Accept(const Socket& listener);

// An eventfd: Wake makes it readable, Drain unreadable.
Socket MakeWakeup();
void Wake(const Socket& wakeup);
void Drain(const Socket& wakeup);

}  // namespace latte
