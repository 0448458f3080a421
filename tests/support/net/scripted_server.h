// A TCP server on loopback whose connections follow a script, for tests of clients.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace latte::testing_support {

// A connection of the scripted server.
class Peer {
 public:
  explicit Peer(int fd) : fd_(fd) {}
  ~Peer() { close(fd_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // The next request, with its body; empty: the client has left.
  std::string Receive() {
    std::string text;
    while (true) {
      const size_t head = text.find("\r\n\r\n");
      if (head != std::string::npos) {
        const size_t at = text.find("Content-Length: ");
        const size_t body = at == std::string::npos ? 0 : std::stoul(text.substr(at + 16));
        if (text.size() >= head + 4 + body) return text;
      }
      char buffer[4096];
      const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
      if (n <= 0) return {};
      text.append(buffer, static_cast<size_t>(n));
    }
  }
  void Send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      text.remove_prefix(static_cast<size_t>(n));
    }
  }
  // Passes bytes on to and from a port of this machine until one side ends.
  void Relay(int port) {
    const int to = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(connect(to, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    std::thread back([&] { Copy(to, fd_); });
    Copy(fd_, to);
    back.join();
    close(to);
  }
  // Waits for the client to leave.
  void Drain() {
    char buffer[4096];
    while (recv(fd_, buffer, sizeof(buffer), 0) > 0) {
    }
  }

 private:
  static void Copy(int from, int to) {
    char buffer[4096];
    for (ssize_t n = 0; (n = recv(from, buffer, sizeof(buffer), 0)) > 0;)
      if (send(to, buffer, static_cast<size_t>(n), MSG_NOSIGNAL) != n) break;
    shutdown(from, SHUT_RDWR);
    shutdown(to, SHUT_RDWR);
  }

  int fd_;
};

// Calls script(number, peer) for one connection after the other, on a thread.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::function<void(int, Peer&)> script) : script_(std::move(script)) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_, 64), 0);
    socklen_t size = sizeof(address);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~ScriptedServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  int port() const { return port_; }
  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  int connections() const { return connections_; }

 private:
  void Run() {
    while (true) {
      const int fd = accept(listener_, nullptr, nullptr);
      if (fd < 0) return;
      Peer peer(fd);
      script_(connections_++, peer);
    }
  }

  std::function<void(int, Peer&)> script_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> connections_ = 0;
  std::thread thread_;
};

}  // namespace latte::testing_support
