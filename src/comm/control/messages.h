// Payloads of the frames after the handshake.
//
//   kHeartbeat  empty
//   kLost       u32 rank, 2^32 - 1: unknown; then text, at most 512 bytes
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/comm/communicator.h"
#include "src/comm/control/connection.h"

namespace latte {

std::string LostPayload(const RankLost& lost);
// A rank that is not of the world is unknown.
RankLost ReadLost(std::string_view payload, uint32_t world_size);

// Why a peer that was not heard is dead.
std::string SilenceText(const ControlOptions& options);

// For poll: rounded up, 0 if `time` has passed.
int MillisecondsUntil(Connection::Clock::time_point time);

}  // namespace latte
