// Messages of any length among ranks. Every function throws RankLost.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "src/comm/communicator.h"

namespace latte {

// A rank that does not answer for so long within a call counts as lost.
inline constexpr std::chrono::minutes kCallDeadline(5);

// Rank 0: sends a message to all others.
void SendToAll(Communicator& ranks, std::vector<std::byte> message);

// The others: waits for the next message of rank 0, for any time. `message`: its memory.
void WaitForMessage(Communicator& ranks, std::vector<std::byte>& message);

// Every rank gives a message; rank 0 gets them all, in the order of ranks, the others nothing.
std::vector<std::vector<std::byte>> GatherMessages(Communicator& ranks,
                                                   std::span<const std::byte> mine);

}  // namespace latte
