#include "src/engine/group/messages.h"

#include <numeric>

namespace latte {
namespace {

// Rank 0 may be idle for any time; whether it lives is for others to find out.
constexpr std::chrono::hours kUntilAMessage(24 * 365);

}  // namespace

void SendToAll(Communicator& ranks, std::vector<std::byte> message) {
  auto size = static_cast<int64_t>(message.size());
  ranks.Broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
  ranks.Broadcast(message, 0);
}

void WaitForMessage(Communicator& ranks, std::vector<std::byte>& message) {
  int64_t size = 0;
  ranks.SetDeadline(kUntilAMessage);
  ranks.Broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
  ranks.SetDeadline(kCallDeadline);
  message.resize(static_cast<size_t>(size));
  ranks.Broadcast(message, 0);
}

std::vector<std::vector<std::byte>> GatherMessages(Communicator& ranks,
                                                   std::span<const std::byte> mine) {
  const auto count = static_cast<size_t>(ranks.size());
  std::vector<int64_t> sizes(count);
  const auto size = static_cast<int64_t>(mine.size());
  ranks.AllGatherEqual(std::as_bytes(std::span(&size, 1)),
                       std::as_writable_bytes(std::span(sizes)));
  std::vector<int64_t> sent(count), received(count);
  sent[0] = size;
  if (ranks.rank() == 0) received = sizes;
  std::vector<std::byte> all(
      static_cast<size_t>(std::accumulate(received.begin(), received.end(), int64_t{0})));
  ranks.AllToAll(mine, sent, all, received);
  std::vector<std::vector<std::byte>> out;
  if (ranks.rank() != 0) return out;
  auto at = all.begin();
  for (const int64_t bytes : sizes) {
    out.emplace_back(at, at + bytes);
    at += bytes;
  }
  return out;
}

}  // namespace latte
