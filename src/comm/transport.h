// Messages between ranks, which each backend provides. exchange.h makes collectives of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "src/comm/communicator.h"

namespace latte {

// Both ends of a message compute the same name: group and number of the collective that sends it.
// Messages with different names are never confused, even if ranks disagree.
struct MessageName {
  int group = 0;
  uint32_t number = 0;
};

struct OutMessage {
  int to = 0;  // a rank of the world
  std::span<const std::byte> bytes;
};

struct InMessage {
  int from = 0;
  std::span<std::byte> bytes;
};

// One step of a collective. No empty messages, at most one per peer and direction, none to itself.
struct ExchangeCall {
  MessageName name;
  std::span<const OutMessage> out;
  std::span<const InMessage> in;
  std::chrono::milliseconds deadline{};
  std::string_view what;  // the collective and the ranks of its group, for error messages
  int ranks = 0;
};

// Ranks are numbers in the world. Threads as Communicator.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Returns when all of `in` has arrived and the memory of `out` may be reused. A call without
  // messages returns at once.
  // Throws RankLost: a peer is gone, nothing came from it within the deadline, or it sent a message
  // of another length; and the same RankLost ever after.
  virtual void Exchange(const ExchangeCall& call) = 0;

  virtual void Abandon(const RankLost& lost) = 0;
};

// The reasons that a transport gives.
RankLost SilentRanks(std::span<const int> from, const ExchangeCall& call);  // after the deadline
RankLost WrongLength(int from, int64_t expected, int64_t found, const ExchangeCall& call);

}  // namespace latte
