#include "src/comm/control/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

namespace latte {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr int kMostReads = 16;  // at once, so that one peer cannot occupy the thread

// error: an errno, 0 for the end of the stream. A killed process ends it in several ways.
tl::unexpected<Error> Gone(int error) {
  const bool closed = error == 0 || error == ECONNRESET || error == EPIPE;
  return Fail(Code::kUnavailable, closed ? "it has closed the connection" : std::strerror(error));
}

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

Connection::Connection(Socket socket, size_t most_payload)
    : socket_(std::move(socket)),
      reader_(most_payload),
      opened_(Clock::now()),
      last_heard_(opened_) {}

Result<std::vector<Frame>> Connection::Read() {
  std::vector<Frame> frames;
  std::vector<char> buffer(kReadBytes);
  for (int reads = 0; reads < kMostReads; ++reads) {
    const ssize_t got = recv(socket_.fd(), buffer.data(), buffer.size(), 0);
    if (got < 0 && WouldBlock(errno)) break;
    if (got <= 0 && !frames.empty()) break;  // the next call reports it
    if (got <= 0) return Gone(got < 0 ? errno : 0);
    last_heard_ = Clock::now();
    LATTE_ASSIGN_OR_RETURN(std::vector<Frame> more,
                           reader_.Take({buffer.data(), static_cast<size_t>(got)}));
    std::move(more.begin(), more.end(), std::back_inserter(frames));
  }
  return frames;
}

Status Connection::Send(FrameType type, std::string_view payload, size_t most_waiting) {
  return SendBytes(FrameBytes(type, payload), most_waiting);
}

Status Connection::SendBytes(std::string_view frame, size_t most_waiting) {
  if (out_.size() + frame.size() > most_waiting) {
    return Exhausted(fmt::format("it has not read {} bytes", out_.size()));
  }
  out_ += frame;
  Flush();
  return {};
}

void Connection::Flush() {
  size_t sent = 0;
  while (sent < out_.size()) {
    const ssize_t part =
        send(socket_.fd(), out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (part < 0 && errno == EINTR) continue;
    if (part < 0 && WouldBlock(errno)) break;
    sent = part < 0 ? out_.size() : sent + static_cast<size_t>(part);
  }
  out_.erase(0, sent);
}

void Connection::EndSending() {
  Flush();
  shutdown(socket_.fd(), SHUT_WR);
}

void Connection::AwaitEnd(Clock::time_point end) {
  std::vector<char> buffer(kReadBytes);
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd wait = {socket_.fd(), POLLIN, 0};
    if (left <= 0) return;
    const int ready = poll(&wait, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return;
    const ssize_t got = recv(socket_.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && !WouldBlock(errno))) return;
  }
}

}  // namespace latte
