// A client for tests that sends arbitrary bytes over its own socket. A wait that takes
// longer than a minute ends the test.
#pragma once

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/check.h"

namespace latte::testing_support {

struct RawResponse {
  int status = 0;  // 0: the connection ended before a whole response
  std::string head;
  std::string body;
};

class RawClient {
 public:
  // `receive_bytes`: of the socket's buffer; 0: as the system likes.
  static RawClient Tcp(int port, int receive_bytes = 0) {
    RawClient client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (receive_bytes > 0)
      ::setsockopt(client.fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    const int on = 1;
    ::setsockopt(client.fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    client.Connect(reinterpret_cast<const sockaddr*>(&address), sizeof address);
    return client;
  }
  static RawClient Tcp6(int port) {
    RawClient client(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in6 address = {};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<uint16_t>(port));
    address.sin6_addr = in6addr_loopback;
    client.Connect(reinterpret_cast<const sockaddr*>(&address), sizeof address);
    return client;
  }
  static RawClient Unix(const std::string& path) {
    RawClient client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    client.Connect(reinterpret_cast<const sockaddr*>(&address), sizeof address);
    return client;
  }

  RawClient(RawClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        connected_(other.connected_),
        received_(std::move(other.received_)) {}
  RawClient& operator=(RawClient&&) = delete;
  ~RawClient() { Close(); }

  int fd() const { return fd_; }
  bool connected() const { return connected_; }

  // False if the server has ended the connection.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  bool Get(std::string_view path, std::string_view fields = "") {
    return Send("GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(fields) +
                "\r\n");
  }

  // The next response that is no interim one. `is_head`: of a HEAD request.
  RawResponse Receive(bool is_head = false) {
    RawResponse out;
    std::string head;
    do {
      if (!TakeUntil("\r\n\r\n", &head)) return {};
    } while (head.starts_with("HTTP/1.1 1"));
    int status = 0;
    std::from_chars(head.data() + std::min<size_t>(9, head.size()), head.data() + head.size(),
                    status);
    const size_t length = head.find("Content-Length: ");
    if (is_head || status == 204 || status == 304) {
    } else if (head.find("Transfer-Encoding: chunked") != std::string::npos) {
      if (!TakeChunks(&out.body)) return {};
    } else if (length != std::string::npos) {
      size_t bytes = 0;
      std::from_chars(head.data() + length + 16, head.data() + head.size(), bytes);
      if (!Take(bytes, &out.body)) return {};
    } else {
      out.body = ReceiveAll();
    }
    out.status = status;
    out.head = std::move(head);
    return out;
  }
  // All bytes until the server ends the connection.
  std::string ReceiveAll() {
    while (More()) {
    }
    return std::exchange(received_, {});
  }
  // The bytes up to and with `end`; false if the connection ended before.
  bool TakeUntil(std::string_view end, std::string* out) {
    size_t at = 0;
    while ((at = received_.find(end)) == std::string::npos)
      if (!More()) return false;
    return Take(at + end.size(), out);
  }

  void ShutdownWrite() { ::shutdown(fd_, SHUT_WR); }
  void Close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  // Ends the connection with a reset.
  void Reset() {
    const linger now = {1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    Close();
  }

 private:
  explicit RawClient(int fd) : fd_(fd) {
    LATTE_CHECK(fd >= 0, "{}", std::strerror(errno));
    const timeval most = {60, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  }
  void Connect(const sockaddr* address, socklen_t bytes) {
    connected_ = ::connect(fd_, address, bytes) == 0;
  }
  bool More() {
    char buffer[65536];
    ssize_t count = -1;
    do {
      count = ::recv(fd_, buffer, sizeof buffer, 0);
    } while (count < 0 && errno == EINTR);
    LATTE_CHECK(count >= 0 || errno != EAGAIN, "the server neither answers nor ends: {}",
                received_.substr(0, 200));
    if (count <= 0) return false;
    received_.append(buffer, static_cast<size_t>(count));
    return true;
  }
  bool Take(size_t bytes, std::string* out) {
    while (received_.size() < bytes)
      if (!More()) return false;
    *out = received_.substr(0, bytes);
    received_.erase(0, bytes);
    return true;
  }
  bool TakeChunks(std::string* out) {
    while (true) {
      std::string line;
      std::string data;
      if (!TakeUntil("\r\n", &line)) return false;
      size_t size = 0;
      std::from_chars(line.data(), line.data() + line.size(), size, 16);
      if (!Take(size, &data) || !TakeUntil("\r\n", &line)) return false;
      if (size == 0) return true;
      *out += data;
    }
  }

  int fd_;
  bool connected_ = false;
  std::string received_;
};

}  // namespace latte::testing_support
